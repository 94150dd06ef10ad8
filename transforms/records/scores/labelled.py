"""Means by labels and judge together: the state that merges, and the statistics drawn from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.intervals import student_t_tail
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.ppi import (
    LEAST_LABELS,
    LabelledSample,
    PpiEstimate,
    Spread,
    estimate,
    stratified_estimate,
)
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.means import or_null
from rankbeam.transforms.records.scores.rows import STUDENT, Difference, MetricSummary

MOST_IN_PART = 0.1  # highest share of the queries with labels whose labels lack an item for a configuration
_LEAST_OF_STRATUM = 2


@dataclass(frozen=True)
class LabelledMoments:
    """Moments of labelled queries and of all others that have a judged value."""

    labelled: Moments  # human values, judged values, and their differences
    others: Moments  # judged values of the other queries
    certain: Moments  # judged values of queries with nothing to label
    in_part: int = 0  # number of other queries whose labels lack an item
    strata: Mapping[str, "LabelledMoments"] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        labels: FloatArray,
        judged: FloatArray,
        in_part: BoolArray,
        certain: BoolArray,
        chosen: BoolArray,
        strata: Mapping[str, BoolArray] | None = None,
    ) -> "LabelledMoments":
        """The state of some queries.

        Args:
            labels: float64[n], NaN if a query is not labelled.
            judged: float64[n], NaN if it has no judged value; such queries are left out.
            in_part: bool[n], the labels of a query lack an item.
            certain: bool[n], a query has nothing to label.
            chosen: bool[n].
            strata: bool[n], the queries of each stratum; None for none.
        """
        has_value = chosen & ~np.isnan(judged)
        has_both = has_value & ~certain & ~np.isnan(labels)
        has_judged = has_value & ~certain & np.isnan(labels)
        ours, theirs = labels[has_both], judged[has_both]
        columns = np.column_stack([ours, theirs, ours - theirs])
        incomplete = int((has_judged & in_part).sum())
        by_stratum = {
            name: cls.of(labels, judged, in_part, certain, chosen & members)
            for name, members in (strata or {}).items()
            if (chosen & members).any()
        }
        others, known_moments = (Moments.of(judged[rows][:, None]) for rows in (has_judged, has_value & certain))
        return cls(Moments.of(columns), others, known_moments, incomplete, by_stratum)

    def merge(self, other: "LabelledMoments") -> "LabelledMoments":
        strata = dict(self.strata)
        for name, state in other.strata.items():
            strata[name] = strata[name].merge(state) if name in strata else state
        labelled, others = self.labelled.merge(other.labelled), self.others.merge(other.others)
        certain = self.certain.merge(other.certain)
        return LabelledMoments(labelled, others, certain, self.in_part + other.in_part, strata)

    def estimate(self, lowest: float, highest: float) -> PpiEstimate | None:
        """The estimate of the mean; None for too few labels, or if the labelled queries are not a random sample.

        If a configuration was not drawn, only those of its answers that equal others' answers are labelled.
        """
        count = self.labelled.count
        if count < LEAST_LABELS or self.in_part > MOST_IN_PART * (count + self.in_part):
            return None
        states = self._estimable()
        if len(states) > 1:
            return stratified_estimate([state.sample for state in states], lowest, highest)
        return estimate(self.sample, lowest, highest)

    @property
    def sample(self) -> LabelledSample:
        """The moments of labels and judged values.

        A query with nothing to label counts as labelled, drawn with the same probability as all others.
        """
        labels, judged, differences = self._spreads(self.labelled)
        covariance = (labels.variance + judged.variance - differences.variance) / 2.0
        (others,), (certain,) = self._spreads(self.others), self._spreads(self.certain)
        sample = LabelledSample(labels, judged, covariance, others)
        return sample.with_known(certain) if certain.count else sample

    def _estimable(self) -> "list[LabelledMoments]":
        """The states of strata with two labels or more; smaller ones are joined to the next larger stratum."""
        ordered = sorted(self.strata.items(), key=lambda item: (item[1].labelled.count, item[0]))
        states = [state for _, state in ordered]
        while len(states) > 1 and states[0].labelled.count < _LEAST_OF_STRATUM:
            first, second, *rest = states
            states = sorted([first.merge(second), *rest], key=lambda state: state.labelled.count)
        return states

    @staticmethod
    def _spreads(moments: Moments) -> list[Spread]:
        count = moments.count
        columns = zip(moments.means(), moments.variances(), strict=True)
        return [
            Spread(count, mean, 0.0 if math.isnan(variance) else variance * (count - 1) / count)
            for mean, variance in columns
        ]


def with_labels(plain: MetricSummary, state: LabelledMoments, ends: Range, confidence: float) -> MetricSummary:
    """The summary of a mean by labels and judge; without numbers if there are too few labels."""
    result = state.estimate(ends.lowest, 1.0 if ends.highest is None else ends.highest)
    if result is None:
        return MetricSummary(None, None, None, None, None, None)
    low, high = result.interval((1.0 - confidence) / 2.0)
    is_known = plain.lowest == plain.highest
    numbers = [result.mean, low, high, result.standard_error]
    bounds = [result.mean, result.mean] if is_known else [ends.lowest, ends.highest]
    names = ("mean", "ci_low", "ci_high", "std_error", "lowest", "highest")
    summary = MetricSummary(**dict(zip(names, map(or_null, numbers + bounds), strict=True)))
    return replace(summary, judge_power=result.power, effective_labels=or_null(result.effective_labels))


def difference_with_labels(plain: Difference, state: LabelledMoments, ends: Range, confidence: float) -> Difference:
    """A difference by labels and judge; without numbers if too few queries are labelled for both."""
    width = (1.0 if ends.highest is None else ends.highest) - ends.lowest
    result, count = state.estimate(-width, width), state.labelled.count
    if result is None:
        nothing = Difference(None, None, None, None, None, None, None, None, count, plain.unpaired, 0, 0, 0, None)
        return replace(nothing, wins=plain.wins, ties=plain.ties, losses=plain.losses)
    low, high = result.interval((1.0 - confidence) / 2.0)
    centre, error = result.widened
    p_value = 2.0 * student_t_tail(abs(centre / error), result.degrees) if error > 0.0 else 1.0
    return replace(
        plain,
        difference=or_null(result.mean),
        ci_low=or_null(low),
        ci_high=or_null(high),
        std_error=or_null(result.standard_error),
        p_value=p_value,
        t_p_value=p_value,
        effect_size=None,
        detectable=or_null(detectable_difference(result.standard_error, count)),
        queries=count,
        p_method=STUDENT,
    )
