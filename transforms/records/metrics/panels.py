"""Panels: groups of metrics that share a status, so that an unavailable judge does not affect nDCG.

The metrics of rankings are one panel, as a query has all of them or none. Every judged metric is a panel of its own: a
query may have a value of one, lack another because a call failed, and lack a third because the value is undefined.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rankbeam.transforms.records.metrics.names import Metric

RETRIEVAL = "retrieval"  # the name of the panel of all metrics of rankings


class JudgedName(Protocol):
    """A judged metric, whose definition the stage that judges has."""

    @property
    def lowest(self) -> float: ...

    @property
    def highest(self) -> float | None: ...

    @property
    def lower_is_better(self) -> bool: ...

    @property
    def labels(self) -> bool: ...

    @property
    def bits(self) -> int: ...


AnyMetric = Metric | JudgedName


class Range(NamedTuple):
    """The lowest and the highest value that a query can have; None if there is no upper bound."""

    lowest: float
    highest: float | None


def range_of(metric: AnyMetric) -> Range:
    """The values that a query can have.

    >>> from rankbeam.transforms.judge.metrics import parse_all
    >>> [range_of(metric) for metric in parse_all(["NumRet", "AnswerRelevance(ragas)"])]
    [Range(lowest=0.0, highest=None), Range(lowest=-1.0, highest=1.0)]
    """
    return Range(metric.lowest, metric.highest)


_COUNTS_AND_COSTS = ("Steps", "Retrievals", "Tokens", "InputTokens", "OutputTokens", "Cost", "Seconds")
LOWER_IS_BETTER = frozenset(("Hallucination", "NoiseSensitivity", *_COUNTS_AND_COSTS))
"""The metrics of which lower values are better in runs of older releases, whose tables do not say it."""


def was_lower_better(metric: str) -> bool:
    """Return whether lower values of a metric are better, in a run of an older release.

    >>> was_lower_better("NoiseSensitivity(relevant,judge=lexical)"), was_lower_better("nDCG@10")
    (True, False)
    """
    return re.split("[(@]", metric)[0] in LOWER_IS_BETTER


def sign_of(*, lower_is_better: bool) -> float:
    """-1 for a metric of which lower values are better, such as one of errors or costs; else 1."""
    return -1.0 if lower_is_better else 1.0


@dataclass(frozen=True)
class Panel:
    """Metrics that share a status."""

    name: str
    metrics: tuple[AnyMetric, ...]

    @property
    def ranges(self) -> tuple[Range, ...]:
        return tuple(map(range_of, self.metrics))

    @property
    def has_labels(self) -> bool:
        """True if values are human ones, and means combine labels and the judge's values."""
        return any(metric.labels for metric in self.metrics)


def panels_of(metrics: Sequence[AnyMetric]) -> tuple[Panel, ...]:
    """The panels of an experiment: rankings first, with or without metrics, then the judged ones.

    >>> from rankbeam.transforms.judge.metrics import parse_all
    >>> [panel.name for panel in panels_of(parse_all(["Faithfulness", "AP", "RR"]))]
    ['retrieval', 'Faithfulness']
    """
    judged = [Panel(str(metric), (metric,)) for metric in metrics if not isinstance(metric, Metric)]
    return (Panel(RETRIEVAL, tuple(metric for metric in metrics if isinstance(metric, Metric))), *judged)


def column_order(metrics: Sequence[AnyMetric]) -> list[int]:
    """For each metric, its position among those of all panels, one panel after the other.

    >>> from rankbeam.transforms.judge.metrics import parse_all
    >>> column_order(parse_all(["Faithfulness", "AP", "RR"]))
    [2, 0, 1]
    """
    ordered = [str(metric) for panel in panels_of(metrics) for metric in panel.metrics]
    return [ordered.index(str(metric)) for metric in metrics]
