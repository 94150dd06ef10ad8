"""Waves: the order of stages that make calls. Two concurrent stages on one quota pool would use twice its quota."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rankbeam.transforms.records.errors import InputError


@dataclass(frozen=True)
class CallStage:
    """A stage that makes calls."""

    name: str  # such as "retrieve"
    pools: Collection[str]
    after: Collection[str] = ()


def refuse_shared_pools(stages: Sequence[CallStage]) -> None:
    """Refuse stages that share a quota pool without an order between them.

    >>> refuse_shared_pools([CallStage("retrieve", {"a"}), CallStage("judge", {"a"}, after={"retrieve"})])
    """
    order = {stage.name: frozenset(_before(stage.name, {each.name: each.after for each in stages})) for stage in stages}
    for one, other in combinations(stages, 2):
        shared = sorted(set(one.pools) & set(other.pools))
        if shared and one.name not in order[other.name] and other.name not in order[one.name]:
            problem = f"stages {one.name!r} and {other.name!r} would call the quota pool {shared[0]!r} at the same time"
            raise InputError(f"{problem}, at twice its quota; give one of them a pool of its own with quota:")


def _before(name: str, after: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The stages that have ended before one begins, some more than once."""
    for earlier in after.get(name, ()):
        yield earlier
        yield from _before(earlier, after)
