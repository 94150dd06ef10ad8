"""`metrics:` of an experiment, with those that `dataset.qrels_holes` adds, and what they need from the rest of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.grid.cells import Cell, Expanded
from rankbeam.pipelines.experiment.grid.components import ANSWERS
from rankbeam.transforms.clients.formats.cases.source import is_cases
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.judge.metrics import JudgedMetric, named_in, parse_all, parse_judged
from rankbeam.transforms.judge.metrics import notes as notes_on_names
from rankbeam.transforms.judge.panel import problem_of_labels
from rankbeam.transforms.judge.steps.criterion import ALL
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.judging.criteria import Criterion, criteria_in, spelled
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics import other_tools
from rankbeam.transforms.records.metrics.dialects import DIALECTS
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.values import has_unjudged_bounds, not_defined
from rankbeam.transforms.records.scores.scored import ranking_metric
from rankbeam.transforms.records.slices import RANKED_BY, attributes_of, ranked_by

AnyMetric = Metric | JudgedMetric
SPAN = "span"
GRADED = "ContextRelevance"
"""The metric for which a judge grades documents."""


def metrics_of(
    located: Located, model: ExperimentModel, criteria: Mapping[str, Criterion], problems: list[InputError]
) -> dict[AnyMetric, int]:
    """Every metric once, with the position that it has first, and what `dataset.qrels_holes` adds."""
    metrics: dict[AnyMetric, int] = {}
    names = [] if model.judge is None else list(model.judge.criteria or ())  # those with mistakes are reported
    for i, name in enumerate(model.metrics or ()):
        try:
            for metric in parse_all([spelled(name, names)]):
                if (bound := _with_criterion(metric, criteria, names)) is not None:
                    metrics.setdefault(bound, i)
        except InputError as error:
            also = f"; criteria of judge: {', '.join(names)}" if names and "unknown metric" in error.problem else ""
            problems.append(located.error(("metrics", i), f"{error.problem}{also}"))
    return _with_holes(located, model, metrics, problems)


def _with_criterion(metric: AnyMetric, criteria: Mapping[str, Criterion], names: Collection[str]) -> AnyMetric | None:
    """The metric with its criterion; None where the criterion has mistakes, which are reported."""
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


def holes_of(located: Located, model: ExperimentModel) -> Holes | None:
    """The rules for filling holes; None for leaving them."""
    dataset, of = located.value.get("dataset"), model.dataset.qrels_holes
    is_written = isinstance(dataset, dict) and "qrels_holes" in dataset  # else salvaged from a wrong experiment
    grades = None if of is None or of.grades is None else tuple(of.grades)
    return None if of is None or not is_written else Holes(of.depth, grades, of.audit)


def _with_holes(
    located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int], problems: list[InputError]
) -> dict[AnyMetric, int]:
    """The metrics, each ranking metric of the first documents also of judged ones only, and with holes filled.

    The metric for which the judge grades documents is added as well.
    """
    holes = holes_of(located, model)
    problems += [located.error(("metrics", place), problem) for place, problem in _wrong_holes(holes, metrics)]
    if holes is None:
        return dict(metrics)
    if problem := _unfilled(model):
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


def _is_filled(metric: Metric, holes: Holes) -> bool:
    is_within = metric.cutoff is not None and metric.cutoff <= holes.depth
    return is_within and not metric.judged_only and has_unjudged_bounds(metric)


def _wrong_holes(holes: Holes | None, metrics: Mapping[AnyMetric, int]) -> Iterator[tuple[int, str]]:
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


def _unfilled(model: ExperimentModel) -> str:
    """Return what the experiment lacks to fill holes, for people; "" where it has everything."""
    if model.judge is None or not model.judge.service:
        return "is filled by a judge; name its model: judge: {service: NAME}"
    if model.dataset.unit == SPAN:
        return "fills judgements of documents or chunks; unit: span judges every chunk by its evidence"
    return ""


def unmet(
    located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int], expanded: Expanded
) -> Iterator[InputError]:
    """Report the missing inputs of retrievers, metrics and slices, and keys that contradict the unit of judgements."""
    yield from _missing_inputs(located, model, expanded)
    yield from _needs_of_metrics(located, model, metrics, expanded.cells)
    yield from _wrong_unit(located, model, metrics)


def _missing_inputs(located: Located, model: ExperimentModel, expanded: Expanded) -> Iterator[InputError]:
    """The parts of the dataset that a retriever or a slice needs and that are not given."""
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
    located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int], cells: Sequence[Cell]
) -> Iterator[InputError]:
    yield from _wrong_decision(located, model.decide_by, list(metrics))
    dataset = located.value.get("dataset")
    if not isinstance(dataset, dict):
        return  # reported
    if model.dataset.unit != SPAN:  # with spans, evidence is needed instead
        yield from _of_rankings(located, dataset, [metric for metric in metrics if isinstance(metric, Metric)])
    yield from _ranks(located, model, metrics)
    judged = {metric: position for metric, position in metrics.items() if isinstance(metric, JudgedMetric)}
    answering = _answering(located) or any(cell.retriever.role == ANSWERS for cell in cells)
    for metric, position in judged.items():
        for problem in _of_judged(model, metric, answering):
            yield located.error(("metrics", position), f"{metric} {problem}")
        if Need.SAMPLES in metric.definition.needs and not _sampled(cells):
            problem = "compares several answers of one model; ask for them: generate: {samples: 3}, or keep those of a"
            problem += " file: answers: {samples: keep}"
            yield located.error(("metrics", position), f"{metric} {problem}")
        if metric.criterion is not None and metric.criterion.pairs is not None:
            for problem in _of_pairs(model, metric.criterion.pairs, cells):
                yield located.error(("metrics", position), f"{metric} {problem}")
    if judged and dataset.get("queries") is None:
        yield located.error(("dataset", "queries"), "is missing; the judge reads the queries")
    reads = [cell for cell in cells if judged or cell.generator is not None or cell.reranker is not None]
    if reads:
        yield from _without_texts(located, dataset, cells if judged else reads)


def _wrong_decision(located: Located, name: str | None, metrics: Sequence[AnyMetric]) -> Iterator[InputError]:
    """The problem of a metric to decide by that is not computed."""
    if name is None or not metrics:
        return
    try:
        problem = "" if named_in(name, metrics) else f"is not one of the metrics: {', '.join(map(str, metrics))}"
    except InputError as error:
        problem = error.problem
    if problem:
        yield located.error(("decide_by",), problem)


def _ranks(located: Located, model: ExperimentModel, metrics: Collection[AnyMetric]) -> Iterator[InputError]:
    """Slices by rank without a metric that says the rank."""
    for place, name in enumerate(model.slices):
        metric = ranked_by(name)
        if metric is None:
            continue
        if metric.partition("@")[0] not in RANKED_BY:
            problem = f"{metric} is not a reciprocal rank; valid are: {', '.join(f'rank({one})' for one in RANKED_BY)}"
            yield located.error(("slices", place), problem)
        elif metrics and ranking_metric(name, list(map(str, metrics))) is None:
            yield located.error(("slices", place), f"{name} needs the metric {metric}; add it to metrics:")


def _answering(located: Located) -> bool:
    """Return whether a configuration has answers, even invalid ones, which are reported elsewhere."""
    configurations = located.value.get("configurations")
    keys = (
        [key for configuration in configurations if isinstance(configuration, dict) for key in configuration]
        if isinstance(configurations, list)
        else []
    )
    return "generate" in keys or ANSWERS in keys


def _sampled(cells: Sequence[Cell]) -> bool:
    """Return whether a configuration has several answers to a query."""
    return any(
        cell.retriever.parameters.keeps_samples
        or (cell.generator is not None and cell.generator.parameters.samples > 1)
        for cell in cells
    )


def _of_pairs(model: ExperimentModel, pairs: str, cells: Sequence[Cell]) -> Iterator[str]:
    """Problems of a criterion that compares answers, to be printed after the metric's name."""
    answered = [cell.name for cell in cells if cell.is_answered]
    baseline = model.baseline or next((cell.name for cell in cells), None)
    if len(answered) < 2:
        yield "compares answers of several configurations, but fewer than two have answers"
    elif pairs != ALL and baseline not in answered:
        yield f"compares with the baseline, but {baseline!r} has no answers; name another one under baseline:"
    if model.race is not None:
        yield "compares configurations with each other, but a race drops some; remove one of the two"


