"""Panels: groups of metrics that share a status, so that an unavailable judge does not affect nDCG.

The metrics of rankings are one panel, as a query has all of them or none. Every judged metric is a panel of its own: a
query may have a value of one, lack another because a call failed, and lack a third because the value is undefined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankbeam.transforms.records.metrics.judged import JudgedMetric
from rankbeam.transforms.records.metrics.names import Metric

RETRIEVAL = "retrieval"
"""The name of the panel of all metrics of rankings."""


AnyMetric = Metric | JudgedMetric


class Range(NamedTuple):
    """The lowest and the highest value that a query can have; None where there is no upper bound."""

    lowest: float
    highest: float | None


def range_of(metric: AnyMetric) -> Range:
    """The values that a query can have.

    >>> from rankbeam.transforms.records.metrics.judged import parse_any
    >>> range_of(parse_any("NumRet")), range_of(parse_any("AnswerRelevance(ragas)"))
    (Range(lowest=0.0, highest=None), Range(lowest=-1.0, highest=1.0))
    """
    if isinstance(metric, JudgedMetric):
        return Range(metric.definition.lowest, metric.definition.highest)
    return Range(0.0, metric.definition.highest)


def is_whole(metric: AnyMetric) -> bool:
    """Whether its values are counts."""
    return isinstance(metric, Metric) and metric.definition.summed


@dataclass(frozen=True)
class Panel:
    """Metrics that share a status."""

    name: str
    metrics: tuple[AnyMetric, ...]

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The values that a query can have, for each metric."""
        return tuple(map(range_of, self.metrics))


def panels_of(metrics: Sequence[AnyMetric]) -> tuple[Panel, ...]:
    """The panels of an experiment: that of rankings first, whether it has metrics or not, then the judged ones.

    >>> from rankbeam.transforms.records.metrics.judged import parse_any
    >>> [panel.name for panel in panels_of([*map(parse_any, ("Faithfulness", "AP", "RR"))])]
    ['retrieval', 'Faithfulness']
    """
    judged = [Panel(str(each), (each,)) for each in metrics if isinstance(each, JudgedMetric)]
    return (Panel(RETRIEVAL, tuple(each for each in metrics if isinstance(each, Metric))), *judged)


def column_order(metrics: Sequence[AnyMetric]) -> list[int]:
    """For each metric, its position among those of all panels, one panel after the other.

    >>> from rankbeam.transforms.records.metrics.judged import parse_any
    >>> column_order([*map(parse_any, ("Faithfulness", "AP", "RR"))])
    [2, 0, 1]
    """
    by_panel = [str(metric) for panel in panels_of(metrics) for metric in panel.metrics]
    return [by_panel.index(str(metric)) for metric in metrics]
