"""Lists in another order, against Arrow's own take."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.kernels.lists import take_lists
from transforms.records import columns

DOCUMENTS = columns.RANKINGS.field("documents").type
TEXTS = st.text(max_size=3)
DOCUMENT = st.fixed_dictionaries({"doc_id": TEXTS, "score": st.floats(allow_nan=False)})


def test_what_the_pipeline_passes_is_copied_list_by_list() -> None:
    lists = pa.array([[{"doc_id": f"d{n}", "score": float(n)} for n in range(20)]] * 3, DOCUMENTS)
    assert take_lists(lists, np.array([2, 0])).equals(lists.take(pa.array([2, 0])))


@given(
    rows=st.lists(st.lists(DOCUMENT, min_size=0, max_size=40), min_size=1, max_size=6),
    data=st.data(),
)
def test_any_order_of_any_part(rows: list[list[dict[str, object]]], data: st.DataObject) -> None:
    lists = pa.array(rows, DOCUMENTS).slice(data.draw(st.integers(0, len(rows) - 1)))
    order = np.array(data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)), np.int64)
    taken = take_lists(lists, order)
    taken.validate(full=True)
    assert taken.equals(lists.take(pa.array(order)))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[f"é{n}" for n in range(30)], [""] * 40]),
        pa.array([[float(n) for n in range(30)], [0.5] * 40]),
        pa.array([[None, "a"] * 20, ["b"] * 40]),
        pa.array([["x"] * 40, ["y"] * 40], pa.list_(pa.large_string())),
        pa.array([list(range(40)), [1] * 40]),
        pa.array([[{"a": "x", "b": None}] * 40, [{"a": "y", "b": 1.0}] * 40]),
    ],
    ids=lambda values: str(values.type),
)
def test_other_types(values: pa.ListArray) -> None:
    assert take_lists(values, np.array([1, 0, 1])).equals(values.take(pa.array([1, 0, 1])))
