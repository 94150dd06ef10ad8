"""Judgements with filled holes, against plain Python: people's grades stay, and each document is there once."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.ranking.pools import Pool
from rankbeam.transforms.records import holes
from rankbeam.transforms.records.rankings.ranked import fill_pool

PAIRS = st.tuples(st.sampled_from("qrs"), st.sampled_from("abcdef"))
QUERIES = ["q", "r", "s"]


@settings(max_examples=examples(60))
@given(
    human=st.dictionaries(PAIRS, st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])),
    judge=st.dictionaries(PAIRS, st.integers(0, 3)),
    parts=st.integers(0, 3),
)
def test_holes_have_the_judges_grades_and_people_keep_theirs(
    human: dict[tuple[str, str], float], judge: dict[tuple[str, str], int], parts: int
) -> None:
    scale = (0, 0, 2, 3)
    ordered = sorted(human)
    pool = Pool(
        len(QUERIES),
        np.array([QUERIES.index(query) for query, _ in ordered], np.int64),
        pa.array([doc for _, doc in ordered], pa.string()),
        np.array([human[pair] for pair in ordered], np.float64),
    )
    rows = [{"query_id": query, "doc_id": doc, "grade": grade} for (query, doc), grade in judge.items()]
    size = max(1, len(rows) // (parts or 1))
    batches = [
        pa.RecordBatch.from_pylist(rows[start : start + size], holes.GRADES) for start in range(0, len(rows), size)
    ]
    result = fill_pool(pool, pa.array(QUERIES), batches, scale)
    expected = {pair: (grade, False) for pair, grade in human.items()}
    expected |= {pair: (float(scale[grade]), True) for pair, grade in judge.items() if human.get(pair, -1.0) < 0}
    columns = (result.pool.query.tolist(), result.pool.doc_id.to_pylist())
    pairs = [(QUERIES[query], doc) for query, doc in zip(*columns, strict=True)]
    assert len(pairs) == len(set(pairs))
    assert result.pool.query.tolist() == sorted(result.pool.query.tolist())
    grades = zip(pairs, zip(result.pool.grade.tolist(), result.by_judge.tolist(), strict=True), strict=True)
    assert dict(grades) == expected
    audited = sorted(map(tuple, (row.values() for row in result.audited.to_pylist())), key=str)
    assert audited == sorted(
        (
            (query, doc, None if human.get((query, doc), -1.0) < 0 else human[query, doc], scale[grade])
            for (query, doc), grade in judge.items()
        ),
        key=str,
    )
