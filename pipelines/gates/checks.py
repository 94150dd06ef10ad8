"""Check the results of a run against gates. A gate without a value is missed, or shown as new: none passes silently."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

from rankbeam.pipelines.compare.compare import ComparisonQuestion, compare, slices_matching
from rankbeam.pipelines.gates.gates import FAILURE_RATE, MONITOR, SENTINELS, Gate, KnownNames, located_gates
from rankbeam.pipelines.monitor.changes import MonitorResult, Tolerance, Tolerances, monitor_run
from rankbeam.pipelines.results.audit import problem_of_gate
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric, is_judged, parse_all
from rankbeam.transforms.judge.quality import near_chance
from rankbeam.transforms.records.errors import InputError, did_you_mean, pluralize
from rankbeam.transforms.records.scores.rows import FEW, Comparison, ConfigurationMetric, Verdict, evidence_of
from rankbeam.transforms.records.slices import ALL

_COLUMNS = {
    "mean": "mean",
    "low": "ci_low",
    "high": "ci_high",
    "difference": "difference",
    "difference_low": "ci_low",
    "difference_high": "ci_high",
}

_EQUAL = "equal at every query"
_ENDS = ("low", "high", "difference_low", "difference_high")

Measured = tuple[float | None, str]
"""A value, with what makes it doubtful, if anything; or None and the reason for its absence."""


def noise_warnings(run: Results, gates: Sequence[Gate], confidence: float) -> Iterator[str]:
    """That a gated metric detects smaller differences than the judge, asked again, may make.

    Two means over N queries, each judged k times with a standard deviation s within an item, differ by up to
    z · s · sqrt(2 / (N · k)). It is an upper bound: configurations share verdicts, and values average several.
    """
    spread: dict[str, float] = {}
    for of_step in run.judge_quality:
        spread[of_step["step"]] = max(spread.get(of_step["step"], 0.0), of_step["within_sd"] or 0.0)
    if not any(spread.values()):
        return
    samples = run.judge_settings.get("samples", 1)
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    for metric in dict.fromkeys(gate.metric for gate in gates if gate.metric):
        slices = {name for gate in gates if gate.metric == metric for name in slices_matching(gate.slice, run.slices)}
        deviation = max((spread.get(step, 0.0) for step in steps_of(metric)), default=0.0)
        for row in run.comparisons:
            if row.metric != metric or row.slice not in slices or row.detectable is None:
                continue
            noise = z * deviation * math.sqrt(2.0 / (row.queries * samples))
            if row.detectable < noise:
                detects = f"the gate on {metric} can detect a difference of {row.detectable:.4f}"
                yield f"{detects}, but repeating the judge's verdicts may cause one of {noise:.4f}; raise judge.samples"
                break


def steps_of(name: str) -> tuple[str, ...]:
    """The steps of a judged metric; none of another."""
    from rankbeam.transforms.judge.ask_known import known_steps  # few runs have a judge

    return known_steps(metric for metric in parse_all([name]) if isinstance(metric, JudgedMetric))


@dataclass(frozen=True)
class Check:
    """A gate, checked for one configuration and slice."""

    gate: Gate
    configuration: str
    slice: str
    measured: float | None
    reason: str = ""
    is_new: bool = False

    @property
    def is_met(self) -> bool:
        """True if the value is within the limit, or the gate skips what is new."""
        if self.measured is None:
            return self.is_skipped
        return self.gate.is_met(self.measured)

    @property
    def is_skipped(self) -> bool:
        """True if there is nothing to hold against the limit yet, and the gate says to skip that."""
        return self.is_new and (self.gate.skips_new or self.gate.value == MONITOR)

    @property
    def margin(self) -> float | None:
        """The distance of the value from the limit; negative where the gate is missed."""
        if self.measured is None:
            return None
        return self.measured - self.gate.limit if self.gate.at_least else self.gate.limit - self.measured

    def facts(self) -> dict[str, Any]:
        """The columns that a row of the table and a JSON document share."""
        return {
            "slice": self.slice,
            "metric": self.gate.metric or None,
            "value": self.gate.value,
            "at_least" if self.gate.at_least else "at_most": self.gate.limit,
            "found": self.measured,
            "margin": self.margin,
            "met": self.is_met,
        }


def known_of(run: Results, other: Results | None) -> KnownNames:
    names = [row["name"] for row in run.configurations]
    return KnownNames(names, run.metrics, run.sliced_by, run.baseline if other is None else None)


def tolerances_of(run: Results, size: float | None) -> Tolerances:
    """The tolerances of a run: one size for all metrics, else those of the experiment's gates."""
    lower = frozenset(filter(run.lower_is_better, run.metrics))
    if size is not None or not run.experiment_file.value.get("gates"):
        return Tolerances(size or 0.0, lower)
    known = known_of(run, None)
    by_name: dict[tuple[str, str], list[Tolerance]] = {}
    for gate in located_gates(run.experiment_file, known):
        if gate.value == MONITOR:
            for name in gate.configurations(known.configurations, known.baseline):
                tolerance = Tolerance(abs(gate.limit), not gate.at_least)
                by_name.setdefault((name, gate.metric), []).append(tolerance)
    return Tolerances(0.0, lower, by_name)