def _of_rankings(located: Located, dataset: Mapping[str, object], metrics: Sequence[Metric]) -> Iterator[InputError]:
    if dataset.get("qrels") is None and metrics:
        verb = "needs" if len(metrics) == 1 else "need"
        yield located.error(("dataset", "qrels"), f"is missing; {', '.join(map(str, metrics))} {verb} judgements")


def _of_judged(model: ExperimentModel, metric: JudgedMetric, answering: bool) -> Iterator[str]:
    """Problems of a judged metric in this experiment, to be printed after its name."""
    needs, answers = metric.definition.needs, model.dataset.answers
    if not metric.definition.steps:
        pass  # a formula of texts alone
    elif model.judge is None or not model.judge.services:
        yield "is judged; name the model that judges: judge: {service: NAME}"
    elif Need.EMBEDDINGS in needs and model.judge.embeddings is None:
        yield "compares embeddings; name the model that makes them: judge: {service: NAME, embeddings: NAME}"
    if metric.labels:
        yield from _of_labels(model, metric)
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


def _of_labels(model: ExperimentModel, metric: JudgedMetric) -> Iterator[str]:
    """Problems of a metric by human labels, to be printed after its name."""
    if model.judge is not None and model.judge.labels is None:
        yield "needs human labels; name their folder: judge: {service: NAME, labels: OUT/labels}"
    if model.statistics.cluster is not None:
        yield "counts queries; it cannot count the clusters of statistics.cluster"
    if model.race is not None:
        yield "has values of labelled queries only, so it cannot be in a race"
    if (problem := problem_of_labels(metric)) is not None:
        yield problem


