"""Memory of the index: what a lane of a million tasks holds, and needs again whenever its ledger has grown."""

import tracemalloc

import numpy as np

from rankbeam.transforms.clients.ledger.index import ROW, Index, Rows

ANSWERS = 50_000


def test_the_next_index_takes_67_bytes_an_answer_while_it_is_made() -> None:
    index = Index([], np.empty(0, ROW)).changed(["a"], {"a": rows(0, ANSWERS)})
    added = rows(ANSWERS, ANSWERS + 100)
    tracemalloc.start()
    try:
        changed = index.changed(["b", "a"], {"b": added})
        traced, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [next(changed.places(f"key {number}", None)) for number in (0, ANSWERS)] == [("a", 0, 0), ("b", 0, ANSWERS)]
    assert traced < 54 * ANSWERS
    assert peak < 68 * ANSWERS


def rows(first: int, end: int) -> Rows:
    """Rows of a part, their keys numbered."""
    array = np.zeros(end - first, ROW)
    array["hash"] = [hash(f"key {number}") for number in range(first, end)]
    array["distance"], array["row"] = np.nan, range(first, end)
    return array
