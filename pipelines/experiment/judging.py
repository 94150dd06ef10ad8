"""`judge:` and `race:` of an experiment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.file.generate import JudgeModel
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.file.services import Services
from rankbeam.pipelines.experiment.grid.cells import Cell, Expanded
from rankbeam.pipelines.experiment.metrics import AnyMetric
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.judge.agreement import JUDGES, PEOPLE
from rankbeam.transforms.judge.metrics import NAME_OF_A_SERVICE, JudgedMetric, parse_all
from rankbeam.transforms.judge.panel import MAJORITY
from rankbeam.transforms.judge.templates import DEFAULT_VERSION, VERSION_1, VERSIONS, templates
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.judging.criteria import criteria_in, spelled
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics.evaluation import Configuration
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.stages import Judging


def judging_of(
    located: Located, model: JudgeModel | None, services: Services, folder: str, problems: list[InputError]
) -> Judging | None:
    if model is None or not model.services:  # a judge without a valid name of a service is reported
        return None
    prompts = DEFAULT_VERSION if model.prompts is None else model.prompts
    prompts = prompts if prompts in VERSIONS else files.below(folder, prompts)
    examples = None if model.examples is None else files.below(folder, model.examples)
    try:
        templates(prompts)
    except InputError as error:
        problems.append(located.error(("judge", "prompts"), str(error)))
    else:
        try:
            templates(prompts, examples)
        except InputError as error:
            problems.append(located.error(("judge", "examples"), str(error)))
    labels, strata = None if model.labels is None else files.below(folder, model.labels), None
    if labels is not None:
        try:
            strata = read_labels(labels).strata
        except InputError as error:
            problems.append(located.error(("judge", "labels"), str(error)))
    for place, name in _named(model):
        refuse = services.not_embedding if place == ("embeddings",) else services.not_writing
        problems += refuse(located, ("judge", *place), name)
    problems += (located.error(("judge", "service"), problem) for problem in _no_panel(model.services, services))
    return Judging(
        service=model.services[0],
        others=model.services[1:],
        embeddings=model.embeddings,
        samples=model.samples,
        repeat_share=model.repeat_share,
        prompts=prompts,
        examples=examples,
        max_output_tokens=model.max_output_tokens,
        strict_version=model.strict_version,
        max_context_tokens=model.max_context_tokens,
        in_windows=prompts != VERSION_1,
        labels=labels,
        strata=strata,
    )


def _no_panel(names: Sequence[str], services: Services) -> Iterator[str]:
    """Reasons why services cannot judge together."""
    if len(names) < 2:
        return
    for name in dict.fromkeys(names):
        if not NAME_OF_A_SERVICE.fullmatch(name) or name in (MAJORITY, PEOPLE, JUDGES):
            yield f"{name!r} cannot be a part of the names of metrics and judges; rename the service"
    known = [services.valid[name].decisive() for name in names if name in services.valid]
    if any(known.count(one) > 1 for one in known):
        yield "names one model twice, so its votes would be equal; keep one, or change its parameters"


def by_judges(
    located: Located,
    metrics: Mapping[AnyMetric, int],
    judging: Judging | None,
    services: Services,
    problems: list[InputError],
) -> dict[AnyMetric, int]:
    """Every metric as the judges compute it, with the position that it has first."""
    result: dict[AnyMetric, int] = {}
    for metric, position in metrics.items():
        if isinstance(metric, JudgedMetric) and judging is not None:
            voices = list(_by_judges(metric, judging, services))
            if not voices:
                hint = did_you_mean(metric.judge or "", judging.services)
                problems.append(located.error(("metrics", position), f"{metric}: no judge has that name; {hint}"))
            for voice in voices:
                result.setdefault(voice, position)
        else:
            result.setdefault(metric, position)
    return result


def _by_judges(metric: JudgedMetric, judging: Judging, services: Services) -> Iterator[JudgedMetric]:
    """The metric by the majority and each judge, or with the names of its offline models."""
    embedder = services.valid.get(judging.embeddings or "")
    embeddings = embedder.kind if embedder is not None and embedder.parameters.offline else None
    judge = services.valid.get(judging.service)
    metric = metric.shown(embeddings=embeddings)
    if not judging.others:
        kind = judge.kind if judge is not None and judge.parameters.offline else None
        if metric.judge in (None, kind, judging.service):
            yield metric.shown(judge=kind)
    elif not metric.is_judged:
        yield metric
    elif metric.judge is not None:
        if metric.judge in (judging.services if metric.votes else judging.services[:1]):
            yield metric
    elif not metric.votes:
        yield metric.shown(judge=judging.service)
    else:
        yield metric
        yield from (metric.shown(judge=name) for name in judging.services)


def beyond_scores(
    located: Located,
    metrics: Mapping[AnyMetric, int],
    configurations: Sequence[Configuration],
    judging: Judging | None,
    services: Services,
) -> Iterator[InputError]:
    """Work for a service that only scores criteria, and that it cannot do."""
    names = {name for name, service in services.valid.items() if service.parameters.only_scores}
    for configuration in configurations:
        if configuration.generation is not None and configuration.generation.service in names:
            problem = (
                f"{configuration.generation.service!r} scores criteria and cannot generate answers for "
                f"{configuration.name}"
            )
            yield located.error(("services", configuration.generation.service), problem)
    if judging is None:
        return
    if judging.embeddings in names:
        yield located.error(("judge", "embeddings"), f"{judging.embeddings!r} scores criteria and makes no embeddings")
    for metric, position in metrics.items() if judging.service in names else ():
        if isinstance(metric, JudgedMetric) and metric.definition.steps and (problem := _beyond(metric)):
            yield located.error(("metrics", position), f"{metric} {problem}")


def _beyond(metric: JudgedMetric) -> str:
    """The reason why a metric cannot be judged by scores; "" if it can."""
    if metric.criterion is None:
        return "is judged by claims, but the judge only scores criteria; name a judge that is a language model"
    words = [word for word, _ in metric.criterion.levels]
    if metric.criterion.pairs is not None or not all(map(_is_number, words)):
        return "has verdicts that are not numbers, but the judge gives scores; write its scale as 1..5"
    return ""


def _is_number(word: str) -> bool:
    return word.removeprefix("-").replace(".", "", 1).isdecimal()


def with_judged(expanded: Expanded, metrics: Iterable[AnyMetric]) -> Expanded:
    """Add to each configuration the names of the judged metrics that it has values of."""
    judged = [metric for metric in metrics if isinstance(metric, JudgedMetric)]
    configurations = tuple(
        replace(configuration, judged=frozenset(str(metric) for metric in judged if _has_values(metric, cell)))
        for cell, configuration in zip(expanded.cells, expanded.configurations, strict=True)
    )
    return replace(expanded, configurations=configurations)


def _has_values(metric: JudgedMetric, cell: Cell) -> bool:
    return cell.is_answered or (Need.ANSWER not in metric.definition.needs and metric.cutoff is not None)


def _named(model: JudgeModel) -> Iterator[tuple[Place, str]]:
    """Every name of a service, with its place below `judge:`."""
    if isinstance(model.service, str):
        yield ("service",), model.service
    else:
        yield from ((("service", number), name) for number, name in enumerate(model.services))
    if model.embeddings is not None:
        yield ("embeddings",), model.embeddings


def race_of(
    located: Located, model: ExperimentModel, metrics: Iterable[AnyMetric], problems: list[InputError]
) -> Race | None:
    """Rules of the experiment's race; None without a race, or after reporting an invalid one."""
    if model.race is None or model.race.metric is None:
        return None
    names = {str(_plain(metric)): str(metric) for metric in reversed(list(metrics))}  # the majority before its judges
    try:
        name = spelled(model.race.metric, criteria_in(names))
        spellings = [str(_plain(metric)) for metric in parse_all([name])]
    except InputError as error:
        problems.append(located.error(("race", "metric"), error.problem))
        return None
    known = [names[name] for name in spellings if name in names]
    if not known:
        problem = f"{model.race.metric} is not one of the metrics; {did_you_mean(model.race.metric, names.values())}"
        problems.append(located.error(("race", "metric"), problem))
        return None
    if not model.statistics.replicates:
        problems.append(located.error(("race",), "compares by the bootstrap, but statistics.replicates is 0"))
    return Race(known[0], model.race.alpha, tuple(model.race.looks))


def _plain(metric: AnyMetric) -> AnyMetric:
    """The metric without the models that its name may show."""
    return replace(metric, judge=None, embeddings=None) if isinstance(metric, JudgedMetric) else metric
