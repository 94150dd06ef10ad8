"""Known items, the sentinels: questions to a judge with known answers, 24 for each step, written by hand.

Mixed with a run's own questions, they show how far its judge can be trusted, and whether it has changed. Some contain
instructions to the judge, some are long. They are package data, `steps/known_items/STEP.jsonl`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.statistics.agreement import mcnemar_p_value, wilson_interval
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.judging.steps import JudgeQuestion

_FOLDER = "known_items"
_LEAST_SHARE = 0.6  # of known items, below which a judge is of little use


@dataclass(frozen=True)
class KnownItem:
    """One question whose answer is known."""

    id: str  # such as "support-01"
    step: str
    expected: str
    tags: frozenset[str]
    values: Mapping[str, Any]

    @property
    def question(self) -> JudgeQuestion:
        return step_named(self.step).question(self.values)


@cache
def known_items_of(step: str) -> tuple[KnownItem, ...]:
    """The known items of a step; empty if there are none, or if the step's package is no longer installed."""
    file = files("rankbeam.transforms.judge.steps").joinpath(_FOLDER, f"{step}.jsonl")
    shipped = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.is_file() else ()
    known = step_of(step)
    rows = [*shipped, *(() if known is None else known.known_items)]
    return tuple(
        KnownItem(
            row.get("id", f"{step}-{number:02}"),
            step,
            str(row["expected"]),
            frozenset(row.get("tags", ())),
            row["values"],
        )
        for number, row in enumerate(rows, start=1)
    )


@dataclass(frozen=True)
class Accuracy:
    """A judge's accuracy."""

    right: int
    count: int
    low: float
    high: float


def accuracies(items: Iterable[KnownItem], classes: Mapping[str, str], confidence: float = 0.95) -> dict[str, Accuracy]:
    """A judge's accuracy on all items (""), on each expected class, and on each tag."""
    counts = grouped(
        (group, classes.get(item.id) == item.expected) for item in items for group in ("", item.expected, *item.tags)
    )
    return {
        group: Accuracy(sum(right), len(right), *wilson_interval(sum(right), len(right), confidence))
        for group, right in sorted(counts.items())
    }


def is_near_chance(step: str, share: float, low: float) -> bool:
    """Return whether a judge is hardly better on a step's known items than one that always gives the same verdict.

    >>> [is_near_chance("support", share, low) for share, low in ((25 / 72, 0.25), (0.9, 0.8), (0.9, 0.3))]
    [True, False, True]
    """
    expected = Counter(item.expected for item in known_items_of(step))
    chance = max(expected.values(), default=0) / max(1, expected.total())
    return share < _LEAST_SHARE or low <= chance


def drift_p_value(items: Iterable[KnownItem], before: Mapping[str, str], now: Mapping[str, str]) -> float:
    """The p-value of McNemar's test that the judge has not changed, over items answered both times."""
    both = [
        (before[item.id] == item.expected, now[item.id] == item.expected)
        for item in items
        if item.id in before and item.id in now
    ]
    return mcnemar_p_value(both.count((True, False)), both.count((False, True)))
