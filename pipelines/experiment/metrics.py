"""`metrics:` of an experiment, with the metrics that `dataset.qrels_holes` and the judges add, and `race:`."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.file.models import SPAN, ExperimentModel
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.file.services import Services
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_all, parse_judged
from rankbeam.transforms.judge.metrics import notes as notes_on_names
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.judging.criteria import Criterion, criteria_in, full_metric_name
from rankbeam.transforms.records.metrics import other_tools
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.values import has_unjudged_bounds
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.stages import Judging

AnyMetric = Metric | JudgedMetric
GRADED = "ContextRelevance"  # the metric for which a judge grades documents


def metrics_of(file: ExperimentFile) -> dict[AnyMetric, int]:
    """Every metric once, as the judges compute it, with its first position.

    They include the metrics that `dataset.qrels_holes` adds.
    """
    judge = file.model.judge
    names = [] if judge is None else list(judge.criteria or ())  # criteria with mistakes are reported
    metrics: dict[AnyMetric, int] = {}
    for i, name in enumerate(file.model.metrics or ()):
        try:
            for metric in parse_all([full_metric_name(name, names)]):
                if (bound := _with_criterion(metric, file.criteria, names)) is not None:
                    metrics.setdefault(bound, i)
        except InputError as error:
            also = f"; criteria of judge: {', '.join(names)}" if names and "unknown metric" in error.problem else ""
            file.located.report(("metrics", i), f"{error.problem}{also}")
    return _by_judges(file, _with_holes(file, metrics))


def _with_criterion(metric: AnyMetric, criteria: Mapping[str, Criterion], names: Collection[str]) -> AnyMetric | None:
    """The metric with its criterion; None if the criterion has mistakes, which are reported."""
    if not isinstance(metric, JudgedMetric) or not metric.is_criterion:
        return metric
    (name,) = criteria_in([metric.name])
    if name in names and name not in criteria:
        return None
    if name not in criteria:
        raise InputError(f"{metric} is not one of judge.criteria; {did_you_mean(name, criteria)}")
    bound = replace(metric, criterion=criteria[name])
    if metric.cutoff is not None and not bound.definition.takes_cutoff:
        problem = "has a cutoff, but its criterion is not about single contexts"
        raise InputError(f"{metric} {problem}; write {replace(metric, cutoff=None)}")
    return bound


def holes_of(file: ExperimentFile) -> Holes | None:
    """The rules for filling holes; None to leave them unfilled."""
    settings = file.model.dataset.qrels_holes
    if settings is None:
        return None
    return Holes(settings.depth, None if settings.grades is None else tuple(settings.grades), settings.audit)


def _with_holes(file: ExperimentFile, metrics: Mapping[AnyMetric, int]) -> dict[AnyMetric, int]:
    """The metrics; those of the first documents also for judged documents only, and with holes filled.

    The metric for which the judge grades documents is added as well.
    """
    located, holes = file.located, holes_of(file)
    located.problems.extend(_wrong_holes(located, holes, metrics))
    if holes is None:
        return dict(metrics)
    if problem := _holes_problem(file.model):
        located.report(("dataset", "qrels_holes"), problem)
        return dict(metrics)
    added: dict[AnyMetric, int] = {}
    for metric, place in metrics.items():
        added.setdefault(metric, place)
        if isinstance(metric, Metric) and _is_filled(metric, holes):
            unfilled = replace(metric, holes=False)
            for variant in (unfilled, replace(unfilled, judged_only=True), replace(unfilled, holes=True)):
                added.setdefault(variant, place)
    if not any(isinstance(metric, Metric) and metric.holes for metric in added):
        problem = f"fills the first {holes.depth} documents, but no metric is limited to them; add a metric such as"
        located.report(("dataset", "qrels_holes"), f"{problem} nDCG@{holes.depth}")
    place = max(added.values(), default=0)
    graded = parse_judged(f"{GRADED}@{holes.depth}")
    is_there = any(isinstance(metric, JudgedMetric) and metric.means(graded) for metric in added)
    return added if is_there else {**added, graded: place}


def _is_filled(metric: Metric, holes: Holes) -> bool:
    is_within = metric.cutoff is not None and metric.cutoff <= holes.depth
    return is_within and not metric.judged_only and has_unjudged_bounds(metric)


def _wrong_holes(located: YamlDocument, holes: Holes | None, metrics: Mapping[AnyMetric, int]) -> Iterator[InputError]:
    for metric, place in metrics.items():
        if not isinstance(metric, Metric) or not metric.holes:
            continue
        if holes is None:
            problem = "fills holes; write dataset: {qrels_holes: llm}, so that the judge grades documents"
            yield located.error(("metrics", place), f"{metric} {problem}")
        elif not _is_filled(metric, holes):
            problem = f"needs a cutoff up to {holes.depth}, which is dataset.qrels_holes.depth"
            yield located.error(("metrics", place), f"{metric} {problem}")


def _holes_problem(model: ExperimentModel) -> str:
    """Return what the experiment lacks to fill holes, as text; "" if it lacks nothing."""
    if model.judge is None or not model.judge.service:
        return "is filled by a judge; name its model: judge: {service: NAME}"
    if model.dataset.unit == SPAN:
        return "fills judgements of documents or chunks; unit: span judges every chunk by its evidence"
    return ""


def _by_judges(file: ExperimentFile, metrics: Mapping[AnyMetric, int]) -> dict[AnyMetric, int]:
    """Every metric as the judges compute it, with its first position."""
    judging, result = file.judging, dict[AnyMetric, int]()
    for metric, position in metrics.items():
        voices: list[AnyMetric] = [metric]
        if isinstance(metric, JudgedMetric) and judging is not None:
            voices = list(_voices(metric, judging, file.services))
            if not voices:
                hint = did_you_mean(metric.judge or "", judging.services)
                problem = f"{metric}: no judge has that name; {hint}"
                file.located.report(("metrics", position), problem)
        for voice in voices:
            result.setdefault(voice, position)
    return result


def _voices(metric: JudgedMetric, judging: Judging, services: Services) -> Iterator[JudgedMetric]:
    """The metric by the majority and by each judge, or with the names of its offline models."""
    first, *others = judging.services
    embedder = services.valid.get(judging.embeddings or "")
    embeddings = embedder.kind if embedder is not None and embedder.parameters.offline else None
    judge = services.valid.get(first)
    metric = metric.shown(embeddings=embeddings)
    if not others:
        kind = judge.kind if judge is not None and judge.parameters.offline else None
        if metric.judge in (None, kind, first):
            yield metric.shown(judge=kind)
    elif not metric.is_judged:
        yield metric
    elif metric.judge is not None:
        if metric.judge == first or (metric.votes and metric.judge in others):
            yield metric
    elif not metric.votes:
        yield metric.shown(judge=first)
    else:
        yield metric
        yield from (metric.shown(judge=name) for name in judging.services)


def race_of(file: ExperimentFile, metrics: Iterable[AnyMetric]) -> Race | None:
    """Rules of the experiment's race; None without a race, or after reporting an invalid one."""
    located, race = file.located, file.model.race
    if race is None or race.metric is None:
        return None
    names = {str(_plain(metric)): str(metric) for metric in reversed(list(metrics))}  # the majority before its judges
    try:
        name = full_metric_name(race.metric, criteria_in(names))
        spellings = [str(_plain(metric)) for metric in parse_all([name])]
    except InputError as error:
        located.report(("race", "metric"), error.problem)
        return None
    known = [names[name] for name in spellings if name in names]
    if not known:
        problem = f"{race.metric} is not one of the metrics; {did_you_mean(race.metric, names.values())}"
        located.report(("race", "metric"), problem)
        return None
    if not file.model.statistics.replicates:
        located.report(("race",), "compares by the bootstrap, but statistics.replicates is 0")
    return Race(known[0], race.alpha, tuple(race.looks))


