"""The branch of a pipeline in which models answer from retrieved contexts, and a judge judges the answers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.run.buckets import of_documents
from rankbeam.pipelines.run.stages import calls_of_stage
from rankbeam.transforms.call import CallResults
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.contexts import GatherContexts
from rankbeam.transforms.judge.agreement import AgreementRows, audit_table
from rankbeam.transforms.judge.answering import Answerer, AnswerGenerator
from rankbeam.transforms.judge.ask_known import AskKnown, known_steps
from rankbeam.transforms.judge.collect import WORK, CollectEvaluated, item_failure_rows, judged_without_calls, tasks_of
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.measure import MeasureJudge, PlanKnown, QualityRows
from rankbeam.transforms.judge.panel import MAJORITY
from rankbeam.transforms.judge.quality import circularity, self_preference
from rankbeam.transforms.judge.rows import Rows
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.criterion import CriterionStep, template_of
from rankbeam.transforms.judge.templates import templates
from rankbeam.transforms.judge.work import STAGE, EvaluateAnswers
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.prompt import template_hash
from rankbeam.transforms.records.calls.steps import CallAnswer, Work
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN, EvaluatedItem
from rankbeam.transforms.records.labels import NO_LABELS
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.stages import Judging

# Prompts may have begun the thoughts, and a limit of tokens may have ended them.
_THOUGHTS = re.compile(r"^\s*<think>|</think>")


@dataclass(frozen=True)
class AnswerBranch:
    """Collections of the branch."""

    values: beam.PCollection
    rows: Mapping[str, list[beam.PCollection]]
    usage: beam.PCollection | None  # None if no model is called
    warnings: beam.PCollection
    grades: beam.PCollection | None = None  # None if no holes are filled

    def together(self, others: Mapping[str, beam.PCollection]) -> dict[str, beam.PCollection]:
        """The rows for each table, from this branch and from others."""
        return {
            name: [*parts, *([others[name]] if name in others else [])] | f"Every_{name}" >> beam.Flatten()
            for name, parts in self.rows.items()
        }


def answers_of(
    experiment: Experiment,
    execution: Run,
    dataset: Dataset,
    parts: dict[str, beam.PCollection],
    earlier: beam.PCollection | None = None,
) -> AnswerBranch | None:
    """Let models answer, and a judge judge; None if an experiment has no model, no judge and no existing answers."""
    work = work_of(experiment)
    counts = contexts_wanted(work) | dict.fromkeys(_replayed_positions(experiment))
    if not counts:
        return None
    gather = GatherContexts(
        experiment.evaluation, counts, experiment.dataset.corpus, of_documents(experiment.dataset.corpus)
    )
    items = parts | "GatherContexts" >> gather
    if not work.services:
        return _unjudged_branch(experiment, work, items, tuple(counts))
    asks = known_of(experiment, work, execution.started_at)
    call = calls_of_stage(answer_stage(experiment, work, asks), experiment, execution, dataset, earlier)
    tasks = items | "PlanAnswers" >> beam.FlatMap(tasks_of, tuple(counts))
    if asks:
        tasks = (tasks, items | "PlanKnown" >> PlanKnown(asks)) | "EveryTask" >> beam.Flatten()
    called: CallResults = tasks | "CallModels" >> call
    rows = rows_of(experiment, work)
    values, grades, row_tables = called.answers | "CollectEvaluated" >> CollectEvaluated(rows)
    failed_rows = called.failed | "FailedItems" >> beam.Map(item_failure_rows, rows)
    tables = {name: [part] for name, part in row_tables.items()}
    tables["failures"].append(failed_rows)
    warnings = (called.warnings, _thought_warnings(experiment, called.answers)) | "WarningsOfAnswers" >> beam.Flatten()
    if work.judges:
        is_strict = experiment.judging is not None and experiment.judging.strict_version
        measure = MeasureJudge(quality_rows_of(experiment, work), asks, Ledger(experiment.ledger), is_strict)
        quality, quality_warnings = called.answers | "MeasureJudge" >> measure
        tables["judge_quality"] = [quality]
        if work.labels.rows or work.panel.votes:
            labelled = called.answers | "LabelledVerdicts" >> beam.FlatMap(
                lambda answer: (*answer.value.labelled, *answer.value.votes)
            )
            together = labelled | "TogetherVerdicts" >> beam.combiners.ToList()
            agreement = agreement_rows_of(experiment, work)
            tables["agreement"] = [together | "AgreementRows" >> beam.Map(agreement.table)]
        family = items.pipeline | "FamilyWarnings" >> beam.Create(list(family_warnings(experiment, work)))
        warnings = (warnings, quality_warnings, family) | "WarningsOfModels" >> beam.Flatten()
    grades = None if experiment.evaluation.holes is None else grades
    return AnswerBranch(values, tables, called.usage, warnings, grades)


def _unjudged_branch(
    experiment: Experiment, work: EvaluateAnswers, items: beam.PCollection, configurations: tuple[int, ...]
) -> AnswerBranch:
    """Existing answers that nothing judges."""
    existing = items | "GivenAnswers" >> beam.FlatMap(judged_without_calls, work, configurations)
    values, _, row_tables = existing | "CollectEvaluated" >> CollectEvaluated(rows_of(experiment, work))
    rows = {name: [row_tables[name]] for name in ("answers", "texts", "failures")}
    return AnswerBranch(values, rows, None, _thought_warnings(experiment, existing))


def _thought_warnings(experiment: Experiment, evaluated: beam.PCollection) -> beam.PCollection:
    """Warnings that answers contain the thoughts of a model; a service without a parser for them leaves them there."""
    names = [configuration.name for configuration in experiment.evaluation.configurations]
    counts = evaluated | "FindThoughts" >> beam.FlatMap(with_thoughts).with_output_types(tuple[int, int])
    return counts | "CountThoughts" >> beam.CombinePerKey(sum) | "WarnOfThoughts" >> beam.Map(_thought_warning, names)


def with_thoughts(element: CallAnswer) -> Iterator[tuple[int, int]]:
    """The configuration of each answer that contains thoughts."""
    if isinstance(element.value, EvaluatedItem):  # and not known items
        for row in element.value.answers:
            if _THOUGHTS.search(row.answer.text or ""):
                yield row.configuration, 1


def _thought_warning(element: tuple[int, int], names: Sequence[str]) -> str:
    position, total = element
    advice = "judges and metrics take them as part of the answer; let the service or application remove them"
    return f"{names[position]}: {pluralize(total, 'answer')} with a model's thoughts (<think>): {advice}"


def work_of(experiment: Experiment) -> EvaluateAnswers:
    judging, services = experiment.judging, experiment.calls.services
    configurations = experiment.evaluation.configurations
    answering = {
        position: AnswerGenerator(
            _model(services[configuration.generation.service]), configuration.generation, experiment.calls.day
        )
        for position, configuration in enumerate(configurations)
        if configuration.generation is not None
    }
    metrics = {
        position: tuple(metric for metric in experiment.judged if str(metric) in configuration.judged)
        for position, configuration in enumerate(configurations)
        if configuration.judged
    }
    answerers = _answerers(experiment, answering)
    if judging is None or not any(metric.definition.steps for metric in experiment.judged):
        return EvaluateAnswers(answering, (), metrics, answerers=answerers)
    asking = judge_of(experiment, judging)
    models = [_model(experiment.calls.services[name]) for name in judging.services[1:]]
    others = tuple(replace(asking, model=model, embedder=None) for model in models)
    labels = NO_LABELS if judging.labels is None else read_labels(judging.labels)
    baseline = experiment.evaluation.baseline
    fills_holes = experiment.evaluation.holes is not None
    samples, share = judging.samples, judging.repeat_share
    return EvaluateAnswers(
        answering, (asking, *others), metrics, samples, share, labels, baseline, fills_holes, answerers
    )


def judge_of(experiment: Experiment, judging: Judging) -> Judge:
    services = experiment.calls.services
    embedder = None if judging.embeddings is None else _model(services[judging.embeddings])
    prompts = dict(templates(judging.prompts, judging.examples))
    criteria = [metric.criterion for metric in experiment.judged if metric.criterion is not None]
    prompts |= {criterion.step: template_of(criterion, prompts[CriterionStep.name]) for criterion in criteria}
    most = None if judging.max_context_tokens is None else judging.max_context_tokens * CHARACTERS_PER_TOKEN
    model, in_windows = _model(services[judging.services[0]]), judging.in_windows
    return Judge(model, prompts, embedder, judging.max_output_tokens, most, in_windows)


def audit_rows(experiment: Experiment, scored: beam.PCollection) -> beam.PCollection:
    """The audit of the judge that fills holes, as rows of `agreement`."""
    assert experiment.judging is not None  # noqa: S101  an experiment that fills holes has a judge
    label = judge_of(experiment, experiment.judging).model.label
    parts = scored | "Audited" >> beam.FlatMap(lambda partition: filter(None, [partition.audited]))
    together = parts | "TogetherAudited" >> beam.combiners.ToList()
    assert experiment.evaluation.holes is not None  # noqa: S101
    confidence, most = experiment.evaluation.statistics.confidence, experiment.evaluation.holes.audit
    return together | "AuditRows" >> beam.Map(audit_table, label, confidence, most)


def contexts_wanted(work: EvaluateAnswers) -> dict[int, int | None]:
    """The maximum number of contexts for each configuration that is answered or judged; None for all."""
    counts: dict[int, int | None] = {
        position: answerer.generation.contexts for position, answerer in work.answering.items()
    }
    for position, metrics in work.metrics.items():
        cutoffs = [metric.cutoff for metric in metrics]
        if position in counts:  # metrics without a cutoff judge the generator's contexts
            counts[position] = max(counts[position] or 0, *(cutoff or 0 for cutoff in cutoffs))
        else:
            counts[position] = None if None in cutoffs else max(cutoff or 0 for cutoff in cutoffs)
    return counts


def _replayed_positions(experiment: Experiment) -> list[int]:
    """Positions of the configurations with existing answers, which are used with all their contexts."""
    evaluation = experiment.evaluation
    return [
        place
        for place, configuration in enumerate(evaluation.configurations)
        if evaluation.sources[configuration.source].replayed
    ]


def known_of(experiment: Experiment, work: EvaluateAnswers, began: datetime) -> tuple[AskKnown, ...]:
    """Works that send known items to judges; none for offline judges, whose verdicts never change."""
    steps = known_steps(experiment.judged)
    verdicts = tuple(step for step in steps if step_named(step).judges)
    return tuple(
        AskKnown(judge, began, verdicts if place else steps, is_further=place > 0)
        for place, judge in enumerate(work.judges)
        if judge.model.parameters.offline is None and (verdicts if place else steps)
    )


def family_warnings(experiment: Experiment, work: EvaluateAnswers) -> Iterator[str]:
    """Warnings that a model judges answers of its own family, or that an offline judge has a vote."""
    names = [configuration.name for configuration in experiment.evaluation.configurations]
    answering = {names[position]: answerer.model for position, answerer in work.answering.items()}
    yield from self_preference([judge.model for judge in work.judges], answering)
    for judge in work.judges if work.panel.votes else ():
        if (offline := judge.model.parameters.offline) is not None:
            yield f"judge={judge.model.name}: {offline}; its verdicts count in every majority"
    if experiment.evaluation.holes is not None:
        for judge in work.judges:
            yield from circularity(judge, work.answering, names)


def quality_rows_of(experiment: Experiment, work: EvaluateAnswers) -> QualityRows:
    pools, services = experiment.calls.pools, experiment.calls.services
    quotas = {judge.model.name: pools[services[judge.model.name].pool or ""] for judge in work.judges}
    confidence = experiment.evaluation.statistics.confidence
    return QualityRows(work.panel.names, work.templates, quotas, confidence)


def agreement_rows_of(experiment: Experiment, work: EvaluateAnswers) -> AgreementRows:
    """Rows about the agreement of judges with people and with each other."""
    judges: dict[str | None, str] = dict(work.panel.names.items())
    judges |= {None: MAJORITY} if work.panel.votes else {}
    statistics = experiment.evaluation.statistics
    return AgreementRows(work.labels, judges, work.panel.levels, statistics.confidence, statistics.seed)


def answer_stage(experiment: Experiment, work: EvaluateAnswers, asks: Iterable[AskKnown]) -> Stage:
    works: dict[str, Work[Any]] = {WORK: work, **{ask.work: ask for ask in asks}}
    return experiment.calls.stage(STAGE, works, batches=True)


def rows_of(experiment: Experiment, work: EvaluateAnswers) -> Rows:
    return Rows(experiment.evaluation.configurations, work.answerers, work.panel.names, dict(work.templates))


def _answerers(experiment: Experiment, answering: Mapping[int, AnswerGenerator]) -> dict[int, Answerer]:
    """The model or application that answers for each configuration, with prices."""
    answerers = {
        position: Answerer(
            entry.model,
            template_hash(entry.generation.template),
            experiment.calls.pools[experiment.calls.services[entry.model.name].pool or ""],
        )
        for position, entry in answering.items()
    }
    return answerers | {
        position: Answerer(quota=experiment.calls.pools[experiment.evaluation.sources[configuration.source].pool or ""])
        for position, configuration in enumerate(experiment.evaluation.configurations)
        if configuration.source in experiment.applications
    }


def _model(service: ConfiguredService) -> Model:
    return Model(service.name, service.kind, service.parameters)
