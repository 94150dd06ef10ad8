"""Recognise the format of a file by its first line; describe a file whose format does not fit its role."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats.cases.source import is_cases
from rankbeam.transforms.clients.formats.syntax import delimited, lines, named_columns, tables
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.parquet import MAGIC
from rankbeam.transforms.records.errors import InputError, pluralize


class Format(StrEnum):
    """The formats that readers know."""

    BIGQUERY = "BigQuery"
    CASES = "rows of questions and answers"
    PARQUET = "Parquet"
    ARROW = "Arrow"
    JSON_LINES = "JSON lines (BEIR)"
    TAB_TEXT = "id and text, tab separated"
    BEIR_QRELS = "BEIR judgements (query document grade, tab separated)"
    SOURCED_QRELS = "BEIR judgements with a column for their source"
    TREC_QRELS = "TREC judgements (query iteration document grade)"
    TREC_RUN = "TREC run (query Q0 document rank score tag)"
    MS_MARCO_RUN = "MS MARCO run (query document rank, tab separated)"
    NESTED = "JSON of query id to document id to number (ranx)"
    SEPARATED = "values below a header (CSV or TSV)"
    JSON_ROWS = "JSON lines of judgements or results"


TABLES = (Format.BIGQUERY, Format.PARQUET, Format.ARROW)  # formats with named and typed columns, which `tables` reads

WHOLE = (Format.NESTED, Format.SEPARATED, Format.JSON_ROWS, Format.ARROW)
"""Formats that cannot be read in parts: one worker reads the whole file."""


_NESTED = re.compile(r"\s*\{\s*(\"(?:[^\"\\]|\\.)*\"\s*:\s*\{|\}?\s*$)")
"""The beginning of a JSON object of objects; the first line may end after its bracket."""
_BEIR_HEADERS = (("query",), ("corpus", "doc"), ("score", "relevance", "grade"))  # words in the names, by column


@dataclass(frozen=True)
class FileRole:
    """The use of an input file."""

    expected: str  # for messages about empty files: "… expected"
    description: str  # for messages about other files: "is not …"
    format_of: Callable[[str], Format | None]  # recognises the format by the first line; None for an unknown one
    has_tables: bool = True  # whether Parquet, Arrow and BigQuery are read
    has_ids_alone: bool = False  # whether lines hold ids and numbers, and no other text


def recognise(path: str, name: str) -> Format:
    """The format of a file in the role with this name."""
    if is_cases(path):
        return Format.CASES
    role = ROLES[name]
    if is_table(path):
        if not role.has_tables:
            raise InputError(f"is not {role.description}; it is a table")
        return Format.BIGQUERY  # `tables.find_columns` checks the columns
    head = files.read_head(path, magic=(MAGIC, *tables.ARROW))
    if head == MAGIC or head in tables.ARROW:
        form = Format.PARQUET if head == MAGIC else Format.ARROW
        if not role.has_tables:
            raise InputError(f"is not {role.description}; it is {form}", path=path)
        return form
    first = _first_line(head)
    if first is None:
        raise InputError(f"the file is empty; {role.expected} expected", path=path)
    lines.refuse_other_encoding(path, head, 0)
    if role.has_ids_alone:
        lines.refuse_other_ends(path, head, 0)
    lines.refuse_joined_objects(path, head, first)
    text_form = role.format_of(first)
    if text_form is None:
        raise InputError(f"is not {role.description}; it looks like {_looks_like(first)}", path=path)
    columns = len(first.splitlines()[0].rstrip().split("\t"))
    if name == "queries" and text_form is Format.TAB_TEXT and columns > 2:
        problem = f"has {columns} columns and no header"  # attributes would become part of the texts
        raise InputError(f"{problem}; write the names of the columns in the first line: query_id, text, …", path=path)
    return text_form


def _first_line(head: bytes) -> str | None:
    """The first line that is neither empty nor a comment; the first comment if there is no such line."""
    written = [line for line in head.decode("utf-8", errors="replace").split("\n") if line.strip()]
    return next((line for line in written if not line.lstrip().startswith("#")), next(iter(written), None))


def _texts(line: str) -> Format | None:
    if line.lstrip().startswith("{"):
        return Format.JSON_LINES
    if delimited.header(line, "queries"):
        return Format.SEPARATED
    tabs = line.count("\t")  # a single tab separates an id and a text, whatever the text looks like
    looks_like_rows = tabs > 1 and (_qrels(line) or _run(line))
    return Format.TAB_TEXT if tabs and not looks_like_rows else None


def _qrels(line: str) -> Format | None:
    if _NESTED.match(line):
        return Format.NESTED
    if _is_row(line, "qrels"):
        return Format.JSON_ROWS
    header, has_source = _without_source(line)
    names = [name.strip().lower() for name in header.split("\t")]
    in_order = zip(names, _BEIR_HEADERS, strict=False)
    if len(names) == 3 and all(any(word in name for word in words) for name, words in in_order):
        return Format.SOURCED_QRELS if has_source else Format.BEIR_QRELS
    if delimited.header(line, "qrels"):
        return Format.SEPARATED
    fields = line.split("\t")
    if len(fields) == 3 and _is_number(fields[2]):
        return Format.BEIR_QRELS
    words = line.split()
    return Format.TREC_QRELS if len(words) == 4 and _is_number(words[3]) else None


def _run(line: str) -> Format | None:
    if _NESTED.match(line):
        return Format.NESTED
    if delimited.header(line, "run") and not line.startswith("\t".join(QRELS_HEADER[:3])):
        return Format.SEPARATED
    if _is_row(line, "run"):
        return Format.JSON_ROWS
    words = line.split()
    if len(words) >= 5 and all(_is_number(word) for word in words[3:5]):
        return Format.TREC_RUN
    # Three columns are MS MARCO's if the first line has rank 1: any other number may well be a score.
    return Format.MS_MARCO_RUN if line.count("\t") == 2 and words[2:] == ["1"] else None


def _is_row(line: str, role: str) -> bool:
    """Return whether a line is a JSON object with all columns of a role."""
    try:
        value = json.loads(line) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and named_columns.has_columns(value, role)


def _clicks(line: str) -> Format | None:
    return Format.SEPARATED if delimited.header(line, "clicks") else None


def _answers(line: str) -> Format | None:
    return Format.JSON_LINES if line.lstrip().startswith("{") else None


QRELS_HEADER = ("query-id", "corpus-id", "score", "source")
"""Header of judgements with their source, people or a judge; without the last column, it is BEIR's header."""


