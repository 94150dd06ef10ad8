"""Queries without judgements, which are asked because a metric is judged: they have an empty pool."""

import pyarrow as pa

from rankbeam.transforms.records import columns
from rankbeam.transforms.score import pool_of


def test_a_query_without_judgements_has_an_empty_pool_beside_those_of_others() -> None:
    judgements = [None, [{"doc_id": "a", "grade": 2.0}, {"doc_id": "b", "grade": 0.0}], None, []]
    rows = [
        {"query_id": str(number), "text": "", "attributes": [], "judgements": names}
        for number, names in enumerate(judgements)
    ]
    pool = pool_of(pa.RecordBatch.from_pylist(rows, schema=columns.JUDGED_QUERIES))
    assert (pool.queries, pool.query.tolist(), pool.doc_id.to_pylist()) == (4, [1, 1], ["a", "b"])
