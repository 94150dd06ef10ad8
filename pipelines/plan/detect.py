"""Numbers of queries that detect a difference, and their cost: `rankbeam plan --detect`.

The spread of differences between configurations comes from an earlier run, or else from TREC runs.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.gates.checks import steps_of
from rankbeam.pipelines.plan.plan import Plan, number_of_queries, plan_of
from rankbeam.pipelines.plan.pools import Range, format_range, sum_of
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import texts
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.sample_size import (
    design_effect,
    queries_needed,
    queries_needed_for_shares,
    with_samples,
)
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import AnyMetric, range_of
from rankbeam.transforms.records.scores.rows import Comparison, evidence_of
from rankbeam.transforms.records.slices import ALL

_CORRELATIONS = (0.1, 0.3)
_MOST_SHOWN = 3
MEASURED = {
    "AP": (0.097, 0.135, 0.175),
    "R@100": (0.131, 0.182, 0.232),
    "nDCG@10": (0.168, 0.244, 0.286),
    "P@10": (0.172, 0.240, 0.284),
    "Success@10": (0.315, 0.389, 0.481),
    "RR@10": (0.309, 0.417, 0.496),
}
"""Standard deviations of differences: 10%, median and 90% over all 136 pairs of 17 TREC runs from Robust 2003."""
BINARY = ("Success",)
ASSUMED = 10
"""For metrics of unknown spread, the assumption is that one query in ten changes by the metric's whole range."""


@dataclass(frozen=True)
class DetectionQuestion:
    """The difference to detect."""

    difference: float  # between two configurations' true means
    power: float = 0.8  # probability of detecting it
    deviation: float | None = None  # standard deviation of the queries' differences; None for earlier runs' value


@dataclass(frozen=True)
class DifferenceSpread:
    """The spread of one metric's differences."""

    metric: str
    deviation: float  # standard deviation; with clusters, that of as many independent clusters
    low: float  # range of the deviation over pairs of configurations
    high: float
    origin: str  # source of the deviation, as text
    queries_per_unit: float = 1.0  # queries per effective cluster; 1 without clusters
    discordant: float | None = None  # share of queries with different values, for a binary metric in an earlier run
    is_assumed: bool = False  # True if neither a run nor a measurement has the deviation


@dataclass(frozen=True)
class NeededQueries:
    """The queries that one metric needs, and their cost for all configurations together."""

    metric: str
    queries: int
    deviation: float
    origin: str
    calls: Range
    tokens: Range
    cost: Range | None  # None if a price is unknown


@dataclass(frozen=True)
class Detection:
    """The answer to a question, with metrics in the experiment's order."""

    question: DetectionQuestion
    level: float
    comparisons: int
    queries: int
    metrics: tuple[NeededQueries, ...]
    warnings: tuple[str, ...]

    def as_document(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "warnings"}

    def as_text(self, screen: Screen = WHOLE) -> str:
        tests = pluralize(self.comparisons, "comparison")
        head = f"To detect a difference of {self.question.difference:g} with a power of {self.question.power:.0%} at a "
        head += f"significance level of {self.level:.3g} ({tests}); the dataset has {self.queries:,} queries:"
        paid = any(item.calls[1] for item in self.metrics)
        priced = any(item.cost is not None and item.cost[1] for item in self.metrics)
        columns = ["metric", "sd from", "sd", "queries"]
        columns += [*(["calls", "tokens"] if paid else []), *(["cost"] if priced else [])]
        rows = [
            [
                item.metric,
                item.origin,
                f"{item.deviation:.3f}",
                f"{item.queries:,}",
                *([format_range(item.calls), format_range(item.tokens)] if paid else []),
                *(["–" if item.cost is None else format_range(item.cost, "{:,.2f}")] if priced else []),
            ]
            for item in self.metrics
        ]
        table = Table(columns, rows, 2, drop=["sd", "tokens"], sentences=["sd from"])
        return f"{screen.prose(head)}\n\n{screen.table(table)}"


def detection_of(experiment: Experiment, question: DetectionQuestion, plan: Plan, path: str) -> Detection:
    """The queries that every metric needs; refused if no spread is known."""
    run = earlier_run(experiment)
    comparisons = max(1, len(experiment.evaluation.pairs))
    level = (1.0 - experiment.evaluation.statistics.confidence) / comparisons
    known = dict(_spreads(experiment, question, run, path))
    unknown = [str(metric) for metric in experiment.evaluation.metrics if metric not in known]
    if not known:
        raise InputError(
            f"--detect: the spread is unknown for {', '.join(unknown)}: {experiment.output} has no run of this "
            "experiment with two configurations that differ; run a few queries first, or use --sd",
            path=path,
        )
    queries = number_of_queries(experiment) if plan.queries is None else plan.queries
    full = _from_scratch(experiment, plan)
    metrics = tuple(_needed_queries(spread, question, level, full, queries) for spread in known.values())
    return Detection(question, level, comparisons, queries, metrics, tuple(_warnings(experiment, run, known, unknown)))


