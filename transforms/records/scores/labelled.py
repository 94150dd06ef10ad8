"""Means by labels and judge together: the state that merges, and the statistics drawn from it."""

import math
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.intervals import student_t_tail
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.ppi import LEAST_LABELS, LabelledSample, PpiEstimate, Spread
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.means import MetricSummary, or_null
from rankbeam.transforms.records.scores.rows import Difference

MOST_IN_PART = 0.1
"""Share of the queries with labels whose labels may lack an item for a configuration."""
_NO_TIES = MappingProxyType({"tie_lowest": None, "tie_highest": None})
STUDENT = "student"
"""The `p_method` of a difference by labels: Student's test that its interval inverts."""


@dataclass(frozen=True)
class LabelledMoments:
    """Moments of labelled queries and of all others that have a judged value.

    Attributes:
        labelled: human values, judged values, and their differences.
        others: judged values of the other queries.
        in_part: number of the others whose labels lack an item.
    """

    labelled: Moments
    others: Moments
    in_part: int = 0

    @classmethod
    def of(cls, labels: FloatArray, judged: FloatArray, in_part: BoolArray, chosen: BoolArray) -> "LabelledMoments":
        """The state of some queries.

        Args:
            labels: float64[n], NaN where a query is not labelled.
            judged: float64[n], NaN where it has no judged value; such queries are left out.
            in_part: bool[n], the labels of a query lack an item.
            chosen: bool[n].
        """
        has_both = chosen & ~np.isnan(judged) & ~np.isnan(labels)
        has_judged = chosen & ~np.isnan(judged) & np.isnan(labels)
        ours, theirs = labels[has_both], judged[has_both]
        columns = np.column_stack([ours, theirs, ours - theirs])
        incomplete = int((has_judged & in_part).sum())
        return cls(Moments.of(columns), Moments.of(judged[has_judged][:, None]), incomplete)

    def merge(self, other: "LabelledMoments") -> "LabelledMoments":
        """The state of both sets of queries."""
        return LabelledMoments(
            self.labelled.merge(other.labelled), self.others.merge(other.others), self.in_part + other.in_part
        )

    def estimate(self, lowest: float, highest: float) -> PpiEstimate | None:
        """The estimate of the mean; None for too few labels, or if the labelled queries are not a random sample.

        Of a configuration that was not drawn, only answers that equal those of others are labelled.
        """
        count = self.labelled.count
        if count < LEAST_LABELS or self.in_part > MOST_IN_PART * (count + self.in_part):
            return None
        labels, judged, apart = self._spreads(self.labelled)
        covariance = (labels.variance + judged.variance - apart.variance) / 2.0
        (others,) = self._spreads(self.others)
        sample = LabelledSample(labels, judged, covariance, others)
        return PpiEstimate(sample, sample.power, lowest, highest)

    @staticmethod
    def _spreads(moments: Moments) -> list[Spread]:
        count = moments.count
        columns = zip(moments.means(), moments.variances(), strict=True)
        return [
            Spread(count, mean, 0.0 if math.isnan(variance) else variance * (count - 1) / count)
            for mean, variance in columns
        ]


def with_labels(plain: MetricSummary, state: LabelledMoments, ends: Range, confidence: float) -> MetricSummary:
    """The summary of a mean by labels and judge; without numbers where there are too few labels."""
    estimate = state.estimate(ends.lowest, 1.0 if ends.highest is None else ends.highest)
    if estimate is None:
        return MetricSummary(None, None, None, None, None, None, None, None)
    low, high = estimate.interval((1.0 - confidence) / 2.0)
    is_known = plain.lowest == plain.highest
    numbers = [estimate.mean, low, high, estimate.standard_error]
    bounds = [estimate.mean, estimate.mean] if is_known else [ends.lowest, ends.highest]
    names = ("mean", "ci_low", "ci_high", "std_error", "lowest", "highest")
    summary = MetricSummary(**dict(zip(names, map(or_null, numbers + bounds), strict=True)), **_NO_TIES)
    return replace(summary, judge_power=estimate.power, effective_labels=or_null(estimate.effective_labels))


def difference_with_labels(plain: Difference, state: LabelledMoments, ends: Range, confidence: float) -> Difference:
    """A difference by labels and judge; without numbers where too few queries are labelled for both."""
    width = (1.0 if ends.highest is None else ends.highest) - ends.lowest
    estimate, count = state.estimate(-width, width), state.labelled.count
    if estimate is None:
        nothing = Difference(None, None, None, None, None, None, None, None, count, plain.unpaired, 0, 0, 0, None)
        return replace(nothing, wins=plain.wins, ties=plain.ties, losses=plain.losses)
    low, high = estimate.interval((1.0 - confidence) / 2.0)
    centre, error = estimate.widened
    p_value = 2.0 * student_t_tail(abs(centre / error), count - 1) if error > 0.0 else 1.0
    return replace(
        plain,
        difference=or_null(estimate.mean),
        ci_low=or_null(low),
        ci_high=or_null(high),
        std_error=or_null(estimate.standard_error),
        p_value=p_value,
        t_p_value=p_value,
        effect_size=None,
        detectable=or_null(detectable_difference(estimate.standard_error, count)),
        queries=count,
        p_method=STUDENT,
    )
