"""Parts of the dataset's own files that a page shows: the documents, judgements and attributes that it needs."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import rows, sources, texts
from rankbeam.transforms.records.conversations import HISTORY, history_of
from rankbeam.transforms.records.errors import InputError

MOST_BYTES = 256 << 20  # reports do not read larger files, which would take longer than everything else

_MOST_LETTERS, _MOST_LETTERS_OF_ALL = 400, 2_000_000


@dataclass(frozen=True)
class DatasetFiles:
    """The run's dataset files that are known, still exist, and are not too large."""

    results: Results

    @cached_property
    def _places(self) -> dict[str, str]:
        """Each file's path, by role."""
        versions = self.results.run["versions"]
        known = {role: versions.get(f"dataset.{role}") for role in ("queries", "qrels", "corpus")}
        return {role: path for role, path in known.items() if path is not None and _is_readable(path)}

    def documents(self, doc_ids: set[str]) -> dict[str, tuple[str, str]]:
        """Titles and texts of documents, by id."""
        return {entry.id: (entry.title, entry.text) for entry in self._entries("corpus", doc_ids)}

    def relevant(self, ids: pa.Array) -> dict[str, list[tuple[str, float]]]:
        """Documents that are judged relevant to some queries, with their grades, highest first."""
        judged: defaultdict[str, dict[str, float]] = defaultdict(dict)
        try:
            for path in self._paths("qrels"):
                for batch in rows.read_qrels(path):
                    is_wanted = pc.is_in(batch["query_id"], value_set=ids)
                    relevant = batch.filter(pc.and_(is_wanted, pc.greater(batch["grade"], 0)))
                    columns = (relevant[name].to_pylist() for name in ("query_id", "doc_id", "grade"))
                    for query_id, doc_id, grade in zip(*columns, strict=True):
                        judged[query_id][doc_id] = max(grade, judged[query_id].get(doc_id, grade))  # by subtopic
        except InputError:  # for example evidence spans, or a file that has changed
            return {}
        return {query: sorted(own.items(), key=lambda entry: (-entry[1], entry[0])) for query, own in judged.items()}

    def attributes(self, ids: list[str]) -> dict[str, dict[str, str]]:
        """Attributes of queries, by id; only the first queries' if there are too many."""
        by_query, letters = {}, 0
        for entry in self._entries("queries", set(ids)):
            if entry.attributes and letters < _MOST_LETTERS_OF_ALL:
                shown = {name: _truncate(name, value) for name, value in entry.attributes.items() if value}
                by_query[entry.id] = shown
                letters += sum(map(len, shown.values()))
        return by_query

    def _entries(self, role: str, ids: set[str]) -> Iterator[texts.TextEntry]:
        try:
            for path in self._paths(role):
                yield from texts.read_chosen(path, role, ids)
        except InputError:
            return  # the file may have changed; the rest of the report is not affected

    def _paths(self, role: str) -> list[str]:
        place = self._places.get(role)
        return [] if place is None else sources.expand(place)


def _truncate(name: str, value: str) -> str:
    """The beginning of a value; a history remains a list of messages."""
    messages = history_of({HISTORY: value}) if name == HISTORY else []
    if not messages:
        return value[:_MOST_LETTERS]
    return json.dumps(
        [{**message, "text": message["text"][:_MOST_LETTERS]} for message in messages], ensure_ascii=False
    )


def _is_readable(path: str) -> bool:
    try:
        return not is_table(path) and sources.size(path) <= MOST_BYTES
    except (InputError, OSError):
        return False