def _plain(metric: AnyMetric) -> AnyMetric:
    """The metric without the models in its name."""
    return replace(metric, judge=None, embeddings=None) if isinstance(metric, JudgedMetric) else metric


def notes(file: ExperimentFile, metrics: Mapping[AnyMetric, int]) -> Iterator[str]:
    """Warnings about metrics, ties and the unit, before any call."""
    model = file.model
    yield from notes_on_names(model.metrics)
    yield from other_tools.notes(model.metrics)
    for metric in metrics if model.ties else ():
        if isinstance(metric, Metric) and metric.definition.ties is None:
            most = f"{metric.definition.highest:g}"
            yield f"{metric} defines no bounds under ties: where judged documents are tied, they are 0 and {most}"
    if model.dataset.unit == SPAN and model.dataset.corpus is None:
        yield "quotes of the evidence are not checked, and no chunk is located by its text: there is no corpus"
    if (holes := holes_of(file)) is None:
        return
    plain = [metric for metric in metrics if isinstance(metric, Metric) and not metric.judged_only]
    deep = [str(metric) for metric in plain if has_unjudged_bounds(metric) and not _is_filled(metric, holes)]
    if deep:
        verb = "looks" if len(deep) == 1 else "look"
        yield f"{', '.join(deep)} {verb} beyond the first {holes.depth} documents, and further holes are not filled"


def unused_criteria(file: ExperimentFile, metrics: Iterable[AnyMetric]) -> Iterator[str]:
    used = criteria_in(map(str, metrics)) if file.criteria else ()
    for name in file.criteria:
        if name not in used:
            place = ("judge", "criteria", name)
            yield str(file.located.error(place, "is not one of the metrics, so it is not judged"))
