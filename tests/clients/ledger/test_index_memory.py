"""Memory of the index: what a lane of a million tasks holds, and needs again whenever its ledger has grown."""

import tracemalloc

import numpy as np
import pytest

from rankbeam.transforms.clients.ledger.index import ROW, Index, Rows
from rankbeam.transforms.records.calls.call import Reach

ANSWERS = 300_000
"""Enough for files: each column has more than a megabyte."""


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_index_is_in_files_and_takes_33_bytes_an_answer_only_while_it_is_made(is_whole: bool) -> None:
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
    assert traced < 0.1 * ANSWERS
    assert peak < 35 * ANSWERS


def rows(first: int, end: int, *, is_whole: bool) -> Rows:
    """Rows of a part, their keys numbered; answers that are not whole go further and further into a ranking."""
    array = np.zeros(end - first, ROW)
    array["hash"] = [hash(f"key {number}") for number in range(first, end)]
    for name in ("moment", "check", "group", "row"):
        array[name] = range(first, end)
    array["distance"] = np.nan if is_whole else range(first, end)
    array["results"] = 0 if is_whole else range(first, end)
    return array
