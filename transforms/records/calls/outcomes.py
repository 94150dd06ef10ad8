"""Outcomes of tasks: answers, failures, and their cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rankbeam.transforms.records.calls.steps import Subject
from rankbeam.transforms.records.calls.took import Took
from rankbeam.transforms.records.failures import Failure
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
class Usage:
    """The use of a quota pool by a stage."""

    pool: str
    calls: int
    ledger_hits: int
    records: tuple[str, ...] = ()
    stage: str = ""
    model: str | None = None  # the model that was called; None for services that are not models
    tokens: Tokens = NO_TOKENS  # tokens of all attempts, failed ones included
    took: tuple[Took, ...] = ()
