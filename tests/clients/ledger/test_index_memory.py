"""Memory of the index: what a lane of a million tasks holds, and needs again whenever its ledger has grown."""

import tracemalloc

import numpy as np
import pytest

from rankbeam.transforms.clients.ledger.index import ROW, Index, Rows
from rankbeam.transforms.records.calls.call import Reach

ANSWERS = 50_000


@pytest.mark.parametrize(("is_whole", "least", "most"), [(True, 38, 62), (False, 54, 78)])
def test_the_next_index_takes_60_bytes_an_answer_while_it_is_made(is_whole: bool, least: int, most: int) -> None:
    index = Index([], np.empty(0, ROW)).changed(["a"], {"a": rows(0, ANSWERS, is_whole=is_whole)})
    added = rows(ANSWERS, ANSWERS + 100, is_whole=is_whole)
    tracemalloc.start()
    try:
        changed = index.changed(["b", "a"], {"b": added})
        traced, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [next(changed.places(f"key {number}", None if is_whole else Reach(0, 0.0))) for number in (0, ANSWERS)] == [
        ("a", 0, 0),
        ("b", ANSWERS, ANSWERS),
    ]
    assert traced < least * ANSWERS
    assert peak < most * ANSWERS


def rows(first: int, end: int, *, is_whole: bool) -> Rows:
    """Rows of a part, their keys numbered; answers that are not whole go further and further into a ranking."""
    array = np.zeros(end - first, ROW)
    array["hash"] = [hash(f"key {number}") for number in range(first, end)]
    for name in ("moment", "check", "group", "row"):
        array[name] = range(first, end)
    array["distance"] = np.nan if is_whole else range(first, end)
    array["results"] = 0 if is_whole else range(first, end)
    return array
