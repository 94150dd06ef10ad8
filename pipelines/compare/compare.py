"""Compare configurations of finished runs, also across two runs, with the pipeline's statistics but no pipeline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rankbeam.pipelines.compare.scores import Member, judged_alone, partitions_of
from rankbeam.pipelines.compare.shared_queries import SharedQueries, changed_parts, shared_queries
from rankbeam.pipelines.results.judge_differences import judge_differences
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.judge.metrics import parse_all, parse_defined
from rankbeam.transforms.kernels.statistics.moments import ClusterTotals
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.panels import AnyMetric, panels_of
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_of
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.means import cluster_moments, cluster_totals
from rankbeam.transforms.records.scores.rows import Comparison
from rankbeam.transforms.records.scores.scored import ScoredPartition
from rankbeam.transforms.records.slices import ALL, canonical, grouping_of


@dataclass(frozen=True)
class NamedComparison:
    """A comparison of configurations, which may belong to two runs."""

    configuration: str
    baseline: str
    config_id: str
    baseline_id: str
    row: Comparison


@dataclass(frozen=True)
class ComparisonQuestion:
    """The comparison to make."""

    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    slices: tuple[str, ...] = (ALL,)  # "all", a slice such as "intent=how_to", or an attribute for all its values
    all_pairs: bool = False
    confidence: float | None = None  # None for the run's confidence
    seed: int | None = None
    replicates: int | None = None
    other_dataset: bool = False


@dataclass(frozen=True)
class RunComparison:
    """The result of a comparison."""

    run: Results
    other: Results | None
    statistics: Statistics
    rows: list[NamedComparison]
    left_out: tuple[str, ...] = ()  # metrics
    unmatched: tuple[str, ...] = ()  # names of configurations
    too_small: tuple[str, ...] = ()
    shared: SharedQueries | None = None
    unjudged: Mapping[str, str] = field(default_factory=dict)  # the missing metric for each metric with labels

    @cached_property
    def is_by_name(self) -> bool:
        """True if several configurations are each compared with the configuration of the same name in another run."""
        names = {row.baseline for row in self.rows}
        return len(names) > 1 and all(row.configuration == row.baseline for row in self.rows)

    def warnings(self) -> Iterator[str]:
        if self.shared:
            yield self.shared.sentence
        if self.other is not None:
            yield from judge_differences(self.run, self.other, (side.row.metric for side in self.rows))
        for name, judged in self.unjudged.items():
            yield f"{name} is left out: {_UNJUDGED.format(judged)}"
        yield from left_out_of(self.left_out, self.unmatched)
        if self.too_small:
            least = self.statistics.min_slice
            units = "queries" if self.statistics.cluster is None else "clusters"
            yield f"fewer than {least} {units} (statistics.min_slice), so not compared: {', '.join(self.too_small)}"


_UNJUDGED = "there is no metric {}, whose values for all queries the metric with labels needs; add it to the experiment"


@dataclass(frozen=True)
class _ComparedRuns(Evaluation):
    """An evaluation with a run's definitions of metrics."""

    run: Results = field(kw_only=True)

    def lower_is_better(self, metric: AnyMetric) -> bool:
        return self.run.lower_is_better(str(metric))


def compare(run: Results, other: Results | None, question: ComparisonQuestion) -> RunComparison:
    """Compare a run's configurations with a baseline in the same run or in another one."""
    if other is not None:
        _check_dataset(run, other, question)
    metrics = _metrics(run, other, question)
    unjudged = {} if question.metrics else _unjudged_metrics(run, other, metrics)
    metrics = [name for name in metrics if name not in unjudged] or metrics
    chosen = tuple(run.defined_metrics(metrics))
    slices = _slices(run, other, question)
    members, baseline, pairs = _members(run, other, question)
    evaluation = _ComparedRuns(
        # The same configuration may be in both runs with the same id, so its position identifies it here.
        configurations=tuple(
            Configuration(str(position), configuration.name, 0, "", "{}", None, None)
            for position, configuration in enumerate(members)
        ),
        metrics=chosen,
        strata=_strata(run, other, chosen),
        sources=(),
        slices=() if slices == [ALL] else run.sliced_by,  # slices have their own p-values, which need correction
        baseline=baseline,
        statistics=_statistics(run, question),
        run=run,
        own_pairs=pairs,
    )
    shared = shared_queries(run, other)
    if shared is not None and not shared.both:
        raise InputError("the runs have no query in common", path=run.output)
    rows = [side for side in _rows(members, evaluation) if side.row.slice in slices]
    rows.sort(key=lambda comparison: (metrics.index(comparison.row.metric), slices.index(comparison.row.slice)))
    compared = {row.row.slice for row in rows}
    too_small = tuple(name for name in slices if name not in compared)
    left_out, unmatched = ((), ()) if other is None else only_in_one(run, other)
    return RunComparison(
        run,
        other,
        evaluation.statistics,
        rows,
        () if question.metrics else left_out,
        () if question.baseline is not None else unmatched,
        too_small,
        shared,
        unjudged,
    )


