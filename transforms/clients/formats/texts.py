"""Readers of queries and corpora, which have fewer rows than judgements and runs, but texts and attributes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.cases import roles
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.recognise import TABLES, Format, recognise
from rankbeam.transforms.clients.formats.syntax import delimited, json_lines, lines, named_columns, tables
from rankbeam.transforms.clients.formats.syntax.ids import as_text, checked_id, json_id
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.conversations import HISTORY, problem_of
from rankbeam.transforms.records.errors import InputError, shortened

_BATCH_ROWS = 10_000
_MOST_KEYS = 300  # maximum length of an object's keys in a message


class TextEntry(NamedTuple):
    """A query or a document of a file."""

    id: str
    title: str  # the title; empty for queries
    text: str  # the text; may be empty
    attributes: Mapping[str, str]
    line: int  # number of the line or row, from 1

    @property
    def titled_text(self) -> str:
        """The title and the text, in lines of their own."""
        return "\n".join(filter(None, (self.title, self.text)))


def read_queries(path: str) -> Iterator[pa.RecordBatch]:
    """Read queries: BEIR's JSON lines, TREC topics (id, tab, text), CSV, Parquet, or a table of BigQuery."""
    entries, schema = read_entries(path, "queries"), columns.with_line(columns.QUERIES)
    while part := list(islice(entries, _BATCH_ROWS)):
        attributes = [
            [{"name": name, "value": value} for name, value in sorted(entry.attributes.items())] for entry in part
        ]
        ids, queries = [entry.id for entry in part], [entry.text for entry in part]
        values = zip((ids, queries, attributes, [entry.line for entry in part]), schema, strict=True)
        arrays = [pa.array(column, field.type) for column, field in values]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def entries_in(pattern: str, role: str) -> Iterator[tuple[str, TextEntry]]:
    """The queries or documents in all files of a pattern, each with its file."""
    return ((path, entry) for path in sources.expand(pattern) for entry in read_entries(path, role))


def refuse_repeated(documents: Iterable[tuple[str, TextEntry]]) -> Iterator[tuple[str, TextEntry]]:
    """The documents of `entries_in`; a repeated id is refused."""
    places: dict[str, lines.Place] = {}
    for path, entry in documents:
        place = (path, entry.line)
        if (first := places.setdefault(entry.id, place)) != place:
            problem = f"document {shortened(repr(entry.id))} is given twice"
            raise lines.repeated_at(problem, [first, place], "ids must differ")
        yield path, entry


def read_entries(path: str, role: str) -> Iterator[TextEntry]:
    form = recognise(path, role)
    if form is Format.CASES:
        for name, text, attributes, line in roles.read_queries(CaseSource.parse(path)):
            yield TextEntry(name, "", text, attributes, line)
    elif form is Format.SEPARATED:
        for names, batches in delimited.batches(path, role):
            yield from _from_columns(path, batches, names, delimited.HEADER_LINES)
    elif form in TABLES:
        for names, batches in tables.named_batches(path, role, most_rows=_BATCH_ROWS):
            yield from _from_columns(sources.shown(path), batches, names)
    else:
        read = _from_json if form is Format.JSON_LINES else _from_tabs
        for line, text in json_lines.numbered_lines(path):
            yield read(path, line, text)


def read_chosen(path: str, role: str, ids: Collection[str]) -> Iterator[TextEntry]:
    """The entries with some ids, from a file that was read before: other lines of JSON are not checked again."""
    if recognise(path, role) is Format.JSON_LINES:
        for line, text in json_lines.numbered_lines(path):
            value = json_lines.parse_object(path, line, text)
            name = _id_name(value)
            if name is None or not isinstance(value[name], str) or value[name] in ids:
                entry = _from_json(path, line, text)
                if entry.id in ids:
                    yield entry
    else:
        yield from (entry for entry in read_entries(path, role) if entry.id in ids)


def _from_tabs(path: str, line: int, text: str) -> TextEntry:
    lines.refuse_joined(path, text, line)
    name, tab, rest = text.partition("\t")
    if not tab or not name.strip():
        raise InputError("expected id, tab, text", path=path, line=line)
    return TextEntry(checked_id(path, line, name.strip()), "", rest.strip(), {}, line)


def _from_json(path: str, line: int, text: str) -> TextEntry:
    try:
        return _from_object(path, line, json_lines.parse_whole_object(path, line, text))
    except RecursionError as error:
        raise InputError("is not valid JSON: it is nested too deeply", path=path, line=line) from error


def _from_object(path: str, line: int, value: dict[str, Any]) -> TextEntry:
    """An entry made of a parsed line; removes keys from `value`."""
    id_name, text_name = _id_name(value), next(filter(value.__contains__, named_columns.TEXT_NAMES), None)
    if id_name is None or text_name is None:
        missing = "id (_id)" if id_name is None else "text"
        keys = shortened(", ".join(value), _MOST_KEYS).encode(errors="replace").decode()
        problem = f"the object has no {missing}; it has: {keys or 'nothing'}"
        raise InputError(problem, path=path, line=line)
    name, text = json_id(path, line, value.pop(id_name)), as_text(value.pop(text_name))
    return _entry(path, name, text, value, line)


def _id_name(value: Mapping[str, Any]) -> str | None:
    for name in named_columns.ID_NAMES:
        if value.get(name) not in (None, ""):
            return name
    return None


def _entry(path: str, name: str, text: str, rest: Mapping[str, Any], line: int) -> TextEntry:
    """An entry; its attributes are those under `metadata` and all other keys except the title."""
    if not rest:
        return TextEntry(name, "", text, {}, line)
    metadata = rest.get("metadata")
    others = {key: item for key, item in rest.items() if key not in ("title", "metadata")}
    others |= metadata if isinstance(metadata, dict) else {}
    if HISTORY in others and (problem := problem_of(others)) is not None:
        raise InputError(problem, path=path, line=line)
    attributes = {key: as_text(item) for key, item in others.items() if item is not None}
    return TextEntry(name, as_text(rest.get("title")), text, attributes, line)


def _from_columns(
    path: str, batches: Iterable[pa.RecordBatch], names: Mapping[str, str], line: int = 0
) -> Iterator[TextEntry]:
    for batch in batches:
        entry_ids = named_columns.cast(path, batch[names["id"]], pa.field("_id", pa.string()), line)
        texts = named_columns.convert_column(path, batch[names["text"]], pa.field("text", pa.string()), line)
        rest = batch.drop_columns(list(names.values()))
        entries = zip(entry_ids.to_pylist(), texts.to_pylist(), tables.plain_rows(path, rest, line), strict=True)
        for name, text, others in entries:
            line += 1
            try:
                entry = _entry(path, name, text or "", others, line)
            except UnicodeDecodeError as error:
                column = next(key for key, value in others.items() if not _is_text(value))
                problem = f"the column {column} is not UTF-8: leave it out, or make it text"
                raise InputError(problem, path=path, line=line) from error
            yield entry


def _is_text(value: object) -> bool:
    try:
        as_text(value)
    except UnicodeDecodeError:
        return False
    return True