def _without_source(line: str) -> tuple[str, bool]:
    """A header without its fourth column `source`, which `rankbeam goldens` writes, and whether it had one."""
    before, _, last = line.rpartition("\t")
    has_source = last.strip().lower() == "source" and before.count("\t") == 2
    return (before, True) if has_source else (line, False)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _foreign_table(first: str) -> str | None:
    """The description of a table with other columns or separators."""
    if ";" in first and "," not in first:
        return f"values separated by semicolons ({first[:60]!r}); save it with commas"
    names = [name.strip() for name in first.split(",")]
    if len(names) > 1 and not any(map(_is_number, names)):
        return f"CSV with the columns {', '.join(names)}; rename those that are meant"
    return None


def _looks_like(line: str) -> str:
    first = line.strip()
    if first.startswith("{"):
        return "JSON lines"
    if first.startswith("["):
        return "a JSON array; write one object a line"
    if first.startswith("<"):
        return "XML or SGML (for TREC topics, write one line per topic: id, tab, text)"
    form = _qrels(line) or _run(line)
    if form is not None:
        return str(form)
    if (other := _foreign_table(first)) is not None:
        return other
    return f"text of {pluralize(len(first.split()), 'word')} a line, beginning with {first[:60]!r}"


_TEXT_FORMATS = "lines of id, tab, text, CSV or TSV with a header, or Parquet"
ROLES = {
    "queries": FileRole("queries were", f"a file of queries: JSON lines with _id and text, {_TEXT_FORMATS}", _texts),
    "corpus": FileRole("a corpus was", f"a corpus: JSON lines with _id, title and text, {_TEXT_FORMATS}", _texts),
    "qrels": FileRole(
        "judgements were",
        "a file of judgements: TREC (4 columns), BEIR (3 columns, tab separated, with a header), CSV or TSV with a "
        "header (query_id, doc_id, grade), JSON lines with these keys, JSON of ranx, or Parquet",
        _qrels,
        has_ids_alone=True,
    ),
    "run": FileRole(
        "a run was",
        "a run: TREC (query Q0 document rank score tag), MS MARCO (query, document, rank), CSV or TSV with a header "
        "(query_id, doc_id, score), JSON lines with these keys, JSON of ranx, or Parquet",
        _run,
        has_ids_alone=True,
    ),
    "clicks": FileRole(
        "clicks were",
        "a file of clicks: CSV or TSV with a header (query_id, doc_id, clicks, impressions), or Parquet or Arrow with "
        "these columns",
        _clicks,
    ),
    "answers": FileRole(
        "reference answers were",
        "a file of reference answers: JSON lines with query_id and answer",
        _answers,
        has_tables=False,
    ),
    "evidence": FileRole(
        "evidence was",
        "evidence: JSON lines with query_id, doc_id, start, end and quote, or Parquet with these columns",
        _answers,
    ),
}
