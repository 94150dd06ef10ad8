"""Rankings as columns: what a row for each would say, cut off, and nothing shifted."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.records import columns
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.retrieve.local import batch_of

DOCUMENTS = st.lists(st.tuples(st.text(max_size=3), st.floats(), st.text(max_size=3)), max_size=4)


@given(st.lists(st.tuples(st.text(max_size=3), DOCUMENTS, st.booleans()), max_size=5), st.none() | st.integers(1, 3))
def test_a_batch_holds_the_rows_that_were_given(
    given_rows: list[tuple[str, list[tuple[str, float, str]], bool]], top_k: int | None
) -> None:
    rankings, rows = [], []
    for query_id, documents, has_texts in given_rows:
        ids, scores, texts = (tuple(document[place] for document in documents) for place in range(3))
        rankings.append((query_id, Ranking(ids, scores, texts if has_texts else ())))
        expected = [
            {"doc_id": name, "score": None if math.isnan(score) else score, "text": text if has_texts else None}
            for name, score, text in documents[:top_k]
        ]
        rows.append({"query_id": query_id, "documents": expected})
    assert batch_of(rankings, top_k).equals(pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED))


def test_a_ranking_that_lacks_a_score_is_refused_and_shifts_no_other() -> None:
    rankings = [("q1", Ranking(("a", "b"), (1.0,))), ("q2", Ranking(("c",), (1.0, 2.0)))]
    with pytest.raises(ValueError, match="'q1' does not have one score"):
        batch_of(rankings, None)
