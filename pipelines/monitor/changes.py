"""Changes of every metric since a pinned baseline run.

The same queries every night add no evidence: tonight is compared with the baseline query by query, also if judgements
or some of the queries have changed. Fresh queries do: confidence sequences combine the nights, and hold at all nights
at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import NamedTuple

from rankbeam.pipelines.compare.compare import ComparisonQuestion, RunComparison, compare, left_out_of, only_in_one
from rankbeam.pipelines.compare.shared_queries import shared_queries
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.results.judge_differences import judge_differences
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.statistics.intervals import student_t_quantile
from rankbeam.transforms.kernels.statistics.monitoring import QUARTER, running_sequences
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.scores.rows import FEW_QUERIES, ConfigurationMetric, evidence_of
from rankbeam.transforms.records.slices import ALL

FIXED, FRESH = "fixed", "fresh"
ALPHA = 0.05
FELL, ROSE, STEADY, UNKNOWN = "fell", "rose", "no change", "unknown"  # verdicts on changes


@dataclass(frozen=True)
class Change:
    """The change of one metric of one configuration since the baseline."""

    configuration: str
    config_id: str  # in tonight's run
    metric: str
    mode: str  # "fixed" if the queries are those of the baseline, else "fresh"
    baseline_run: str  # its id
    baseline_mean: float | None  # of the metric there
    change: float | None  # mean change over the nights of the interval; None if no night counts
    low: float | None  # ends of the most telling interval
    high: float | None
    lowest_high: float | None  # lowest upper end of all intervals
    highest_low: float | None  # highest lower end of all intervals
    nights: int  # number of nights of the interval
    since: datetime | None  # start of the first night of the interval
    queries: int  # number of tonight's queries
    skipped: int  # nights that do not count: few queries, no interval, or the queries of another run
    quarter: int  # number of the quarter of 90 nights, from 1


class Tolerance(NamedTuple):
    """The change of a metric that raises no alarm."""

    size: float = 0.0  # tolerated fall or rise
    is_of_rise: bool = False  # True if a rise is alarming

    def state(self, change: Change) -> str:
        """Verdict on a change: it counts if a whole interval is beyond the tolerance."""
        if change.lowest_high is None or change.highest_low is None:
            return UNKNOWN
        states = [FELL] if change.lowest_high < -self.size else []
        states += [ROSE] if change.highest_low > self.size else []
        return states[-1 if self.is_of_rise else 0] if states else STEADY  # if both, the alarming one

    def is_alarmed_by(self, change: Change) -> bool:
        """Return whether a change is beyond the tolerance, in the alarming direction."""
        return self.state(change) == (ROSE if self.is_of_rise else FELL)


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of all metrics: those of gates on the value `monitor`, else the default."""

    default: float = 0.0
    lower_is_better: frozenset[str] = frozenset()  # the metrics of which a rise is alarming by default
    by_name: Mapping[tuple[str, str], Sequence[Tolerance]] = field(default_factory=dict)  # of a configuration's metric

    def state(self, change: Change) -> str:
        return self.of_change(change).state(change)

    def is_alarming(self, change: Change) -> bool:
        return self.of_change(change).is_alarmed_by(change)

    def of_change(self, change: Change) -> Tolerance:
        """The tolerance of a change; of several, the first one that it exceeds, else the smallest."""
        default = Tolerance(self.default, change.metric in self.lower_is_better)
        tolerances = self.by_name.get((change.configuration, change.metric), [default])
        return next((one for one in tolerances if one.is_alarmed_by(change)), min(tolerances))


@dataclass(frozen=True)
class MonitorResult:
    """The changes of a run; none in the baseline run itself."""

    run: Results
    baseline: Results
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    def of(self, configuration: str, metric: str) -> Change | None:
        names = (change for change in self.changes if change.configuration == configuration)
        return next((change for change in names if change.metric == metric), None)


def monitor_run(run: Results, baseline_run_id: str | None = None, alpha: float | None = None) -> MonitorResult:
    """Compare a run, and the nights before it, with the baseline.

    By default, the baseline's id is that of `monitor:`, else the first run's; `alpha`, the probability of a false alarm
    within 90 nights of fresh queries, is that of `monitor:`, else 0.05.
    """
    settings = run.experiment_file.value.get("monitor") or {}
    own = [one for one in finished_runs(run.output) if one.experiment == run.experiment]
    baseline = _baseline(own, baseline_run_id or settings.get("baseline"))
    nights = [night for night in own if baseline.execution[1] < night.execution[1] <= run.execution[1]]
    if run.execution == baseline.execution or not nights:
        return MonitorResult(run, baseline, (), ())
    shared = shared_queries(run, baseline)
    if shared is None or shared.is_most:
        compared = compare(run, baseline, ComparisonQuestion(other_dataset=True))
        return MonitorResult(
            run, baseline, tuple(_fixed_changes(compared, baseline)), (*_ledger_warning(run), *compared.warnings())
        )
    level = alpha or settings.get("alpha", ALPHA)
    fresh = [night for night in nights if _sample(night) != _sample(baseline)]
    changes = tuple(_fresh_changes(run, baseline, fresh, len(nights) - len(fresh), level))
    common = [metric for metric in run.metrics if metric in baseline.metrics]
    judges = judge_differences(run, baseline, common)
    doubts = (*_doubts(run, fresh, changes), *judges, *left_out_of(*only_in_one(run, baseline)))
    return MonitorResult(run, baseline, changes, doubts)