@dataclass(frozen=True)
class _Differences:
    """Known differences from the baseline."""

    rows: Mapping[tuple[str, str, str], Comparison]
    configurations: frozenset[str]
    metrics: frozenset[str]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, Comparison]]) -> "_Differences":
        """From comparisons, each with the name of the configuration."""
        return cls(
            {(name, row.slice, row.metric): row for name, row in rows},
            frozenset(name for name, _ in rows),
            frozenset(row.metric for _, row in rows),
        )


def check(
    run: Results, gates: Sequence[Gate], other: Results | None = None, *, other_dataset: bool = False
) -> list[Check]:
    """Check a run against gates; missed gates come first."""
    baseline = run.baseline if other is None else None
    differences = _differences(run, gates, other, other_dataset=other_dataset)
    nights = _nights(run, gates)
    ids = {row["name"]: row["config_id"] for row in run.configurations}
    others = frozenset[str]() if other is None else _names(other)
    checks = []
    for gate in gates:
        names, slices = gate.configurations([*ids], baseline), slices_matching(gate.slice, run.slices)
        problem = problem_of_gate(run, gate.metric)
        for name, entry in product(names, slices):
            if gate.value == MONITOR:
                checks.append(_monitor_check(gate, name, entry, nights))
                continue
            value, reason = (None, problem) if problem else _measure(gate, name, entry, run, ids, differences)
            is_known = other is None or (name in others and entry in other.slices and gate.metric in other.metrics)
            checks.append(Check(gate, name, entry, value, reason, gate.is_difference and not is_known))
        if not names or not slices:
            checks.append(Check(gate, gate.configuration or "", gate.slice, None, _no_match_reason(gate, names, run)))
    return sorted(checks, key=lambda entry: entry.is_met)


def _nights(run: Results, gates: Sequence[Gate]) -> MonitorResult | InputError | None:
    """The changes since the baseline run; None where no gate is about them, and before the run is finished."""
    if not run.output or all(gate.value != MONITOR for gate in gates):
        return None
    try:
        return monitor_run(run)
    except InputError as error:
        return error


def _monitor_check(gate: Gate, configuration: str, name: str, nights: MonitorResult | InputError | None) -> Check:
    """A gate on the change since the baseline run, which passes as new until there is a night to compare."""
    if nights is None:
        return Check(gate, configuration, name, None, "checked once the run is finished", is_new=True)
    if isinstance(nights, InputError):
        return Check(gate, configuration, name, None, nights.problem)
    change = nights.of(configuration, gate.metric)
    if change is None and nights.changes:
        return Check(gate, configuration, name, None, "the baseline run has no such configuration or metric")
    if change is not None and not change.queries:
        return Check(gate, configuration, name, None, "no query has a value to compare with the baseline run")
    end = None if change is None else change.lowest_high if gate.at_least else change.highest_low
    if change is not None and change.nights and end is None:
        return Check(gate, configuration, name, None, f"too few queries for an interval: {change.queries:,}")
    if change is None or end is None:
        nights_until = 0 if change is None else change.skipped
        reason = f"none of {nights_until} nights counts" if nights_until else "no night after the baseline run yet"
        return Check(gate, configuration, name, None, reason, is_new=True)
    reason = f"{pluralize(change.nights, 'night')} since {change.since:%Y-%m-%d}"
    skipped = f"; {change.skipped} more {'does' if change.skipped == 1 else 'do'} not count" if change.skipped else ""
    return Check(gate, configuration, name, end, reason + skipped)


def _measure(
    gate: Gate, configuration: str, name: str, run: Results, ids: Mapping[str, str], differences: _Differences
) -> Measured:
    if gate.value == SENTINELS:
        shares = (row["sentinel_accuracy"] for row in run.judge_quality)
        accuracy = min((share for share in shares if share is not None), default=None)  # of the worst step
        return accuracy, "" if accuracy is not None else "the judge received no known items"
    if gate.is_difference:
        return _difference(gate, configuration, name, differences, run)
    return _value(gate, ids[configuration], name, run)


