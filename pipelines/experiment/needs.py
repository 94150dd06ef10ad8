"""Checks across sections: the needs of metrics, slices and retrievers, and services that cannot meet them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from rankbeam.pipelines.config.yaml_lines import YamlDocument, list_in
from rankbeam.pipelines.experiment.file.models import SPAN, ExperimentModel
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.grid.cells import Cell, ExpandedGrid
from rankbeam.pipelines.experiment.grid.components import ANSWERS
from rankbeam.pipelines.experiment.metrics import AnyMetric
from rankbeam.transforms.clients.formats.cases.source import is_cases
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.judge.metrics import JudgedMetric, named_in
from rankbeam.transforms.judge.panel import problem_of_labels
from rankbeam.transforms.judge.steps.criterion import ALL
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.judging.criteria import criteria_in, full_metric_name
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics.dialects import DIALECTS
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.values import not_defined
from rankbeam.transforms.records.scores.scored import ranking_metric
from rankbeam.transforms.records.slices import RANKED_BY, attributes_of, ranked_by


def unmet(file: ExperimentFile, metrics: Mapping[AnyMetric, int], expanded: ExpandedGrid) -> Iterator[InputError]:
    """Report what one section of an experiment needs and another lacks, and sections that contradict each other."""
    yield from _missing_inputs(file.located, file.model, expanded)
    yield from _needs_of_metrics(file.located, file.model, metrics, expanded.cells)
    yield from _wrong_unit(file.located, file.model, metrics)
    yield from _beyond_scores(file, metrics, expanded)
    yield from _wrong_baseline(file, expanded)


def _missing_inputs(located: YamlDocument, model: ExperimentModel, expanded: ExpandedGrid) -> Iterator[InputError]:
    """The missing parts of the dataset that a retriever or a slice needs."""
    section = located.value.get("dataset")
    for need in sorted({need for source in expanded.sources for need in source.retriever.needs}):
        if not isinstance(section, dict) or section.get(need) is None:
            yield located.error(("dataset", need), f"is missing; a configuration's retriever needs the {need}")
    if any(map(attributes_of, model.slices)) and isinstance(section, dict) and section.get("queries") is None:
        yield located.error(("slices",), "need attributes of queries, but dataset.queries is missing")
    if model.statistics.cluster is not None and isinstance(section, dict) and section.get("queries") is None:
        problem = "is an attribute of queries, but dataset.queries is missing"
        yield located.error(("statistics", "cluster"), problem)


def _needs_of_metrics(
    located: YamlDocument, model: ExperimentModel, metrics: Mapping[AnyMetric, int], cells: Sequence[Cell]
) -> Iterator[InputError]:
    yield from _wrong_decision(located, model.decide_by, list(metrics))
    dataset = located.value.get("dataset")
    if not isinstance(dataset, dict):
        return  # reported
    if model.dataset.unit != SPAN:  # with spans, evidence is needed instead
        yield from _rankings(located, dataset, [metric for metric in metrics if isinstance(metric, Metric)])
    yield from _ranks(located, model, metrics)
    judged = {metric: position for metric, position in metrics.items() if isinstance(metric, JudgedMetric)}
    answering = _has_answers(located) or any(cell.retriever.role == ANSWERS for cell in cells)
    for metric, position in judged.items():
        for problem in _judged_problems(model, metric, answering):
            yield located.error(("metrics", position), f"{metric} {problem}")
        if Need.SAMPLES in metric.definition.needs and not _has_samples(cells):
            problem = "compares several answers of one model; ask for them: generate: {samples: 3}, or keep those of a"
            problem += " file: answers: {samples: keep}"
            yield located.error(("metrics", position), f"{metric} {problem}")
        if metric.criterion is not None and metric.criterion.pairs is not None:
            for problem in _pair_problems(model, metric.criterion.pairs, cells):
                yield located.error(("metrics", position), f"{metric} {problem}")
    if judged and dataset.get("queries") is None:
        yield located.error(("dataset", "queries"), "is missing; the judge reads the queries")
    reads = [cell for cell in cells if judged or cell.generator is not None or cell.reranker is not None]
    if reads:
        yield from _without_texts(located, dataset, cells if judged else reads)


def _wrong_decision(located: YamlDocument, name: str | None, metrics: Sequence[AnyMetric]) -> Iterator[InputError]:
    """The problem of deciding by a metric that is not computed."""
    if name is None or not metrics:
        return
    try:
        names = [*map(str, metrics)]
        is_known = named_in(full_metric_name(name, criteria_in(names)), metrics)
        problem = "" if is_known else f"is not one of the metrics: {', '.join(names)}"
    except InputError as error:
        problem = error.problem
    if problem:
        yield located.error(("decide_by",), problem)


def _ranks(located: YamlDocument, model: ExperimentModel, metrics: Collection[AnyMetric]) -> Iterator[InputError]:
    """Slices by rank without a metric that shows the rank."""
    for place, name in enumerate(model.slices):
        metric = ranked_by(name)
        if metric is None:
            continue
        if metric.partition("@")[0] not in RANKED_BY:
            problem = f"{metric} is not a reciprocal rank; valid are: {', '.join(f'rank({one})' for one in RANKED_BY)}"
            yield located.error(("slices", place), problem)
        elif metrics and ranking_metric(name, list(map(str, metrics))) is None:
            yield located.error(("slices", place), f"{name} needs the metric {metric}; add it to metrics:")


def _has_answers(located: YamlDocument) -> bool:
    """Return whether a configuration has answers, even invalid ones, which are reported elsewhere."""
    items = list_in(located.value, "configurations")
    mappings = [item for item in items if isinstance(item, dict)]
    return any(item.get(key) is not None for item in mappings for key in ("generate", ANSWERS))


def _has_samples(cells: Sequence[Cell]) -> bool:
    """Return whether a configuration has several answers to a query."""
    return any(
        cell.retriever.parameters.keeps_samples
        or (cell.generator is not None and cell.generator.parameters.samples > 1)
        for cell in cells
    )


def _pair_problems(model: ExperimentModel, pairs: str, cells: Sequence[Cell]) -> Iterator[str]:
    """Problems of a criterion that compares answers, to be printed after the metric's name."""
    answered = [cell.name for cell in cells if cell.is_answered]
    baseline = model.baseline or next((cell.name for cell in cells), None)
    if len(answered) < 2:
        yield "compares answers of several configurations, but fewer than two have answers"
    elif pairs != ALL and baseline not in answered:
        yield f"compares with the baseline, but {baseline!r} has no answers; name another one under baseline:"
    if model.race is not None:
        yield "compares configurations with each other, but a race drops some; remove one of the two"


