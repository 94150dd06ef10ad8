"""`metrics:` of an experiment, with those that `dataset.qrels_holes` adds, and what that key needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.judging import with_criterion
from rankbeam.pipelines.experiment.needs import SPAN, AnyMetric
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_all, parse_judged
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.judging.criteria import Criterion, criteria_in, spelled
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.values import has_unjudged_bounds


def metrics_of(
    located: Located,
    model: ExperimentModel,
    criteria: Mapping[str, Criterion],
    names: Sequence[str],
    problems: list[InputError],
) -> dict[AnyMetric, int]:
    """Every metric once, with the position that it has first."""
    metrics: dict[AnyMetric, int] = {}
    for i, name in enumerate(model.metrics or ()):
        try:
            named = [metric for metric in parse_all([spelled(name, names)]) if not _is_invalid(metric, criteria, names)]
            parsed = [with_criterion(metric, criteria) for metric in named]
        except InputError as error:
            also = f"; criteria of judge: {', '.join(names)}" if names and "unknown metric" in error.problem else ""
            problems.append(located.error(("metrics", i), f"{error.problem}{also}"))
        else:
            for metric in parsed:
                metrics.setdefault(metric, i)
    return metrics


def _is_invalid(metric: AnyMetric, criteria: Mapping[str, Criterion], names: Sequence[str]) -> bool:
    return any(name in names and name not in criteria for name in criteria_in([str(metric)]))


GRADED = "ContextRelevance"
"""The metric for which a judge grades documents."""


def holes_of(located: Located, model: ExperimentModel) -> Holes | None:
    """The rules for filling holes; None for leaving them."""
    dataset, of = located.value.get("dataset"), model.dataset.qrels_holes
    is_written = isinstance(dataset, dict) and "qrels_holes" in dataset  # else salvaged from a wrong experiment
    grades = None if of is None or of.grades is None else tuple(of.grades)
    return None if of is None or not is_written else Holes(of.depth, grades, of.audit)


def with_holes(
    located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int], problems: list[InputError]
) -> dict[AnyMetric, int]:
    """The metrics, each ranking metric of the first documents also of judged ones only, and with holes filled.

    The metric for which the judge grades documents is added as well.
    """
    holes = holes_of(located, model)
    problems += [located.error(("metrics", place), problem) for place, problem in _wrong(holes, metrics)]
    if holes is None:
        return dict(metrics)
    if problem := _unmet(model):
        problems.append(located.error(("dataset", "qrels_holes"), problem))
        return dict(metrics)
    added: dict[AnyMetric, int] = {}
    for metric, place in metrics.items():
        added.setdefault(metric, place)
        if isinstance(metric, Metric) and _is_filled(metric, holes):
            plain = replace(metric, holes=False)
            for variant in (plain, replace(plain, judged_only=True), replace(plain, holes=True)):
                added.setdefault(variant, place)
    if not any(isinstance(metric, Metric) and metric.holes for metric in added):
        problem = f"fills the first {holes.depth} documents, but no metric is limited to them; add a metric such as"
        problems.append(located.error(("dataset", "qrels_holes"), f"{problem} nDCG@{holes.depth}"))
    place = max(added.values(), default=0)
    graded = parse_judged(f"{GRADED}@{holes.depth}")
    is_there = any(isinstance(metric, JudgedMetric) and metric.means(graded) for metric in added)
    return added if is_there else {**added, graded: place}


def not_filled(located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int]) -> Iterator[str]:
    """A warning about metrics that look at more documents than the judge grades."""
    holes = holes_of(located, model)
    plain = [metric for metric in metrics if isinstance(metric, Metric) and not metric.judged_only]
    deep = [str(metric) for metric in plain if has_unjudged_bounds(metric) and holes and not _is_filled(metric, holes)]
    if holes is not None and deep:
        verb = "looks" if len(deep) == 1 else "look"
        yield f"{', '.join(deep)} {verb} beyond the first {holes.depth} documents, and further holes are not filled"


def _is_filled(metric: Metric, holes: Holes) -> bool:
    is_within = metric.cutoff is not None and metric.cutoff <= holes.depth
    return is_within and not metric.judged_only and has_unjudged_bounds(metric)


def _wrong(holes: Holes | None, metrics: Mapping[AnyMetric, int]) -> Iterator[tuple[int, str]]:
    for metric, place in metrics.items():
        if not isinstance(metric, Metric) or not metric.holes:
            continue
        if holes is None:
            yield (
                place,
                f"{metric} fills holes; write dataset: {{qrels_holes: llm}}, so that the judge grades documents",
            )
        elif not _is_filled(metric, holes):
            yield place, f"{metric} needs a cutoff up to {holes.depth}, which is dataset.qrels_holes.depth"


def _unmet(model: ExperimentModel) -> str:
    """Return what the experiment lacks to fill holes, for people; "" where it has everything."""
    if model.judge is None or not model.judge.service:
        return "is filled by a judge; name its model: judge: {service: NAME}"
    if model.dataset.unit == SPAN:
        return "fills judgements of documents or chunks; unit: span judges every chunk by its evidence"
    return ""
