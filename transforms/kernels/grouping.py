"""Group values by key, and positions by the names that they share."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key; keys and values keep the order in which they come.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def connected(names: Sequence[Iterable[Hashable]]) -> list[list[int]]:
    """Groups of positions that share names, directly or through others, in the order of their last positions.

    >>> connected(["ab", "c", "b", "bd"])
    [[1], [0, 2, 3]]
    """
    last = list(range(len(names)))  # a later position of the same group; of the last one, itself
    holders: dict[Hashable, int] = {}

    def end_of(place: int) -> int:
        while last[place] != place:
            last[place] = place = last[last[place]]
        return place

    for place, own in enumerate(names):
        for name in own:
            last[end_of(holders.setdefault(name, place))] = place
    groups = grouped((end_of(place), place) for place in range(len(names)))
    return [groups[end] for end in sorted(groups)]
