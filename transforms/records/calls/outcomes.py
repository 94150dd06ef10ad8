"""Outcomes of tasks: answers, failures, and their cost."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.kernels.durations import percentile
from rankbeam.transforms.records.calls.steps import Subject
from rankbeam.transforms.records.errors import Failure
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

OVER_BUDGET = "max_cost: "
"""Prefix of the warning of a run that stopped making calls because of their cost."""


def over_budget(pools: Sequence[str], calls: int) -> str:
    """The warning of lanes that did not make some calls.

    >>> over_budget(["gemini"], 1200)  # doctest: +ELLIPSIS
    'max_cost: 1,200 calls of gemini were not made, because they might have cost more than was left; ...'
    """
    return (
        f"{OVER_BUDGET}{calls:,} calls of {', '.join(pools)} were not made, because they might have cost more than "
        "was left; nothing is lost, and the next run continues from here"
    )


@dataclass(frozen=True)
class CallAnswer:
    """A task that returned a value."""

    work: str
    name: str
    subjects: tuple[Subject, ...]
    value: Any


@dataclass(frozen=True)
class Recalled:
    """Tasks of one work whose answers the ledger had."""

    work: str
    subjects: Sequence[Subject]
    tasks: Sequence[int]
    values: pa.Array


@dataclass(frozen=True)
class FailedTask:
    """A task that returned no value: one element for each of its subjects."""

    work: str
    subject: Subject
    failure: Failure


@dataclass(frozen=True)
class CallUsage:
    """Usage of one quota pool and model, without the calls that the ledger answered."""

    position: int | None = None  # None for all calls
    calls: int = 0
    shared: int = 0
    tokens: Tokens = NO_TOKENS
    durations: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: "CallUsage") -> "CallUsage":
        """Both together, at the first one's position."""
        return CallUsage(
            self.position,
            self.calls + other.calls,
            self.shared + other.shared,
            self.tokens + other.tokens,
            dict(Counter(self.durations) + Counter(other.durations)),  # `asdict` makes no Counter
        )

    def percentile_s(self, percent: int) -> float | None:
        """A percentile of the durations, in seconds; None where no call was answered."""
        return percentile(self.durations, percent)


@dataclass(frozen=True)
class Usage:
    """The use of a quota pool by a stage."""

    pool: str
    calls: int
    ledger_hits: int
    records: tuple[str, ...] = ()
    stage: str = ""
    model: str | None = None  # the model that was called; None for services that are not models
    tokens: Tokens = NO_TOKENS  # tokens of all attempts, failed ones included
    took: tuple[CallUsage, ...] = ()  # by position; a stored name


def summed(usages: Iterable[CallUsage]) -> tuple[CallUsage, ...]:
    """The usage of calls, once for each position."""
    sums: dict[int | None, CallUsage] = {}
    for item in usages:
        sums[item.position] = sums[item.position] + item if item.position in sums else item
    return tuple(sums.values())


def usages_by_position(usages: Iterable[CallUsage], needed_by: Mapping[int, Collection[int]]) -> dict[int, CallUsage]:
    of: dict[int, CallUsage] = {}
    for item in usages:
        users = () if item.position is None else needed_by.get(item.position, ())
        for user in users:
            here = replace(item, position=user, shared=item.calls if len(users) > 1 else item.shared)
            of[user] = of[user] + here if user in of else here
    return of