def _spreads(
    experiment: Experiment, question: DetectionQuestion, run: Results | None, path: str
) -> Iterator[tuple[AnyMetric, DifferenceSpread]]:
    for metric in experiment.evaluation.metrics:
        low, high = range_of(metric)
        if high is not None and question.difference > high - low:
            problem = f"no difference of {metric} can be {question.difference:g}: it is at most {high - low:g}"
            raise InputError(f"--detect: {problem}", path=path)
        if question.deviation is not None:
            yield (
                metric,
                DifferenceSpread(str(metric), question.deviation, question.deviation, question.deviation, "--sd"),
            )
        elif (spread := spread_of(str(metric), experiment, run)) is not None:
            yield metric, spread
        elif high is not None:
            yield metric, assumed_spread(str(metric), high - low)


def _from_scratch(experiment: Experiment, plan: Plan) -> Plan:
    """The forecast with an empty ledger, so that it grows with the queries."""
    if not any(pool.ledger_hits for pool in plan.every_pool):
        return plan
    with tempfile.TemporaryDirectory(prefix="rankbeam-detect-") as folder:
        return plan_of(replace(experiment, calls=replace(experiment.calls, ledger_path=folder)))


def _needed_queries(
    spread: DifferenceSpread, question: DetectionQuestion, level: float, plan: Plan, queries: int
) -> NeededQueries:
    number = _number(spread, question, level)
    share = number / queries if queries else 0.0
    pools = plan.every_pool
    tokens = [tokens for pool in pools for tokens in (pool.input_tokens, pool.output_tokens)]
    costs = [pool.cost for pool in pools if pool.cost is not None]
    cost = _scaled_sum(costs, share) if len(costs) == len(pools) else None
    scaled = (_scaled_sum([pool.calls for pool in pools], share), _scaled_sum(tokens, share))
    return NeededQueries(spread.metric, number, spread.deviation, spread.origin, *scaled, cost)


def _number(spread: DifferenceSpread, question: DetectionQuestion, level: float) -> int:
    if spread.discordant is not None:  # two shares with this difference differ on at least this share of the queries
        discordant = max(spread.discordant, question.difference)
        return queries_needed_for_shares(question.difference, discordant, question.power, level)
    units = queries_needed(question.difference, spread.deviation, question.power, level)
    return math.ceil(units * spread.queries_per_unit)


def _scaled_sum(ranges: Sequence[Range], share: float) -> Range:
    least, most = sum_of(ranges)
    return share * least, share * most


def _warnings(
    experiment: Experiment, run: Results | None, known: dict[AnyMetric, DifferenceSpread], unknown: list[str]
) -> Iterator[str]:
    if unknown:
        yield f"the spread is unknown for {', '.join(unknown)}: no earlier run has this metric; use --sd"
    guesses = [spread for spread in known.values() if spread.is_assumed]
    if guesses:
        deviations = ", ".join(f"{deviation:.3g}" for deviation in dict.fromkeys(item.deviation for item in guesses))
        yield (
            f"{', '.join(item.metric for item in guesses)}: {experiment.output} has no run that shows how much "
            f"configurations differ, so the table assumes that 1 query in {ASSUMED} changes from one end of the "
            f"metric's range to the other (sd {deviations}); for a better number, evaluate some queries first, or "
            "use --sd"
        )
    counts = [metric for metric in known if isinstance(metric, Metric) and metric.definition.highest is None]
    if counts:
        yield f"{', '.join(map(str, counts[:_MOST_SHOWN]))}: without an upper bound, the spread may be far larger"
    cluster = experiment.evaluation.statistics.cluster
    if cluster is None or (run is not None and run.run["statistics"].get("cluster") == cluster):
        return
    sizes = cluster_sizes(experiment)
    effects = (
        "1 + (m - 1) · correlation, where m is the size of the cluster of a random query"
        if sizes is None
        else ", ".join(f"{design_effect(sizes, item):.3g} at a correlation of {item:g}" for item in _CORRELATIONS)
    )
    yield (
        f"no earlier run has clusters by {cluster}, so the numbers are those of independent queries; clusters need "
        f"{effects} times as many"
    )


