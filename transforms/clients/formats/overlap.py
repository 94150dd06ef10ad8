"""Check that judgements share queries and documents with other files: without shared ids every score would be 0.

Ids are compared by their hashes, 8 bytes each. `disjoint_errors` reads the other file until it meets one judged query
and one judged document, usually in the first block. `corpus_warnings` reads a corpus to its end: no retriever finds the
relevant documents that it lacks, so recall has a limit below 1.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import rows, sources, texts
from rankbeam.transforms.clients.formats.recognise import TABLES, recognise
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax import named_columns, tables
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, StringArray
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Judgements

QUERY, DOCUMENT = "query", "document"
_COLUMNS = {QUERY: "query_id", DOCUMENT: "doc_id"}
_KINDS = {"run": (QUERY, DOCUMENT), "corpus": (DOCUMENT,)}
_BATCH_ROWS = 1_000
_EXAMPLES = 3
_NONE: HashArray = np.empty(0, np.uint64)

Ids = Mapping[str, StringArray]  # ids of queries, of documents, or of both


_Judged = tuple[Mapping[str, HashArray], Mapping[str, str]]  # sorted hashes, and an example, by kind of id


def disjoint_errors(qrels: str, others: Iterable[tuple[str, str]]) -> list[InputError]:
    """An error for each file that shares no query, or no document, with the judgements."""
    distinct = list(dict.fromkeys(others))
    judged = _judged_ids(qrels) if distinct else None
    if judged is None:
        return []
    hashes, examples = judged
    checked = [(path, _unmatched_ids(hashes, role, path)) for role, path in distinct]
    return [_problem(qrels, path, examples, unmatched) for path, unmatched in checked if unmatched]


def refuse_disjoint(qrels: str, others: Iterable[tuple[str, str]]) -> None:
    if problems := disjoint_errors(qrels, others):
        raise InputError("\n".join(map(str, problems)))


def refuse_strange_answers(queries: str, answers: Iterable[tuple[str, Iterable[pa.RecordBatch]]]) -> None:
    """Refuse answers none of which belongs to any of the queries; `answers` holds names and rows."""
    known = _query_hashes(queries)
    if known is None or not len(known):
        return
    for name, batches in answers:
        first = None
        for batch in batches:
            ids = batch["query_id"]
            if _among(hashing.hash_strings(ids), known).any():
                break
            first = ids[0].as_py() if first is None and len(ids) else first
        else:
            example = next(iter(texts.read_queries(next(iter(sources.expand(queries))))))["query_id"][0].as_py()
            raise InputError(
                f"has no query in common with the queries in {shown(queries)}: it has ids such as {first!r}, the "
                f"queries such as {example!r}; use the same ids, or add --allow-disjoint",
                path=name,
            )


def _judged_ids(qrels: str) -> _Judged | None:
    """The ids of judgements; None if there are no judgements, which the join reports."""
    hashes: dict[str, list[HashArray]] = {kind: [] for kind in _COLUMNS}
    examples: dict[str, str] = {}
    for path in sources.expand(qrels):
        for batch in rows.read_qrels(path):
            for kind, name in _COLUMNS.items():
                hashes[kind].append(np.unique(hashing.hash_strings(batch[name])))
                examples.setdefault(kind, batch[name][0].as_py())
    if not examples:
        return None
    return {kind: np.unique(np.concatenate(parts)) for kind, parts in hashes.items()}, examples


def _unmatched_ids(judged: Mapping[str, HashArray], role: str, pattern: str) -> dict[str, str]:
    """The file's first id, for each kind of id that the file does not share with the judgements."""
    unmatched: dict[str, str] = {}
    pending = set(_KINDS[role])
    for path in sources.expand(pattern):
        for batch in _ids(path, role):
            for kind in sorted(pending):
                if len(batch[kind]):
                    unmatched.setdefault(kind, batch[kind][0].as_py())
                if _among(hashing.hash_strings(batch[kind]), judged[kind]).any():
                    pending.remove(kind)
            if not pending:
                return {}
    return {kind: example for kind, example in unmatched.items() if kind in pending}