def _baseline(runs: Sequence[Results], run_id: str | None) -> Results:
    if run_id is None:
        return runs[0]
    match = next((run for run in runs if run.run_id == run_id), None)
    if match is None:
        hint = did_you_mean(run_id, [run.run_id for run in runs])
        raise InputError(
            f"monitor: there is no finished run {run_id!r} of this experiment; {hint}", path=runs[0].output
        )
    return match


def _fixed_changes(compared: RunComparison, baseline: Results) -> Iterator[Change]:
    means = _means(baseline)
    for comparison in compared.rows:
        row = comparison.row
        mean = means.get((comparison.configuration, row.metric))
        yield Change(
            comparison.configuration,
            comparison.config_id,
            row.metric,
            FIXED,
            baseline.run_id,
            None if mean is None else mean.mean,
            row.difference,
            row.ci_low,
            row.ci_high,
            row.ci_high,
            row.ci_low,
            1,
            compared.run.execution[1],
            row.queries,
            0,
            1,
        )


def _means(run: Results) -> dict[tuple[str, str], ConfigurationMetric]:
    """The means over all queries, by the name of the configuration and the metric."""
    pairs = product(run.configurations, run.metrics)
    known = ((row["name"], metric, run.means.get((row["config_id"], ALL, metric))) for row, metric in pairs)
    return {(name, metric): mean for name, metric, mean in known if mean is not None}


def _sample(run: Results) -> str:
    """The part of a run's fingerprint that identifies its queries."""
    return str(run.run["dataset_fingerprint"].split("-")[1])


def _fresh_changes(
    run: Results, baseline: Results, nights: Sequence[Results], repeated: int, alpha: float
) -> Iterator[Change]:
    """The most telling of the confidence sequences of every metric; of runs with the same queries, the last counts."""
    pinned, by_night = _means(baseline), [(night, _means(night.overall())) for night in nights]
    ids = {row["name"]: row["config_id"] for row in run.configurations}
    for (name, metric), tonight in _means(run).items():
        base = pinned.get((name, metric))
        if base is None or base.mean is None:
            continue
        level = base.mean
        known = [(night, means[name, metric]) for night, means in by_night if (name, metric) in means]
        counted = {
            _sample(night): (night, (mean.mean or 0.0) - level, error)
            for night, mean in known
            if evidence_of(mean) >= FEW_QUERIES and (error := _error(mean, night))
        }
        usable = list(counted.values())
        values, errors = [value for _, value, _ in usable], [error for *_, error in usable]
        error = _error(base, baseline)
        sequences = running_sequences(values, errors, alpha, error or None, _reference(base, error, alpha))
        common = (name, ids[name], metric, FRESH, baseline.run_id, level)
        skipped = repeated + len(nights) - len(usable)
        if not sequences:
            yield Change(*common, None, None, None, None, None, 0, None, tonight.queries, skipped, 1)
            continue
        telling = max(sequences, key=lambda sequence: max(-sequence.high, sequence.low))
        yield Change(
            *common,
            telling.mean,
            telling.low,
            telling.high,
            min(sequence.high for sequence in sequences),
            max(sequence.low for sequence in sequences),
            telling.nights,
            usable[telling.first][0].execution[1],
            tonight.queries,
            skipped,
            (len(usable) - 1) // QUARTER + 1,
        )


def _error(mean: ConfigurationMetric, run: Results) -> float:
    """The standard error; for equal values, that of an interval which allows for rare other values; 0 without one.

    Without them, only nights with a rare failure would count, and a night of failures alone would not.
    """
    if mean.std_error or mean.mean is None or mean.interval is None:
        return mean.std_error or 0.0
    low, high = mean.interval
    tail = (1.0 - run.run["statistics"].get("confidence", 0.95)) / 2.0
    return max(mean.mean - low, high - mean.mean) / student_t_quantile(1.0 - tail, evidence_of(mean) - 1.0)


def _reference(base: ConfigurationMetric, error: float, alpha: float) -> float:
    """The half width of Student's interval of the baseline's mean, at half of alpha.

    With it, false alarms within 60 nights stay below 5% in simulations, for baselines of 1 to 25 nights' queries.
    """
    units = evidence_of(base)
    if not error or units < 2:
        return 0.0
    return student_t_quantile(1.0 - alpha / 4.0, units - 1) * error


def _ledger_warning(run: Results) -> Iterator[str]:
    """A warning that the ledger hides changes of services."""
    if run.run["ledger_hits"] and not run.run["calls"]:
        yield "every answer came from the ledger, so changes of services are invisible; set fresh: daily"


def _doubts(run: Results, nights: Sequence[Results], changes: Sequence[Change]) -> Iterator[str]:
    """Warnings about nights that do not count, and about a new quarter."""
    if skipped := max((change.skipped for change in changes), default=0):
        reason = (
            f"with fewer than {FEW_QUERIES} queries, equal values of an unbounded metric, or the queries of another run"
        )
        yield f"{skipped} {'night does' if skipped == 1 else 'nights do'} not count: {reason}"
    before = [night for night in nights if night.execution[1] < run.execution[1]][-1:]
    again = sum(len(_ids(run) & _ids(night)) for night in before)
    if again:
        yield f"{again:,} of tonight's queries were in the previous night, too: queries that repeat are no new evidence"
    if quarter := max((change.quarter for change in changes), default=1) - 1:
        nights_before = f"after {quarter * QUARTER} nights all sequences began again"
        yield f"{nights_before}: the probability of a false alarm is that of one quarter of {QUARTER} nights"


def _ids(run: Results) -> set[str]:
    first = run.configurations[0]["config_id"]
    rows = run.stream("query_metrics", ["config_id", "query_id"], [first], by="config_id")
    return {row["query_id"] for row in rows}