def race_line(experiment: Experiment, queries: int) -> str:
    """The difference that a race can detect with all queries; "" without a race or a known spread."""
    race, pairs = experiment.evaluation.race, len(experiment.evaluation.configurations) - 1
    spread = None if race is None else spread_of(race.metric, experiment, earlier_run(experiment))
    units = 0.0 if spread is None else queries / spread.queries_per_unit
    if race is None or spread is None or not spread.deviation or pairs < 1 or units < 2:
        return ""
    actual = detectable_difference(spread.deviation / math.sqrt(units), units, level=race.alpha / pairs)
    what = f"{queries:,} queries detect a difference of {actual:.3f} in {race.metric} with a power of 80%"
    return f"before the race: {what} (sd {spread.deviation:.3f}: {spread.origin})"


def earlier_run(experiment: Experiment) -> Results | None:
    """The experiment's latest finished run in its output folder that compared configurations."""
    try:
        runs = finished_runs(experiment.output)
    except InputError:
        return None
    own_runs = [run for run in runs if run.experiment == experiment.name]
    return next((run for run in reversed(own_runs) if run.comparisons), None)


def spread_of(metric: str, experiment: Experiment, run: Results | None) -> DifferenceSpread | None:
    """One metric's spread in the run, or else as measured; None if neither has the metric."""
    actual = None if run is None else _in_run(metric, experiment, run)
    return actual or _measured_spread(metric)


def _in_run(metric: str, experiment: Experiment, run: Results) -> DifferenceSpread | None:
    """The median over the run's pairs of configurations; None if no pair differs."""
    rows = [row for row in run.comparisons if (row.metric, row.slice) == (metric, ALL) and row.std_error]
    rows = [row for row in rows if evidence_of(row) >= 2]
    if not rows:
        return None
    more = _more_noise(metric, experiment, run)
    deviations = [math.sqrt((row.std_error or 0.0) ** 2 * evidence_of(row) + more / _per_unit(row)) for row in rows]
    pairs = f"{pluralize(len(rows), 'pair')} of run {run.run_id}"
    discordant = median((row.wins + row.losses) / row.queries for row in rows)
    is_binary = metric.startswith(BINARY) and rows[0].clusters is None
    return DifferenceSpread(
        metric,
        median(deviations),
        min(deviations),
        max(deviations),
        pairs,
        median(map(_per_unit, rows)),
        discordant if is_binary else None,
    )


def _per_unit(row: Comparison) -> float:
    return row.queries / evidence_of(row)


def _more_noise(metric: str, experiment: Experiment, run: Results) -> float:
    """Variance added by fewer judgements per item; more judgements may save less than a step's own noise suggests."""
    steps = steps_of(metric) if experiment.judging is not None and run.judge_quality else ()
    within = max((row["within_sd"] or 0.0 for row in run.judge_quality if row["step"] in steps), default=0.0)
    if not within or experiment.judging is None:
        return 0.0
    observed = run.judge_settings.get("samples", 1)
    return max(0.0, with_samples(0.0, within**2, observed, experiment.judging.samples))


def assumed_spread(metric: str, extent: float) -> DifferenceSpread:
    """The spread if one query in `ASSUMED` changes from one end of the metric's range to the other.

    >>> round(assumed_spread("Faithfulness", 1.0).deviation, 3)
    0.316
    """
    deviation = extent * math.sqrt(1 / ASSUMED)
    origin = f"assumed: 1 query in {ASSUMED} changes entirely"
    return DifferenceSpread(metric, deviation, deviation, deviation, origin, is_assumed=True)


def _measured_spread(metric: str) -> DifferenceSpread | None:
    """The measured spread of a metric, or of the same metric at another cutoff, which the origin names."""
    exact = [name for name in MEASURED if name == metric]
    candidates = exact or [name for name in MEASURED if name.partition("@")[0] == metric.partition("@")[0]]
    if not candidates:
        return None
    low, deviation, high = MEASURED[candidates[0]]
    return DifferenceSpread(metric, deviation, low, high, f"{candidates[0]} of 17 TREC runs (Robust 2003)")


def cluster_sizes(experiment: Experiment) -> list[int] | None:
    """The sizes of the queries' clusters; None without clusters or without query files."""
    cluster, queries = experiment.evaluation.statistics.cluster, experiment.dataset.queries
    if cluster is None or queries is None or is_table(queries):
        return None
    values: Counter[str] = Counter()
    for _, entry in texts.entries_in(queries, "queries"):
        values[str(entry.attributes.get(cluster) or f"\0{entry.id}")] += 1
    return list(values.values())
