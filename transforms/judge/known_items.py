"""Known items, the sentinels: questions to a judge whose answers are known, written by hand, 24 for each step.

Mixed in among a run's own questions they say how far its judge can be trusted, and whether it has changed. Some hold
instructions to the judge, some are long. They are package data, `steps/known_items/STEP.jsonl`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.kernels.statistics.agreement import mcnemar_p_value, wilson_interval

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


@cache
def known_items() -> Mapping[str, tuple[KnownItem, ...]]:
    """By step, its items."""
    found = {}
    for file in files("rankbeam.transforms.judge.steps").joinpath(_FOLDER).iterdir():
        step = file.name.removesuffix(".jsonl")
        rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        found[step] = tuple(
            KnownItem(row["id"], step, str(row["expected"]), frozenset(row["tags"]), row["values"]) for row in rows
        )
    return MappingProxyType(dict(sorted(found.items())))


def answered_class(step: str, answer: Any) -> str:
    """The class of an answer to a known item: its verdict, grade or kind, or which or how many parts it names.

    >>> answered_class("claims", ("one", "two")), answered_class("claims", ())
    ('several', 'none')
    >>> answered_class("sentences", (True, False, True)), answered_class("sentences", (False,))
    ('1, 3', 'none')
    """
    if step in ("claims", "statements"):
        return ("none", "one", "several")[min(len(answer), 2)]
    if step == "questions":
        return "noncommittal" if all(question.noncommittal for question in answer) else "committal"
    if step == "sentences":
        return ", ".join(str(number) for number, is_needed in enumerate(answer, start=1) if is_needed) or "none"
    if step == "grade":
        return str(answer.grade)
    return str(answer.kind.value if step == "answer_kind" else answer[0].verdict.value)


@dataclass(frozen=True)
class Accuracy:
    """How often a judge was right."""

    right: int
    count: int
    low: float
    high: float


def accuracies(items: Iterable[KnownItem], classes: Mapping[str, str], confidence: float = 0.95) -> dict[str, Accuracy]:
    """How often a judge was right: on all items (""), for every expected class, and for every tag."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for item in items:
        for group in ("", item.expected, *item.tags):
            counts[group].append(classes.get(item.id) == item.expected)
    return {
        group: Accuracy(sum(right), len(right), *wilson_interval(sum(right), len(right), confidence))
        for group, right in sorted(counts.items())
    }


def is_near_chance(step: str, share: float, low: float) -> bool:
    """Return whether a judge is hardly better on the known items of a step than one who always says the same.

    >>> [is_near_chance("support", share, low) for share, low in ((25 / 72, 0.25), (0.9, 0.8), (0.9, 0.3))]
    [True, False, True]
    """
    expected = Counter(item.expected for item in known_items().get(step, ()))
    chance = max(expected.values(), default=0) / max(1, expected.total())
    return share < _LEAST_SHARE or low <= chance


def drift_p_value(items: Iterable[KnownItem], before: Mapping[str, str], now: Mapping[str, str]) -> float:
    """How likely a judge that has not changed differs as much: McNemar's test over items answered both times."""
    both = [
        (before[item.id] == item.expected, now[item.id] == item.expected)
        for item in items
        if item.id in before and item.id in now
    ]
    return mcnemar_p_value(both.count((True, False)), both.count((False, True)))