def _no_match_reason(gate: Gate, names: Sequence[str], run: Results) -> str:
    """Return the reason why a gate applies to no configuration or slice of the run."""
    if not names:
        return "no such configuration exists besides the baseline"
    return f"no query is in this slice; {did_you_mean(gate.slice, run.slices)}"


def _differences(run: Results, gates: Sequence[Gate], other: Results | None, *, other_dataset: bool) -> _Differences:
    of_differences = [gate for gate in gates if gate.is_difference]
    if not of_differences:
        return _Differences.of([])
    if other is not None and _names(run).isdisjoint(_names(other)) and any(gate.skips_new for gate in of_differences):
        return _Differences.of([])  # all are new; without such a gate, runs without a common name are refused
    if other is not None:
        slices = {name for gate in of_differences for name in slices_matching(gate.slice, run.slices)}
        metrics = {gate.metric: None for gate in of_differences if gate.metric in {*run.metrics} & {*other.metrics}}
        if not metrics:  # for a comparison, none would be all
            return _Differences({}, _names(run) & _names(other), frozenset())
        question = ComparisonQuestion(
            metrics=(*metrics,), slices=(*sorted(slices),) or (ALL,), other_dataset=other_dataset
        )
        return _Differences.of([(row.configuration, row.row) for row in compare(run, other, question).rows])
    names = {row["config_id"]: row["name"] for row in run.configurations}
    base = run.baseline
    return _Differences.of([(names[row.config_id], row) for row in run.comparisons if names[row.baseline] == base])


def _names(run: Results) -> frozenset[str]:
    return frozenset(row["name"] for row in run.configurations)


def _value(gate: Gate, config_id: str, name: str, run: Results) -> Measured:
    if gate.value == FAILURE_RATE and not gate.metric:
        rate = run.failure_rate(config_id, name)
        return rate, "" if rate is not None else "the run has no metric of it"
    row = run.means.get((config_id, name, gate.metric))
    if row is None:
        return None, f"the run has no {gate.metric} of it"
    if gate.value == FAILURE_RATE:
        return row.failure_rate, ""
    if row.mean is None:
        return None, "no query was scored"
    return _finite(getattr(row, _COLUMNS[gate.value]), _reason(row, "for an interval", run), _doubt(gate, row, run))


def _difference(gate: Gate, configuration: str, name: str, differences: _Differences, run: Results) -> Measured:
    row = differences.rows.get((configuration, name, gate.metric))
    if row is not None:
        if row.verdict(run.run["statistics"]["confidence"]) is Verdict.EQUAL and not row.unpaired:
            return 0.0, _EQUAL  # not the end of an interval: it misses gates over few queries, though nothing changed
        return _finite(getattr(row, _COLUMNS[gate.value]), _reason(row, "that both have", run), _doubt(gate, row, run))
    if configuration not in differences.configurations:
        return None, "the baseline run has no configuration of this name"
    if gate.metric not in differences.metrics:
        return None, "the baseline run has no such metric"
    statistics = run.run["statistics"]
    units = "clusters of queries" if statistics.get("cluster") else "queries"
    return None, f"fewer than {statistics['min_slice']} {units} of this slice can be compared"


def _reason(row: ConfigurationMetric | Comparison, what_for: str, run: Results) -> str:
    if row.std_error == 0.0 and evidence_of(row) >= run.run["statistics"].get("min_slice", 0):
        return f"{row.queries:,} equal values of a metric without an upper bound have no interval"
    if row.clusters is not None:
        return f"too few clusters of queries {what_for}: {row.clusters:.3g}"
    return f"too few queries {what_for}: {row.queries:,}"


def _doubt(gate: Gate, row: ConfigurationMetric | Comparison, run: Results) -> str:
    """Reasons to doubt a value: few queries behind the end of an interval, or a judge that is near chance."""
    judge: list[str] = []
    if is_judged(gate.metric):
        steps = steps_of(gate.metric)
        judge = [near_chance(entry) for entry in run.judge_quality if entry["step"] in steps]
    return "; ".join(filter(None, [FEW if gate.value in _ENDS and row.is_unreliable else "", *judge]))


def _finite(number: float | None, reason: str, doubt: str) -> Measured:
    return (None, reason) if number is None or not math.isfinite(number) else (number, doubt)
