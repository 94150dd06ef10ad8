"""The branch of a pipeline that reranks rankings once all of them are complete."""

from collections.abc import Mapping

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.generate import ModelRerankParameters
from rankbeam.pipelines.experiment.grid.components import NO_LIMITS
from rankbeam.pipelines.experiment.grid.components import Reranking as Component
from rankbeam.pipelines.run.branches import Branches
from rankbeam.pipelines.run.buckets import of_documents
from rankbeam.pipelines.run.stages import calls_of_stage
from rankbeam.transforms.call import CallResults
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.models.scoring import CrossEncode, Rate
from rankbeam.transforms.clients.retrievers.rerankers import Rerank, Reranker
from rankbeam.transforms.clients.storage.batches import RANKINGS
from rankbeam.transforms.contexts import GatherContexts
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.stages import RERANK
from rankbeam.transforms.retrieve import rerank
from rankbeam.transforms.retrieve.rerank import CalledReranking, CollectReranked, Reranking, ScoreInProcess


def rerank_all(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    """Rerank in process, and by calls once the usage of earlier calls is known."""
    items = items_of(branches.parts(dataset), experiment)
    works, stage = rerank_works(experiment), rerank_stage(experiment)
    scores = {"items": items}
    if stage.works:
        call = calls_of_stage(stage, experiment, execution, dataset, branches.usage)
        called: CallResults = tasks_to_rerank(items, experiment) | "CallRerankers" >> call
        scores |= {"scores": called.answers, "failed": called.failed}
        branches.warnings.append(called.warnings)
        branches.add_usage(called.usage, "UsageWithRerankers")
    if len(stage.works) < len(works):
        scores["computed"], warnings = items | "ScoreInProcess" >> ScoreInProcess(experiment.evaluation, works)
        branches.warnings.append(warnings)
    rankings, failed, warnings = scores | "CollectReranked" >> CollectReranked(experiment.evaluation, works)
    branches.rankings[f"{RANKINGS}_reranked"] = rankings
    branches.failures.append(failed)
    branches.warnings.append(warnings)


def items_of(parts: dict[str, beam.PCollection], experiment: Experiment) -> beam.PCollection:
    """The first results of each ranking, to be reranked, with their texts, query by query."""
    evaluation, corpus = rerank.as_configurations(experiment.evaluation), experiment.dataset.corpus
    counts = dict.fromkeys(range(len(evaluation.configurations)))
    items: beam.PCollection = parts | "GatherRerank" >> GatherContexts(evaluation, counts, corpus, of_documents(corpus))
    return items


def tasks_to_rerank(items: beam.PCollection, experiment: Experiment) -> beam.PCollection[TaskBatch]:
    works = rerank_works(experiment)
    plan = beam.FlatMap(rerank.tasks_of, works, experiment.evaluation).with_output_types(TaskBatch)
    return items | "PlanRerank" >> plan


def rerank_works(experiment: Experiment) -> dict[int, Reranking]:
    """The work that scores the texts of each reranked source."""
    names = experiment.called_names
    return {source: _work(entry, experiment, names) for source, entry in experiment.rerankers.items()}


def _work(component: Component, experiment: Experiment, names: Mapping[int, str]) -> Reranking:
    parameters = component.parameters
    if isinstance(parameters, ModelRerankParameters):
        service = experiment.calls.services[parameters.service]
        if isinstance(service.parameters, Onnx):
            return CrossEncode(service.name, service.parameters)
        return Rate(service.name, service.kind, service.parameters, parameters.max_output_tokens, parameters.thinking)
    first = next(other for other, entry in experiment.rerankers.items() if entry.is_like(component))
    remote = experiment.sources[first].retriever.remote
    assert isinstance(remote, Reranker)  # noqa: S101  no model
    return Rerank(names[first], component.kind, remote.model_copy(update=NO_LIMITS))


def rerank_stage(experiment: Experiment) -> Stage:
    works: dict[int, CalledReranking] = {
        source: work for source, work in rerank_works(experiment).items() if not isinstance(work, CrossEncode)
    }
    called: dict[str, tuple[Service, str | None]] = {
        work.service: (work.parameters, experiment.calls.services[work.service].pool)
        if isinstance(work, Rate)
        else (work.reranker, experiment.evaluation.sources[source].pool)
        for source, work in works.items()
    }
    return experiment.calls.stage(RERANK, {f"{RERANK} {source}": work for source, work in works.items()}, called)
