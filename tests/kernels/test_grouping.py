"""Groups of positions that share names."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.grouping import connected


@given(st.lists(st.lists(st.integers(0, 6), max_size=3), max_size=8))
def test_connected_positions_agree_with_merging_sets(names: list[list[int]]) -> None:
    groups: list[tuple[set[int], list[int]]] = []
    for place, own in enumerate(names):
        merged, places = set(own), [place]
        for known, others in [group for group in groups if group[0] & merged]:
            groups.remove((known, others))
            merged, places = merged | known, others + places
        groups.append((merged, places))
    assert sorted(connected(names)) == sorted(sorted(places) for _, places in groups)


@pytest.mark.parametrize("count", [1_000, 4_000])
def test_each_name_is_looked_up_once(count: int) -> None:
    lookups = Counter[int]()

    class Name(int):
        def __hash__(self) -> int:
            lookups[int(self)] += 1
            return super().__hash__()

    assert connected([[Name(number // 2)] for number in range(count)]) == [[n, n + 1] for n in range(0, count, 2)]
    assert set(lookups.values()) == {2}
