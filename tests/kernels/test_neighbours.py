"""The nearest document of another is that of a full search, found by looking at few."""

from collections import UserDict

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.topics import Neighbours, Profile, overlap, profiles

WORDS = st.lists(st.sets(st.sampled_from("abcdefghijkl"), max_size=6), min_size=1, max_size=14)


def by_name(documents: list[set[str]]) -> dict[str, Profile]:
    return {f"d{number:03}": own for number, own in enumerate(profiles([sorted(words) for words in documents]))}


@given(WORDS, st.integers(1, 6))
def test_the_nearest_document_is_that_of_a_look_at_all(documents: list[set[str]], least: int) -> None:
    named = by_name(documents)
    neighbours = Neighbours.of(named)
    for name, own in named.items():
        weights = {other: overlap(own, named[other]) for other in named if other != name}
        best = max(weights, key=lambda other: (weights[other], other), default=None)
        expected = None if best is None or weights[best] < least else best
        assert neighbours.nearest(own, name, least) == expected


class Looked(UserDict[str, Profile]):
    """Profiles that count how often one is looked at."""

    count = 0

    def __getitem__(self, name: str) -> Profile:
        self.count += 1
        return super().__getitem__(name)


def test_all_documents_share_a_word_and_only_those_of_one_group_are_looked_at() -> None:
    groups, size = 300, 5
    named = by_name([{"every", f"group{group}", f"own{group}"} for group in range(groups) for _ in range(size)])
    looked = Looked(named)
    neighbours = Neighbours(looked, Neighbours.of(named).holders)
    for name, own in named.items():
        assert named[neighbours.nearest(own, name) or ""] == own
    assert looked.count == groups * size * (size - 1)