def _rankings(located: YamlDocument, dataset: Mapping[str, object], metrics: Sequence[Metric]) -> Iterator[InputError]:
    if dataset.get("qrels") is None and metrics:
        verb = "needs" if len(metrics) == 1 else "need"
        yield located.error(("dataset", "qrels"), f"is missing; {', '.join(map(str, metrics))} {verb} judgements")


def _judged_problems(model: ExperimentModel, metric: JudgedMetric, answering: bool) -> Iterator[str]:
    """Problems of a judged metric in this experiment, to be printed after its name."""
    needs, answers = metric.definition.needs, model.dataset.answers
    if not metric.definition.steps:
        pass  # a formula of texts alone
    elif model.judge is None or not model.judge.services:
        yield "is judged; name the model that judges: judge: {service: NAME}"
    elif Need.EMBEDDINGS in needs and model.judge.embeddings is None:
        yield "compares embeddings; name the model that makes them: judge: {service: NAME, embeddings: NAME}"
    if metric.labels:
        yield from _label_problems(model, metric)
    if Need.ANSWER in needs and not answering:
        yield "judges answers, but no configuration has any; add generate: or answers: to one"
    elif Need.CONTEXTS in needs and not answering and metric.cutoff is None:
        yield f"judges contexts; set the number of first results, such as {metric}@5"
    if Need.REFERENCE in needs and answers is None:
        yield _without_references(model.dataset.queries or "")
    elif Need.EXPECTED_STEPS in needs and answers is None:
        yield "needs expected steps, which reference answers have: dataset: {answers: {path: FILE}}"
    elif {Need.NUGGETS, Need.ANSWERABLE} & needs and (answers is None or answers.path is None):
        key = "nuggets" if Need.NUGGETS in needs else "answerable"
        yield f"needs {key}, which a file of reference answers has: dataset: {{answers: {{path: FILE}}}}"


