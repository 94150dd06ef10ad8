"""The rankings on a page: for the queries on which configurations differ most."""

from collections import defaultdict
from typing import Any

import pyarrow as pa

from rankbeam.pipelines.report.sources import DatasetFiles
from rankbeam.pipelines.report.values import QueryValues
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError

MOST_DOCUMENTS, MOST_LETTERS = 20, 300
_MOST_RANKINGS, _WORST, _BEST = 2_000, 50, 20
_MOST_LETTERS_OF_ALL, _FEWEST_LETTERS = 3_000_000, 60
_MOST_UNRETRIEVED, _MOST_LETTERS_OF_A_TITLE = 10, 120

Cells = set[tuple[int, int]]  # configuration and query, by position


def shown_rankings(values: QueryValues, pairs: list[tuple[int, int]]) -> Cells:
    """The rankings on a page: all in a small run, else those on which one of a pair loses or wins most."""
    configurations = range(values.values.shape[1])
    if len(configurations) * len(values) <= _MOST_RANKINGS or not pairs:
        queries = values.worst(0, _MOST_RANKINGS // len(configurations)).tolist()
        return {(configuration, query) for configuration in configurations for query in queries}
    share = _MOST_RANKINGS / 2 / len(pairs) / (_WORST + _BEST)
    worst, best = (max(1, min(most, int(most * share))) for most in (_WORST, _BEST))
    cells: Cells = set()
    for one, other in pairs:
        if len(cells) + 2 > _MOST_RANKINGS:
            break
        chosen = values.extremes(one, other, worst, best).tolist()
        cells |= {(name, query) for query in chosen for name in (one, other)}
    everywhere = {query for _, query in cells}
    if len(everywhere) * len(configurations) <= _MOST_RANKINGS:
        cells = {(configuration, query) for configuration in configurations for query in everywhere}
    return cells


def are_written(results: Results) -> bool:
    try:
        return any(batch.num_rows for batch in results.batches("rankings", ["config_id"]))
    except InputError:
        if results.stored is not None:
            raise
        return False  # the files may have been deleted; the rest of the report is not affected


def queries_of(cells: Cells, ids: pa.Array) -> dict[str, int]:
    """The queries in some cells, each with its position."""
    positions = sorted({query for _, query in cells})
    return dict(zip(ids.take(pa.array(positions, pa.int64())).to_pylist(), positions, strict=True))


def read_rankings(results: Results, ids: pa.Array, cells: Cells) -> dict[str, Any]:
    """The rankings in some cells, with each document's title and text once, and relevant documents in no ranking."""
    owners = [row["config_id"] for row in results.configurations]
    positions = queries_of(cells, ids)
    query_ids = pa.array(list(positions), ids.type)
    cells_read: dict[tuple[int, int], tuple[list[Any], int]] = {}
    retrieved: defaultdict[int, set[str]] = defaultdict(set)
    for row in results.stream("rankings", ["config_id", "query_id", "documents"], query_ids):
        key = owners.index(row["config_id"]), positions[row["query_id"]]
        retrieved[key[1]].update(document["doc_id"] for document in row["documents"])
        if key in cells:
            cells_read[key] = row["documents"][:MOST_DOCUMENTS], len(row["documents"])
    files = DatasetFiles(results)
    unretrieved = _unretrieved_documents(files, query_ids, positions, retrieved)
    ids_shown = {document["doc_id"] for shown, _ in cells_read.values() for document in shown if not document["text"]}
    known = files.documents(ids_shown | {doc_id for own, _ in unretrieved.values() for doc_id, _ in own})
    documents: dict[tuple[str, str], int] = {}

    def place(doc_id: str, text: str | None) -> int:
        return documents.setdefault((doc_id, cut(text or known.get(doc_id, ("", ""))[1])), len(documents))

    lists: dict[int, dict[int, list[Any]]] = {}
    for (owner, query), (shown, count) in sorted(cells_read.items()):  # the reading order does not matter
        places = [place(document["doc_id"], document["text"]) for document in shown]
        scores = [None if document["score"] is None else float(f"{document['score']:.6g}") for document in shown]
        grades = [document["grade"] for document in shown]
        lists.setdefault(owner, {})[query] = [places, scores, grades, count]
    missed = {
        query: [[place(doc_id, None) for doc_id, _ in own], [grade for _, grade in own], count]
        for query, (own, count) in sorted(unretrieved.items())
    }
    titles = {doc_id: cut(title, _MOST_LETTERS_OF_A_TITLE) for doc_id, (title, _) in known.items()}
    room = max(_FEWEST_LETTERS, _MOST_LETTERS_OF_ALL // max(1, len(documents)))
    return {
        "documents": [[doc_id, cut(text, room), titles.get(doc_id, "")] for doc_id, text in documents],
        "lists": lists,
        "unretrieved": missed,
    }


def _unretrieved_documents(
    files: DatasetFiles, ids: pa.Array, positions: dict[str, int], retrieved: dict[int, set[str]]
) -> dict[int, tuple[list[tuple[str, float]], int]]:
    """For each query, the first relevant documents that no configuration retrieved, and the number of all of them."""
    missed = {}
    for query_id, judged in files.relevant(ids).items():
        unseen = [judgement for judgement in judged if judgement[0] not in retrieved[positions[query_id]]]
        if unseen:
            missed[positions[query_id]] = unseen[:_MOST_UNRETRIEVED], len(unseen)
    return missed


def cut(words: str, most: int = MOST_LETTERS) -> str:
    """The beginning of a text.

    >>> cut("a long text", 6)
    'a long…'
    """
    return words if len(words) <= most else words[:most] + "…"
