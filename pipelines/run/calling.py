"""Branches that call embedding models and remote retrievers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.branches import Branches
from rankbeam.pipelines.run.stages import calls_of_stage
from rankbeam.transforms.call import CallResults
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import STAGE as EMBED_STAGE
from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.retrievers.applications.ask import Ask
from rankbeam.transforms.clients.retrievers.applications.callables import CallableApplication
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.base import STAGE, Retrieve, RetrieverParameters, with_common_depth
from rankbeam.transforms.clients.storage.batches import RANKINGS, Bucketed, SourceRows
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.steps import FailedTask, SearchDepth, Subject, Task
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.queries import Documents
from rankbeam.transforms.records.race import first_of
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.retrieve import remote
from rankbeam.transforms.retrieve.local import CUT, CutOfSource, WarnOfCut
from rankbeam.transforms.retrieve.remote import CollectRankings
from rankbeam.transforms.retrieve.replay import (
    CollectAnswersFn,
    count_parts,
    is_application,
    part_warnings,
    ranked_answers,
)

Searching = tuple[Embed, RetrieverParameters, Documents]
"""An embedding model, the retriever that compares its embeddings, and the documents to search."""


def call(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    """Call the retrievers behind a network, once the usage of earlier calls is known."""
    services = calls_of_stage(retrieve_stage(experiment), experiment, execution, dataset, branches.usage)
    tasks, cut = tasks_to_do(dataset.judged, experiment, branches.rewritten, branches.usage)
    called: CallResults = tasks | "CallServices" >> services
    add_answers(called.answers, called.recalled, experiment, branches)
    branches.failures.append(called.failed | "FailedCalls" >> beam.FlatMap(remote.failures_of))
    branches.warnings += [called.warnings, *cut]
    branches.add_usage(called.usage, "UsageSoFar")


def add_answers(
    answers: beam.PCollection, recalled: beam.PCollection | None, experiment: Experiment, branches: Branches
) -> None:
    """Add retrievers' rankings and applications' answers, which are used like existing answers."""
    rankings = answers
    if experiment.applications:
        rankings = answers | "OfRetrievers" >> beam.Filter(lambda answer: not is_application(answer))
        application_answers = answers | "OfApplications" >> beam.Filter(is_application)
        collect, rank = beam.ParDo(CollectAnswersFn()), beam.Map(ranked_answers)
        rows = application_answers | "CollectAnswers" >> collect.with_output_types(SourceRows)
        branches.rankings[f"{RANKINGS}_applications"] = rows | "RankAnswers" >> rank.with_output_types(SourceRows)
        names = {source: _name(experiment, source) for source in experiment.applications}
        warn = beam.FlatMap(part_warnings, names, _warnings_of_contexts(experiment))
        counts = beam.FlatMap(count_parts).with_output_types(tuple[tuple[int, str], int])
        totals = application_answers | "CountParts" >> counts | "AddParts" >> beam.CombinePerKey(sum)
        branches.warnings.append(totals | "WarnOfParts" >> warn)
        existing = [] if branches.replayed is None else [branches.replayed]
        branches.replayed = [rows, *existing] | "EveryAnswer" >> beam.Flatten()
    collect = CollectRankings(experiment.evaluation, recalled)
    branches.rankings[f"{RANKINGS}_called"], unusable = rankings | "CollectRankings" >> collect
    branches.failures.append(unusable)


def _warnings_of_contexts(experiment: Experiment) -> dict[int, str]:
    """By application whose contexts are read, the warning that no answer has any."""
    texts = {}
    for source, retriever in experiment.remote.items():
        if isinstance(retriever, HttpApplication) and retriever.results is not None:
            is_function = isinstance(retriever, CallableApplication)
            place = "" if is_function else f" at {retriever.results}"
            advice = "return them as contexts" if is_function else "correct the path, or leave it out"
            texts[source] = (
                f"{_name(experiment, source)}: no answer has contexts{place}, so judges and metrics see none; {advice}"
            )
    return texts


def _name(experiment: Experiment, source: int) -> str:
    return experiment.evaluation.configurations[experiment.evaluation.owner(source)].name


def tasks_to_do(
    judged: beam.PCollection,
    experiment: Experiment,
    rewritten: beam.PCollection | None,
    usage: beam.PCollection | None = None,
) -> tuple[beam.PCollection[TaskBatch], list[beam.PCollection[str]]]:
    """The tasks that send every query, or the text that replaces it, to every remote retriever; and warnings.

    Vectors of queries are there once the `usage` of earlier stages is known.
    """
    works = retrieve_works(experiment)
    last = {source: experiment.evaluation.last_of(source) for source in works}
    unrewritten = {source: work for source, work in works.items() if source not in experiment.own_texts}
    embeddings = {source: work.embeddings for source, work in works.items() if work.embeddings is not None}
    after = [] if usage is None or not embeddings else [beam.pvalue.AsList(usage)]

    def planned(queries: beam.PCollection, label: str, *plan: Any) -> Any:
        parts = beam.FlatMap(*plan, last, *after).with_output_types(TaskBatch, cut=CutOfSource)
        return queries | label >> parts.with_outputs(CUT, main="tasks")

    parts = [planned(judged, "PlanTasks", remote.tasks_of, unrewritten)]
    if rewritten is not None:
        parts.append(planned(rewritten, "PlanRewritten", remote.tasks_of_rewritten, works))
    tasks = [part.tasks for part in parts] | "AllTasks" >> beam.Flatten()
    if not embeddings:
        return tasks, []
    cut = [part[CUT] for part in parts] | "AllCut" >> beam.Flatten()
    return tasks, [cut | "WarnOfCut" >> WarnOfCut(embeddings, experiment.own_texts)]


def retrieve_works(experiment: Experiment) -> dict[int, Retrieve]:
    """The work of each source that is a remote retriever."""
    works: dict[int, Retrieve] = {}
    embeddings, names = experiment.embeddings, experiment.called_names
    for source, retriever in experiment.remote.items():
        planned, kind = experiment.evaluation.sources[source], experiment.sources[source].retriever.kind
        depth = SearchDepth(planned.top_k or 0, planned.distance)
        if isinstance(retriever, HttpApplication):
            works[source] = Ask(names[source], kind, retriever, depth)
        elif source in embeddings:
            embedded = retriever.embedded_by(embeddings[source].of_queries().identity)
            known = embeddings[source] if experiment.computes else None
            works[source] = Retrieve(names[source], kind, embedded, depth, known)
        else:
            works[source] = Retrieve(names[source], kind, retriever, depth)
    return with_common_depth(works)


def retrieve_stage(experiment: Experiment) -> Stage:
    works = retrieve_works(experiment)
    sources = experiment.evaluation.sources
    called = {work.service: (work.retriever, sources[source].pool) for source, work in works.items()}
    by_service = {work.service: work for work in works.values()}
    stage = experiment.calls.stage(STAGE, by_service, called)
    return replace(stage, max_failure_rate=experiment.calls.max_failure_rate)


def embed(
    pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches
) -> None:
    """Embed the texts that retrievers compare, and queries whose vectors are sent; both are read from the ledger."""
    services = calls_of_stage(embed_stage(experiment), experiment, execution, dataset, branches.usage)
    texts = documents_to_embed(pipeline, experiment), queries_to_embed(experiment, dataset, branches.rewritten)
    called: CallResults = texts | "EveryText" >> beam.Flatten() | "CallEmbedders" >> services
    failed = called.failed | "AllNotEmbedded" >> beam.combiners.ToList() | "NotEmbedded" >> beam.FlatMap(warning_of)
    branches.warnings += [called.warnings, failed]
    branches.add_usage(called.usage, "UsageWithEmbedders")


def documents_to_embed(pipeline: beam.Pipeline, experiment: Experiment) -> beam.PCollection[TaskBatch]:
    """The tasks that embed documents and chunks."""
    sources = pipeline | "Embedded" >> beam.Create(_embedded_sources(experiment), reshuffle=False)
    return sources | "PlanDocuments" >> beam.FlatMap(tasks_of_documents).with_output_types(TaskBatch)


def queries_to_embed(
    experiment: Experiment, dataset: Dataset, rewritten: beam.PCollection | None
) -> beam.PCollection[TaskBatch]:
    """The tasks that embed queries, or the texts that replace them."""
    batches = beam.FlatMap(tasks_of_queries, query_embedders(experiment)).with_output_types(TaskBatch)
    planned = dataset.judged | "PlanQueries" >> batches
    if rewritten is None:
        return planned
    models = {
        source: (model.as_role(experiment.role_of_queries(source)), experiment.evaluation.last_of(source))
        for source, model in experiment.embedders.items()
    }
    plan = beam.FlatMap(tasks_of_rewritten, models).with_output_types(TaskBatch)
    return (planned, rewritten | "PlanRewrittenTexts" >> plan) | "EveryQuery" >> beam.Flatten()


def embed_stage(experiment: Experiment) -> Stage:
    embedders = experiment.embedders.values()
    works = [work for embedder in embedders for work in (embedder, embedder.as_role(Role.QUERY))]
    return experiment.calls.stage(EMBED_STAGE, {work.name: work for work in works}, batches=True)


def _embedded_sources(experiment: Experiment) -> list[Searching]:
    searched, local, embedders = experiment.documents_by_source, experiment.local, experiment.embedders
    return [(embedder, local[source], searched[source]) for source, embedder in embedders.items() if source in local]


def query_embedders(experiment: Experiment) -> list[tuple[Embed, tuple[int, ...], int | None]]:
    """The models that embed queries, each with its sources, and with the last query in a race.

    Sources that read query vectors from a file have no model.
    """
    by_service = grouped(
        ((embedder.service, experiment.evaluation.last_of(source)), source)
        for source, embedder in experiment.embedders.items()
        if "query_vectors" not in experiment.sources[source].retriever.parameters.inputs()
        and source not in experiment.own_texts
    )
    return [(experiment.embedders[sources[0]], tuple(sources), last) for (_, last), sources in by_service.items()]


def tasks_of_documents(element: Searching) -> Iterator[TaskBatch]:
    embed, retriever, documents = element
    return _tasks(embed, retriever.embedded(documents))


def tasks_of_queries(
    element: Bucketed, models: Iterable[tuple[Embed, tuple[int, ...], int | None]]
) -> Iterator[TaskBatch]:
    _, judged = element
    for embed, sources, last in models:
        yield from _tasks_of_texts(embed.as_role(Role.QUERY), first_of(judged, last), sources)


def tasks_of_rewritten(element: SourceRows, models: Mapping[int, tuple[Embed, int | None]]) -> Iterator[TaskBatch]:
    """The tasks that embed the texts that replace one source's queries."""
    _, (source, queries) = element
    if source in models:
        embed, last = models[source]
        yield from _tasks_of_texts(embed, first_of(queries, last), (source,))


def _tasks_of_texts(embed: Embed, queries: pa.RecordBatch, sources: tuple[int, ...]) -> Iterator[TaskBatch]:
    return _tasks(embed, filter(str.strip, queries["text"].to_pylist()), sources)


def _tasks(embed: Embed, texts: Iterable[str], sources: tuple[int, ...] = ()) -> Iterator[TaskBatch]:
    """The tasks that embed texts. Queries' texts are charged to `sources`; documents', embedded once, to no source."""
    subjects = (Subject(EMBED_STAGE, "", 0, sources),)
    tasks = (Task(embed.call(text).key or "", embed.name, text, subjects) for text in texts)
    for batch in batches_of(tasks):
        yield embed.name, batch


def warning_of(failed: list[FailedTask]) -> Iterator[str]:
    """A warning that texts could not be embedded, with the alphabetically first error."""
    if failed:
        reason = min(failed_task.failure.message for failed_task in failed)
        yield f"{pluralize(len(failed), 'text')} could not be embedded (first error: {reason}); retried on the next run"
