"""From dictionaries, as pytrec_eval takes them, to an Assessment."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements
from rankbeam.transforms.kernels.ranking.rankings import Assessment, RankedRows, assess

Qrels = Mapping[str, Mapping[str, float]]
Run = Mapping[str, Mapping[str, float]]
Row = tuple[str, str, float]


def rows_of(run: Run) -> list[Row]:
    """The rows (query, document, score) of a run."""
    return [(query, doc, score) for query, results in run.items() for doc, score in results.items()]


def assessment_of(qrels: Qrels, rows: Iterable[Row], *, chunks: bool = False) -> Assessment:
    """See rows through their judgements.

    Args:
        qrels: grade by document by query; its order of queries is that of the assessment.
        rows: (query, document, score) in any order; rows of queries that are not in `qrels` are left out.
        chunks: a document that occurs several times counts each time, instead of its best rank alone.
    """
    position = {query: place for place, query in enumerate(qrels)}
    known = [row for row in rows if row[0] in position]
    query = np.array([position[row[0]] for row in known], np.int64)
    doc_id = pa.array([row[1] for row in known], pa.string())
    score = np.array([row[2] for row in known], np.float64)
    judgements = [(place, doc, grade) for place, pool in enumerate(qrels.values()) for doc, grade in pool.items()]
    pool = Pool(
        queries=len(qrels),
        query=np.array([place for place, _, _ in judgements], np.int64),
        doc_id=pa.array([doc for _, doc, _ in judgements], pa.string()),
        grade=np.array([grade for _, _, grade in judgements], np.float64),
    )
    ranked = RankedRows.of(order_by_score(query, score, doc_id), query, doc_id, len(qrels))
    if not chunks:
        ranked = ranked.deduplicated(len(qrels))
    return assess(ranked, find_judgements(query, doc_id, pool), pool)