def only_in_one(run: Results, other: Results) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The metrics and the names of configurations that only one of two runs has."""
    names = [[row["name"] for row in side.configurations] for side in (run, other)]
    metrics, configurations = (
        tuple(name for name in dict.fromkeys([*ours, *theirs]) if (name in ours) != (name in theirs))
        for ours, theirs in ((run.metrics, other.metrics), names)
    )
    return metrics, configurations


def left_out_of(metrics: Sequence[str], configurations: Sequence[str]) -> Iterator[str]:
    """Warnings about metrics and configurations that only one of two runs has."""
    if metrics:
        yield f"only one of the runs has {', '.join(metrics)}; left out"
    if configurations:
        names = ", ".join(map(repr, configurations))
        yield f"only one of the runs has a configuration named {names}; left out"


def slices_matching(pattern: str, known: Sequence[str]) -> list[str]:
    """The slices that a pattern matches: a slice itself, or all values of an attribute.

    >>> slices_matching("intent", ["all", "intent=a", "intent=b", "intent=a×level=1"])
    ['intent=a', 'intent=b']
    """
    if pattern in known:
        return [pattern]
    grouping = canonical(pattern.removesuffix("=*"))
    return [name for name in known if name == grouping or (name != ALL and grouping_of(name) == grouping)]


def _check_dataset(run: Results, other: Results, question: ComparisonQuestion) -> None:
    if question.other_dataset or run.run["dataset_fingerprint"] == other.run["dataset_fingerprint"]:
        return
    datasets = [
        f"{side.output} (run {side.run_id}) has {side.queries_in_words} and "
        f"{side.run['dataset']['judgements']:,} judgements, fingerprint {side.run['dataset_fingerprint']}"
        for side in (run, other)
    ]
    parts = changed_parts(run, other)
    difference = f" (only the {parts} differ)" if parts else ""
    raise InputError(
        f"the runs have different datasets{difference}: {'; '.join(datasets)}; "
        "to compare only the queries that both have, add --other-dataset"
    )


def _metrics(run: Results, other: Results | None, question: ComparisonQuestion) -> list[str]:
    theirs = run.metrics if other is None else other.metrics
    common = [name for name in run.metrics if name in theirs]
    if not common:
        ours = ", ".join(run.metrics)
        raise InputError(f"the runs have no metric in common: {ours} in one, {', '.join(theirs)} in the other")
    spellings = {name: run.metric_spelled(name) for name in question.metrics}
    requested = [
        str(metric) for name, known in spellings.items() for metric in ([known] if known else parse_all([name]))
    ]
    for name in requested:
        if name not in common:
            raise InputError(f"there is no metric {name} to compare; {did_you_mean(name, common)}")
    return requested or common


def _strata(run: Results, other: Results | None, metrics: Sequence[AnyMetric]) -> str | None:
    """The attribute by which the labelled queries were drawn, for metrics by labels and judge."""
    if not any(judged_alone(panel) for panel in panels_of(metrics)):
        return None
    for metric, judged in _unjudged_metrics(run, other, map(str, metrics)).items():
        problem = f"{metric}: {_UNJUDGED.format(judged)}, or compare other metrics"
        raise InputError(problem, path=run.output)
    names = [read_labels(side.judge_settings["labels"]).strata for side in (run, other) if side is not None]
    return next(filter(None, names), None)


def _unjudged_metrics(run: Results, other: Results | None, metrics: Iterable[str]) -> dict[str, str]:
    """Metrics with labels that need the judge's own values, which one run lacks, each with the missing metric."""
    theirs = run.metrics if other is None else other.metrics
    return {
        str(panel.metrics[0]): str(judged)
        for panel in panels_of(parse_defined(metrics))
        for judged in judged_alone(panel)
        if str(judged) not in run.metrics or str(judged) not in theirs
    }


