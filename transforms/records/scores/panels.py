"""Panels: groups of metrics that share a status, so that a judge that is down moves no nDCG.

The metrics of rankings are one panel, as a query has all of them or none. Every judged metric is a panel of its own: a
query may have a value of one, none of the next because a call failed, and none of a third because it does not exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankbeam.transforms.records.metrics.names import Metric

RETRIEVAL = "retrieval"
"""The name of the panel of all metrics of rankings."""


@dataclass(frozen=True)
class JudgedMetric:
    """What the statistics have to know of a metric whose values are judged, one query at a time.

    Attributes:
        name: the canonical one, such as `Faithfulness`; also that of its panel.
        lowest: the lowest value that a query can have.
        highest: the highest one; None where there is no bound.
    """

    name: str
    lowest: float = 0.0
    highest: float | None = 1.0

    def __str__(self) -> str:
        """The canonical name."""
        return self.name


AnyMetric = Metric | JudgedMetric


class Range(NamedTuple):
    """The lowest and the highest value that a query can have; None where there is no upper bound."""

    lowest: float
    highest: float | None


def range_of(metric: AnyMetric) -> Range:
    """The values that a query can have.

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> range_of(parse_metric("NumRet")), range_of(JudgedMetric("AnswerRelevance(ragas)", lowest=-1.0))
    (Range(lowest=0.0, highest=None), Range(lowest=-1.0, highest=1.0))
    """
    if isinstance(metric, JudgedMetric):
        return Range(metric.lowest, metric.highest)
    return Range(0.0, metric.definition.highest)


def is_whole(metric: AnyMetric) -> bool:
    """Whether its values are counts."""
    return isinstance(metric, Metric) and metric.definition.summed


@dataclass(frozen=True)
class Panel:
    """Metrics that share a status.

    Attributes:
        name: `RETRIEVAL`, or that of its only metric.
        metrics: in the experiment's order; the panel of rankings may have none.
    """

    name: str
    metrics: tuple[AnyMetric, ...]

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The values that a query can have, for each metric."""
        return tuple(map(range_of, self.metrics))


def panels_of(metrics: Sequence[AnyMetric]) -> tuple[Panel, ...]:
    """The panels of an experiment: that of rankings first, whether it has metrics or not, then the judged ones.

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> [panel.name for panel in panels_of([JudgedMetric("Faithfulness"), parse_metric("AP"), parse_metric("RR")])]
    ['retrieval', 'Faithfulness']
    """
    judged = [Panel(each.name, (each,)) for each in metrics if isinstance(each, JudgedMetric)]
    return (Panel(RETRIEVAL, tuple(each for each in metrics if isinstance(each, Metric))), *judged)


def column_order(metrics: Sequence[AnyMetric]) -> list[int]:
    """For each metric, its position among those of all panels, one panel after the other.

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> column_order([JudgedMetric("Faithfulness"), parse_metric("AP"), parse_metric("RR")])
    [2, 0, 1]
    """
    by_panel = [str(metric) for panel in panels_of(metrics) for metric in panel.metrics]
    return [by_panel.index(str(metric)) for metric in metrics]
