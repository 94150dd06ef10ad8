"""Numbers of queries that show a difference, and their cost: `rankbeam plan --detect`."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rankbeam.pipelines.detect.spread import ASSUMED, DifferenceSpread, assumed, cluster_sizes, earlier_run, spread_of
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.plan.models import Range, shown
from rankbeam.pipelines.plan.plan import Plan, number_of_queries, plan_of
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.screen import WHOLE, Screen
from rankbeam.pipelines.show.tabular import Table
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.sample_size import (
    design_effect,
    queries_needed,
    queries_needed_for_shares,
)
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import AnyMetric, range_of

_CORRELATIONS = (0.1, 0.3)
_MOST_SHOWN = 3


@dataclass(frozen=True)
class DetectionQuestion:
    """The difference to detect.

    Attributes:
        difference: true difference of two configurations' means.
        power: probability to find it.
        deviation: standard deviation of the queries' differences; None for that of earlier runs.
    """

    difference: float
    power: float = 0.8
    deviation: float | None = None


@dataclass(frozen=True)
class NeededQueries:
    """The queries that one metric needs, with what all configurations together cost."""

    metric: str
    queries: int
    deviation: float
    origin: str
    calls: Range
    tokens: Range
    cost: Range | None  # None if a price is unknown


@dataclass(frozen=True)
class Detection:
    """The answer to a question: metrics in the experiment's order."""

    question: DetectionQuestion
    level: float
    comparisons: int
    queries: int
    metrics: tuple[NeededQueries, ...]
    warnings: tuple[str, ...]

    def as_document(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return {key: value for key, value in asdict(self).items() if key != "warnings"}

    def as_text(self, screen: Screen = WHOLE) -> str:
        tests = "1 comparison" if self.comparisons == 1 else f"{self.comparisons:,} comparisons"
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
                *([shown(item.calls), shown(item.tokens)] if paid else []),
                *(["–" if item.cost is None else shown(item.cost, "{:,.2f}")] if priced else []),
            ]
            for item in self.metrics
        ]
        table = Table(columns, rows, 2, drop=["sd", "tokens"], sentences=["sd from"])
        return f"{screen.prose(head)}\n\n{screen.table(table)}"


def detection_of(experiment: Experiment, question: DetectionQuestion, plan: Plan, path: str) -> Detection:
    """The queries that every metric needs; refused where no spread is known."""
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
    metrics = tuple(_needed(spread, question, level, full, queries) for spread in known.values())
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
            yield metric, assumed(str(metric), high - low)


def _from_scratch(experiment: Experiment, plan: Plan) -> Plan:
    """The forecast as if the ledger held nothing, so that it grows with the queries."""
    hits = [*(pool.ledger_hits for pool in plan.pools), *(model.ledger_hits for model in plan.models)]
    if not any(hits):
        return plan
    with tempfile.TemporaryDirectory(prefix="rankbeam-detect-") as folder:
        return plan_of(replace(experiment, ledger_path=folder))


def _needed(
    spread: DifferenceSpread, question: DetectionQuestion, level: float, plan: Plan, queries: int
) -> NeededQueries:
    number = _number(spread, question, level)
    share = number / queries if queries else 0.0
    pools, models = plan.pools, plan.models
    counts = [(item.calls, item.calls) for item in pools] + [item.calls for item in models]
    tokens = [item.input_tokens for item in models] + [item.output_tokens for item in models]
    costs = [None if item.cost is None else (item.cost, item.cost) for item in pools]
    costs += [item.cost for item in models]
    priced = [cost for cost in costs if cost is not None]
    cost = _scaled(priced, share) if len(priced) == len(costs) else None
    scaled = (_scaled(counts, share), _scaled(tokens, share))
    return NeededQueries(spread.metric, number, spread.deviation, spread.origin, *scaled, cost)


def _number(spread: DifferenceSpread, question: DetectionQuestion, level: float) -> int:
    if spread.discordant is not None:  # shares that differ by so much differ at as many of the queries
        discordant = max(spread.discordant, question.difference)
        return queries_needed_for_shares(question.difference, discordant, question.power, level)
    units = queries_needed(question.difference, spread.deviation, question.power, level)
    return math.ceil(units * spread.queries_per_unit)


def _scaled(ranges: Sequence[Range], share: float) -> Range:
    return share * sum(least for least, _ in ranges), share * sum(most for _, most in ranges)


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
    if race is None or spread is None or pairs < 1 or units < 2:
        return ""
    actual = detectable_difference(spread.deviation / math.sqrt(units), units, level=race.alpha / pairs)
    what = f"{queries:,} queries detect a difference of {actual:.3f} in {race.metric} with a power of 80%"
    return f"before the race: {what} (sd {spread.deviation:.3f}: {spread.origin})"