def _slices(run: Results, other: Results | None, question: ComparisonQuestion) -> list[str]:
    known = list(dict.fromkeys([*run.slices, *([] if other is None else other.slices)]))
    slices: dict[str, None] = {}
    for pattern in question.slices:
        matching = slices_matching(pattern, known)
        if not matching:
            raise InputError(f"there is no slice {pattern!r}; {did_you_mean(pattern, [*run.sliced_by, *known])}")
        slices |= dict.fromkeys(matching)
    return list(slices)


def _statistics(run: Results, question: ComparisonQuestion) -> Statistics:
    """The run's statistics, with the question's changes, for the requested pairs only."""
    stated = {name: value for name, value in run.run["statistics"].items() if name in Statistics.__dataclass_fields__}
    changes = {name: getattr(question, name) for name in ("confidence", "seed", "replicates")}
    requested = {name: value for name, value in changes.items() if value is not None}
    return replace(Statistics(**stated), **requested, all_pairs=question.all_pairs)


def _members(
    run: Results, other: Results | None, question: ComparisonQuestion
) -> tuple[list[Member], int, tuple[tuple[int, int], ...]]:
    """The configurations, the baseline's position, and the pairs if they do not all have this baseline."""
    ours = [Member(run, row["config_id"], row["name"]) for row in run.configurations]
    if other is None:
        name = question.baseline or run.baseline
        position = _position(name, ours, run)
        if len(ours) == 1:
            problem = f"has no configuration but {name!r}; name a second folder to compare it with"
            raise InputError(problem, path=run.output)
        return ours, position, ()
    if question.all_pairs:
        raise InputError("--all-pairs compares the configurations of one run; leave out the second folder")
    theirs = [Member(other, row["config_id"], row["name"]) for row in other.configurations]
    if question.baseline is not None:
        return [*ours, theirs[_position(question.baseline, theirs, other)]], len(ours), ()
    names = [description.name for description in theirs]
    both = [our for our in ours if our.name in names]
    if not both:
        problem = f"{', '.join(our.name for our in ours)} in one, {', '.join(names)} in the other"
        raise InputError(f"the runs have no configuration of the same name: {problem}; name one as --baseline")
    members = [*both, *(theirs[names.index(configuration.name)] for configuration in both)]
    return members, 0, tuple((position, len(both) + position) for position in range(len(both)))


def _position(name: str, members: Sequence[Member], run: Results) -> int:
    names = [member.name for member in members]
    if name not in names:
        raise InputError(f"no configuration is named {name!r}; {did_you_mean(name, names)}", path=run.output)
    return names.index(name)


def _rows(members: Sequence[Member], evaluation: _ComparedRuns) -> list[NamedComparison]:
    """The comparisons, some pairs at a time."""
    with_attributes = evaluation.statistics.cluster is not None or evaluation.strata is not None
    partitions = [*partitions_of(members, evaluation.panels, evaluation.slices, with_attributes=with_attributes)]
    first, *others = evaluation.pieces()
    estimates = RunEstimates.of(_aggregate(partitions, first), first)
    for other in others:
        estimates = estimates.merge(RunEstimates.of_differences(_aggregate(partitions, other), other))
    comparisons = []
    for row in comparisons_of(estimates):
        one, base = members[int(row.config_id)], members[int(row.baseline)]
        comparisons.append(NamedComparison(one.name, base.name, one.config_id, base.config_id, row))
    return comparisons


def _aggregate(partitions: Sequence[ScoredPartition], evaluation: Evaluation) -> RunAggregate:
    aggregate = RunAggregate()
    clusters: dict[tuple[str, int], ClusterTotals] = {}
    for partition in partitions:
        aggregate = aggregate.merge(RunAggregate.of(partition, evaluation))
        for key, totals in cluster_totals(partition, evaluation):
            clusters[key] = totals.merge(clusters.get(key, ClusterTotals()))
    for (name, _), totals in clusters.items():
        aggregate = aggregate.merge(RunAggregate(clusters={name: cluster_moments(totals, evaluation)}))
    return aggregate
