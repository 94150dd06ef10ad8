"""Memory of the index does not grow with the ledger: neither what it holds, nor what it needs to be made again."""

import tracemalloc

import numpy as np
import pytest

from rankbeam.transforms.clients.ledger.index import ROW, Index, Rows, join_rows
from rankbeam.transforms.records.calls.steps import SearchDepth

MOST_BYTES = 8_000_000


@pytest.mark.parametrize("answers", [100_000, 800_000])
@pytest.mark.parametrize("is_whole", [True, False])
def test_an_index_is_in_a_file_and_made_in_parts(answers: int, is_whole: bool) -> None:
    parts = {f"a{first}": rows(first, first + 50_000, is_whole=is_whole) for first in range(0, answers, 50_000)}
    index = Index([], np.empty(0, ROW)).changed([*parts], parts)
    added = rows(answers, answers + 100, is_whole=is_whole)
    tracemalloc.start()
    try:
        changed = index.changed(["b", *parts], {"b": added})
        traced, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    depth = None if is_whole else SearchDepth(0, 0.0)
    assert [next(changed.places(f"key {number}", depth)) for number in (0, answers)] == [
        ("a0", 0, 0),
        ("b", answers, answers),
    ]
    assert traced < 100_000
    assert peak < MOST_BYTES


def rows(first: int, end: int, *, is_whole: bool) -> Rows:
    """Rows of a part, their keys numbered; answers that are not whole go further and further into a ranking."""
    array = np.zeros(end - first, ROW)
    array["hash"] = [hash(f"key {number}") for number in range(first, end)]
    for name in ("moment", "check", "group", "row"):
        array[name] = range(first, end)
    array["distance"] = np.nan if is_whole else range(first, end)
    array["results"] = 0 if is_whole else range(first, end)
    return join_rows([array])