def _problem(qrels: str, path: str, examples: Mapping[str, str], unmatched: Mapping[str, str]) -> InputError:
    kind = QUERY if QUERY in unmatched else DOCUMENT
    return InputError(
        f"has no {kind} in common with the judgements in {shown(qrels)}: it has ids such as {unmatched[kind]!r}, "
        f"the judgements such as {examples[kind]!r}; use the same ids, or add --allow-disjoint",
        path=shown(path),
    )


def _ids(path: str, role: str) -> Iterator[Ids]:
    if role == "run":
        for batch in rows.read_run(path):
            yield {QUERY: batch["query_id"], DOCUMENT: batch["doc_id"]}
        return
    field, count = pa.field("_id", pa.string()), 0
    for column in _columns(path, role):
        yield {DOCUMENT: named_columns.cast(path, column, field, count)}
        count += len(column)


def _columns(path: str, role: str) -> Iterator[pa.Array]:
    """The ids of documents; in formats with columns, no other column is read."""
    if recognise(path, role) in TABLES:
        for names, batches in tables.named_batches(path, "ids"):
            yield from (batch[names["id"]] for batch in batches)
    else:
        entries = texts.read_entries(path, role)
        while part := [entry.id for entry in islice(entries, _BATCH_ROWS)]:
            yield pa.array(part, pa.string())


def hash_ids(doc_ids: StringArray) -> HashArray:
    """Hashes of a corpus's ids, for `corpus_warnings`."""
    return np.unique(hashing.hash_strings(doc_ids))


def corpus_warnings(judgements: Judgements | None, corpus: HashArray) -> Iterator[str]:
    """A warning if a corpus lacks relevant documents; judgements in BigQuery are not read again for this."""
    if judgements is None or is_table(judgements.qrels):
        return
    queries = _query_hashes(judgements.queries)
    relevant, missing, examples = _NONE, _NONE, set[str]()
    for doc_ids in _relevant_ids(judgements.qrels, queries):
        hashes = hashing.hash_strings(doc_ids)
        is_missing = ~_among(hashes, corpus)
        relevant, missing = np.union1d(relevant, hashes), np.union1d(missing, hashes[is_missing])
        examples = set(sorted({*examples, *doc_ids.filter(pa.array(is_missing)).to_pylist()})[:_EXAMPLES])
    if len(missing):
        shown_ids = ", ".join(map(repr, sorted(examples)))
        yield (
            f"{len(missing):,} of {len(relevant):,} documents that are judged relevant are not in the corpus, such as "
            f"{shown_ids}: no retriever finds them, which limits recall"
        )


def _relevant_ids(qrels: str, queries: HashArray | None) -> Iterator[StringArray]:
    for path in sources.expand(qrels):
        for batch in rows.read_qrels(path):
            is_relevant = pc.greater(batch["grade"], 0.0)
            if queries is not None:
                is_relevant = pc.and_(is_relevant, pa.array(_among(hashing.hash_strings(batch["query_id"]), queries)))
            yield batch["doc_id"].filter(is_relevant)


def _query_hashes(queries: str | None) -> HashArray | None:
    """Hashes of the queries to run; None if those are the judged ones, or are in a BigQuery table."""
    if queries is None or is_table(queries):
        return None
    batches = (batch for path in sources.expand(queries) for batch in texts.read_queries(path))
    return np.unique(np.concatenate([_NONE, *(hashing.hash_strings(batch["query_id"]) for batch in batches)]))


def _among(hashes: HashArray, known: HashArray) -> np.ndarray:
    """Return for each hash whether it is among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    return np.asarray(known[np.searchsorted(known, hashes).clip(max=len(known) - 1)] == hashes)
