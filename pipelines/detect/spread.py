"""The spread of differences between configurations: of an earlier run, else as measured on TREC runs."""

import math
from collections import Counter
from dataclasses import dataclass
from statistics import median

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.gates.noise import steps_of
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.kernels.statistics.sample_size import with_samples
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.scores.rows import Comparison, evidence_of
from rankbeam.transforms.records.slices import ALL

MEASURED = {
    "AP": (0.097, 0.135, 0.175),
    "R@100": (0.131, 0.182, 0.232),
    "nDCG@10": (0.168, 0.244, 0.286),
    "P@10": (0.172, 0.240, 0.284),
    "Success@10": (0.315, 0.389, 0.481),
    "RR@10": (0.309, 0.417, 0.496),
}
"""Standard deviations of differences: 10%, median and 90% of all 136 pairs of 17 TREC runs of Robust 2003."""
BINARY = ("Success",)
ASSUMED = 10
"""For metrics of unknown spread, the assumption is that one query in ten changes by the metric's whole range."""


@dataclass(frozen=True)
class DifferenceSpread:
    """The spread of one metric's differences.

    Attributes:
        metric: name of the metric.
        deviation: standard deviation of the differences; over clusters, that of as many independent clusters.
        low, high: range of the deviation over pairs of configurations.
        origin: source of the deviation, in words.
        queries_per_unit: queries per effective cluster; 1 without clusters.
        discordant: share of queries with different values, of a binary metric in an earlier run; else None.
        is_assumed: True if neither a run nor a measurement knows the deviation.
    """

    metric: str
    deviation: float
    low: float
    high: float
    origin: str
    queries_per_unit: float = 1.0
    discordant: float | None = None
    is_assumed: bool = False


def earlier_run(experiment: Experiment) -> Results | None:
    """The latest finished run of the experiment in its output folder that compared configurations."""
    try:
        runs = finished_runs(experiment.output)
    except InputError:
        return None
    own = [run for run in runs if run.experiment == experiment.name]
    return next((run for run in reversed(own) if run.comparisons), None)


def spread_of(metric: str, experiment: Experiment, run: Results | None) -> DifferenceSpread | None:
    """The spread of one metric: of the run, else as measured; None where neither knows the metric."""
    actual = None if run is None else _in_run(metric, experiment, run)
    return actual or _measured(metric)


def _in_run(metric: str, experiment: Experiment, run: Results) -> DifferenceSpread | None:
    """The median over the run's pairs of configurations; None without a pair that differs."""
    rows = [row for row in run.comparisons if (row.metric, row.slice) == (metric, ALL) and row.std_error]
    rows = [row for row in rows if evidence_of(row) >= 2]
    if not rows:
        return None
    more = _more_noise(metric, experiment, run)
    deviations = [math.sqrt(_variance(row) + more / _per_unit(row)) for row in rows]
    pairs = f"{len(rows)} {'pair' if len(rows) == 1 else 'pairs'} of run {run.run_id}"
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


def _variance(row: Comparison) -> float:
    return (row.std_error or 0.0) ** 2 * evidence_of(row)


def _per_unit(row: Comparison) -> float:
    return row.queries / evidence_of(row)


def _more_noise(metric: str, experiment: Experiment, run: Results) -> float:
    """Variance that fewer judgements per item add; more of them may save less than a step's own noise says."""
    steps = steps_of(metric) if experiment.judging is not None and run.judge_quality else ()
    within = max((row["within_sd"] or 0.0 for row in run.judge_quality if row["step"] in steps), default=0.0)
    if not within or experiment.judging is None:
        return 0.0
    observed = run.judge_settings.get("samples", 1)
    return max(0.0, with_samples(0.0, within**2, observed, experiment.judging.samples))


def assumed(metric: str, extent: float) -> DifferenceSpread:
    """The spread if a share of the queries changes from one end of the metric's range to the other.

    >>> round(assumed("Faithfulness", 1.0).deviation, 3)
    0.316
    """
    deviation = extent * math.sqrt(1 / ASSUMED)
    origin = f"assumed: 1 query in {ASSUMED} changes entirely"
    return DifferenceSpread(metric, deviation, deviation, deviation, origin, is_assumed=True)


def _measured(metric: str) -> DifferenceSpread | None:
    """The measured spread of a metric, or of the same metric at another cutoff, which it names."""
    same = [name for name in MEASURED if name == metric]
    alike = same or [name for name in MEASURED if name.partition("@")[0] == metric.partition("@")[0]]
    if not alike:
        return None
    low, deviation, high = MEASURED[alike[0]]
    return DifferenceSpread(metric, deviation, low, high, f"{alike[0]} of 17 TREC runs (Robust 2003)")


def cluster_sizes(experiment: Experiment) -> list[int] | None:
    """The sizes of the clusters of the queries; None where they are not in local files."""
    cluster, queries = experiment.evaluation.statistics.cluster, experiment.queries
    if cluster is None or queries is None or is_table(queries):
        return None
    values: Counter[str] = Counter()
    for path in sources.expand(queries):
        for entry in texts.read_entries(path, "queries"):
            values[str(entry.attributes.get(cluster) or f"\0{entry.id}")] += 1
    return list(values.values())