def _without_references(queries: str) -> str:
    if is_cases(queries):
        known = "no row has one under a known key; name it: --column reference=KEY, or columns: {reference: KEY}"
        return f"needs reference answers, and {known}"
    return "needs reference answers; say where they are: dataset: {answers: ATTRIBUTE} or {answers: {path: FILE}}"


def _label_problems(model: ExperimentModel, metric: JudgedMetric) -> Iterator[str]:
    """Problems of a metric by human labels, to be printed after its name."""
    if model.judge is not None and model.judge.labels is None:
        yield "needs human labels; name their folder: judge: {service: NAME, labels: OUT/labels}"
    if model.statistics.cluster is not None:
        yield "counts queries; it cannot count the clusters of statistics.cluster"
    if model.race is not None:
        yield "has values of labelled queries only, so it cannot be in a race"
    if (problem := problem_of_labels(metric)) is not None:
        yield problem


def _without_texts(located: YamlDocument, dataset: Mapping[str, object], cells: Sequence[Cell]) -> Iterator[InputError]:
    """Refuse runs without a corpus: they contain only document ids, whereas services return texts."""
    named = [cell.item_name for cell in cells if cell.retriever.parameters.route is Route.READ]
    if dataset.get("corpus") is None and named:
        problem = f"is missing; the run of {named[0]!r} names documents, whose texts are read from there"
        yield located.error(("dataset", "corpus"), problem)


def _wrong_unit(
    located: YamlDocument, model: ExperimentModel, metrics: Mapping[AnyMetric, int]
) -> Iterator[InputError]:
    """Problems with the unit of the judgements."""
    dataset, with_spans = model.dataset, model.dataset.unit == SPAN
    retrieval = {metric: position for metric, position in metrics.items() if isinstance(metric, Metric)}
    for metric, position in retrieval.items():
        if (problem := not_defined(metric, dataset.unit)) is not None:
            yield located.error(("metrics", position), f"{metric} {problem}")
    yield from _unknown_ties(located, model, retrieval)
    if not with_spans:
        if dataset.evidence is not None:
            yield located.error(("dataset", "evidence"), "judges spans; write unit: span, or remove the evidence")
        return
    if dataset.evidence is None and retrieval:
        yield located.error(("dataset", "evidence"), "is missing; unit: span judges by evidence spans")
    if dataset.qrels is not None:
        problem = "would not be used: unit: span takes its grades from dataset.evidence; remove one of the two"
        yield located.error(("dataset", "qrels"), problem)
    if model.ties:
        yield located.error(("ties",), "bounds under ties are not defined with unit: span; remove it")
    for position, name in enumerate(model.dialects or ()):
        if name in DIALECTS and DIALECTS[name].counts_chunks:
            yield located.error(("dialects", position), f"{name} counts chunks of judged documents, not spans")


def _unknown_ties(located: YamlDocument, model: ExperimentModel, metrics: Mapping[Metric, int]) -> Iterator[InputError]:
    for metric, position in metrics.items() if model.ties else ():
        if metric.definition.ties is None and metric.definition.highest is None and model.dataset.unit != SPAN:
            problem = "has neither bounds under ties nor a highest value; define one of them, or remove `ties: true`"
            yield located.error(("metrics", position), f"{metric} {problem}")


def _beyond_scores(
    file: ExperimentFile, metrics: Mapping[AnyMetric, int], expanded: ExpandedGrid
) -> Iterator[InputError]:
    """Work that a service that only scores criteria cannot do."""
    located, judging = file.located, file.judging
    names = {name for name, service in file.services.valid.items() if service.parameters.only_scores}
    for configuration in expanded.configurations:
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
    for metric, position in metrics.items() if judging.services[0] in names else ():
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


def _wrong_baseline(file: ExperimentFile, expanded: ExpandedGrid) -> Iterator[InputError]:
    baseline, names = file.model.baseline, [configuration.name for configuration in expanded.configurations]
    named = [str(configuration.name) for configuration in file.model.configurations or ()]
    broken = [name for name in named if not any(f"{one}:".startswith(f"{name}:") for one in names)]
    if baseline is None or baseline in names or baseline.partition(":")[0] in broken:
        return
    hint = did_you_mean(baseline, [*names, *broken])
    yield file.located.error(("baseline",), f"no configuration is named {baseline!r}; {hint}")