def _without_texts(located: Located, dataset: Mapping[str, object], cells: Sequence[Cell]) -> Iterator[InputError]:
    """Refuse runs without a corpus, since they hold only ids of documents; services return texts."""
    named = [cell.item_name for cell in cells if cell.retriever.route is Route.READ]
    if dataset.get("corpus") is None and named:
        problem = f"is missing; the run of {named[0]!r} names documents, whose texts are read from there"
        yield located.error(("dataset", "corpus"), problem)


def _wrong_unit(located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int]) -> Iterator[InputError]:
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
        yield located.error(("ties",), "bounds over orders of ties are not known with unit: span; take it out")
    for position, name in enumerate(model.dialects or ()):
        if name in DIALECTS and DIALECTS[name].counts_chunks:
            yield located.error(("dialects", position), f"{name} counts chunks of judged documents, not spans")


def _unknown_ties(located: Located, model: ExperimentModel, metrics: Mapping[Metric, int]) -> Iterator[InputError]:
    for metric, position in metrics.items() if model.ties else ():
        if metric.definition.ties is None and metric.definition.highest is None and model.dataset.unit != SPAN:
            problem = "has neither bounds under ties nor a highest value; define one of them, or take out `ties: true`"
            yield located.error(("metrics", position), f"{metric} {problem}")


def notes(located: Located, model: ExperimentModel, metrics: Mapping[AnyMetric, int]) -> Iterator[str]:
    """Warnings about metrics, ties and the unit, before any call."""
    yield from notes_on_names(model.metrics)
    yield from other_tools.notes(model.metrics)
    for metric in metrics if model.ties else ():
        if isinstance(metric, Metric) and metric.definition.ties is None:
            most = f"{metric.definition.highest:g}"
            yield f"{metric} defines no bounds under ties: where judged documents are tied, they are 0 and {most}"
    if model.dataset.unit == SPAN and model.dataset.corpus is None:
        yield "quotes of the evidence are not checked, and no chunk is located by its text: there is no corpus"
    if (holes := holes_of(located, model)) is None:
        return
    plain = [metric for metric in metrics if isinstance(metric, Metric) and not metric.judged_only]
    deep = [str(metric) for metric in plain if has_unjudged_bounds(metric) and not _is_filled(metric, holes)]
    if deep:
        verb = "looks" if len(deep) == 1 else "look"
        yield f"{', '.join(deep)} {verb} beyond the first {holes.depth} documents, and further holes are not filled"
