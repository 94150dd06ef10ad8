"""Rows of the tables of means and of comparisons, as values: the same when they are written and when they are read."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any

from rankbeam.transforms.records.metrics.panels import RETRIEVAL, sign_of, was_lower_better

STUDENT = "student"  # the `p_method` of a difference by labels: Student's test that its interval inverts

COUNTS = ("empty", "failed", "missing", "undefined", "not_asked")
"""The columns that count queries other than those with results and a score."""


FEW_QUERIES = 20
"""Over fewer queries than this, an interval may hold less often than it says: its level assumes large samples."""
FEW_DIFFERENT = 10  # if fewer queries differ between two configurations, they do not show how much differences vary
FEW = f"fewer than {FEW_QUERIES} queries or clusters: the interval is unreliable"


@dataclass(frozen=True)
class MetricSummary:
    """One metric of one configuration over one slice: the statistics of a `ConfigurationMetric`."""

    mean: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    lowest: float | None
    highest: float | None
    tie_lowest: float | None = None
    tie_highest: float | None = None
    clusters: float | None = None
    unjudged_lowest: float | None = None
    unjudged_highest: float | None = None
    judge_power: float | None = None
    effective_labels: float | None = None


@dataclass(frozen=True, kw_only=True)
class ConfigurationMetric(MetricSummary):
    """A `MetricSummary` with its names and counts, as `tables.CONFIGURATION_METRICS` describes them."""

    config_id: str
    slice: str
    metric: str
    queries: int
    empty: int
    failed: int
    missing: int
    joint_low: float | None = None
    joint_high: float | None = None
    may_be_best: bool | None = None
    equal_to: str | None = None
    panel: str = RETRIEVAL
    undefined: int = 0
    not_asked: int = 0
    lower_is_better: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ConfigurationMetric":
        """A row of the table, perhaps of an older run; absent columns and nulls take the defaults."""
        return cls(**_field_values(cls, row))

    @property
    def sign(self) -> float:
        """-1 if lower values are better, else 1."""
        return sign_of(lower_is_better=self.lower_is_better)

    @property
    def failure_rate(self) -> float:
        """The share of queries that failed; missing queries are not counted.

        >>> ConfigurationMetric.of({"queries": 2, "failed": 1, "missing": 5, "undefined": 1}).failure_rate
        0.25
        """
        return self.failed / max(1, self.requested)

    @property
    def requested(self) -> int:
        """The number of queries for which a value was requested."""
        return self.queries + self.undefined + self.failed

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.ci_low is None or self.ci_high is None else (self.ci_low, self.ci_high)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; without one, the mean twice."""
        return self.interval or (self.mean or 0.0, self.mean or 0.0)

    @property
    def is_unreliable(self) -> bool:
        """True if there is an interval that rests on few queries."""
        return self.interval is not None and evidence_of(self) < FEW_QUERIES

    @property
    def half_width(self) -> float | None:
        """The distance from the mean to the farther end of its interval.

        >>> ConfigurationMetric.of({"mean": 1.0, "ci_low": 0.875, "ci_high": 1.0}).half_width
        0.125
        """
        if self.mean is None or self.interval is None:
            return None
        low, high = self.interval
        return max(high - self.mean, self.mean - low)

    @property
    def absent(self) -> str:
        """The reason for a missing mean, in one word; a dash if there is no query.

        >>> ConfigurationMetric.of({"queries": 0, "failed": 0, "undefined": 2, "missing": 0}).absent
        'undefined'
        """
        if not (self.failed or self.undefined or self.missing):
            return "–"
        return max(("failed", "undefined", "missing"), key=lambda name: int(getattr(self, name)))


class Verdict(StrEnum):
    """The result of comparing a configuration with its baseline."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "undecided"
    EQUAL = "equal"
    UNKNOWN = "unknown"


def significance_level(confidence: float) -> float:
    """The highest p-value that is significant.

    >>> significance_level(0.95)
    0.05
    """
    return round(1.0 - confidence, 12)  # not 0.050000000000000044


@dataclass(frozen=True)
class Difference:
    """One metric of one configuration against another over one slice: the statistics of a `Comparison`."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    p_value: float | None
    t_p_value: float | None
    effect_size: float | None
    detectable: float | None
    queries: int
    unpaired: int
    wins: int
    ties: int
    losses: int
    p_method: str | None
    clusters: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Difference):
    """A difference with its names and corrected p-values, as `tables.COMPARISONS` describes it."""

    config_id: str
    baseline: str
    slice: str
    metric: str
    p_adjusted: float | None = None
    q_value: float | None = None
    stage: str | None = None
    lower_is_better: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Comparison":
        """A row of the table; absent columns are None."""
        return cls(**_field_values(cls, row))

    @property
    def is_unreliable(self) -> bool:
        """True if there is an interval that rests on few queries."""
        return self.ci_low is not None and evidence_of(self) < FEW_QUERIES

    @property
    def shows_spread(self) -> bool:
        """True if enough queries differ to tell how much differences vary.

        If fewer do, the spread is that of the few, and further queries may show differences that none of these shows.
        """
        return self.p_method == STUDENT or self.wins + self.losses >= FEW_DIFFERENT

    @property
    def gain(self) -> float:
        """The difference, above 0 if the configuration is better than the baseline."""
        return sign_of(lower_is_better=self.lower_is_better) * (self.difference or 0.0)

    @property
    def corrected_p_value(self) -> float | None:
        """The p-value corrected for the number of comparisons; without a correction, the plain one."""
        return self.p_value if self.p_adjusted is None else self.p_adjusted

    def is_significant(self, confidence: float) -> bool | None:
        """Return whether the difference is significant at a confidence; None if it was not tested."""
        if self.corrected_p_value is None:
            return None
        return self.corrected_p_value <= significance_level(confidence) and bool(self.difference)

    def verdict(self, confidence: float) -> Verdict:
        """The verdict at a confidence.

        >>> known = {"metric": "AP", "difference": 0.1, "p_value": 0.01, "p_adjusted": 0.02, "queries": 9, "wins": 9}
        >>> row = Comparison.of(known)
        >>> str(row.verdict(0.95)), str(row.verdict(0.99))
        ('better', 'undecided')
        >>> str(Comparison.of({**known, "metric": "Hallucination"}).verdict(0.95))
        'worse'
        >>> [str(Comparison.of({"difference": d, "queries": 9, "ties": 9}).verdict(0.95)) for d in (0.0, None)]
        ['equal', 'unknown']
        """
        is_known = self.difference is not None and self.p_method != STUDENT  # only part of the queries has labels
        if is_known and self.queries and not self.wins and not self.losses:
            return Verdict.EQUAL
        is_significant = self.is_significant(confidence)
        if is_significant is None:
            return Verdict.UNKNOWN
        if not is_significant:
            return Verdict.UNDECIDED
        return Verdict.BETTER if self.gain > 0.0 else Verdict.WORSE


def evidence_of(row: ConfigurationMetric | Comparison) -> float:
    """The number of units of evidence: the effective number of clusters if there are any, else of queries."""
    return row.queries if row.clusters is None else row.clusters


def _field_values(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every field: null if the row has none, unless the field has a default or follows from the name."""
    values = {entry.name: row.get(entry.name) for entry in fields(kind)}
    if values["lower_is_better"] is None:
        values["lower_is_better"] = was_lower_better(row.get("metric", ""))
    optional = {entry.name for entry in fields(kind) if entry.default is not MISSING}
    return {name: value for name, value in values.items() if value is not None or name not in optional}
