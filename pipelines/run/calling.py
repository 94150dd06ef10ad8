"""The branch of a pipeline that calls retrievers behind a network, and the order of all stages that make calls."""

from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.embeddings import embed_stage
from rankbeam.pipelines.run.folders import owner_of
from rankbeam.pipelines.run.waves import CallStage
from rankbeam.transforms.call import Called, CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.retrievers.retrieve import STAGE, Retrieve, reaching_alike
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.retrieve import remote
from rankbeam.transforms.retrieve.remote import CollectRankings


class CalledRankings(NamedTuple):
    """What `call` returns; the collections are those of `Branches`."""

    rankings: beam.PCollection
    failures: list[beam.PCollection]
    warnings: beam.PCollection
    usage: beam.PCollection


def call(experiment: Experiment, execution: Run, dataset: Dataset, earlier: beam.PCollection | None) -> CalledRankings:
    """Call the retrievers behind a network, once the usage of earlier calls is known."""
    owner = owner_of(experiment, execution)
    ledger = Ledger(experiment.ledger, owner)
    services = CallServices(retrieve_stage(experiment), ledger, dataset.summary, earlier)
    called: Called = tasks_to_do(dataset.judged, experiment) | "CallServices" >> services
    collected = called.answers | "CollectRankings" >> CollectRankings(experiment.evaluation, called.recalled)
    failures = [collected.failures, called.failed | "FailedCalls" >> beam.FlatMap(remote.failures_of)]
    usage = called.usage if earlier is None else (earlier, called.usage) | "UsageSoFar" >> beam.Flatten()
    return CalledRankings(collected.rankings, failures, called.warnings, usage)


def tasks_to_do(judged: beam.PCollection, experiment: Experiment) -> beam.PCollection[TaskBatch]:
    """The tasks that send every query to every remote retriever."""
    works = retrieve_works(experiment)
    last = {source: experiment.evaluation.last_of(source) for source in works}
    return judged | "PlanTasks" >> beam.FlatMap(remote.tasks_of, works, last).with_output_types(TaskBatch)


def retrieve_works(experiment: Experiment) -> dict[int, Retrieve]:
    """For each source that is a remote retriever, its work."""
    works = {}
    for source, retriever in experiment.remote.items():
        wanted, kind = experiment.evaluation.sources[source], experiment.sources[source].retriever.kind
        works[source] = Retrieve(f"{kind} {source}", kind, retriever, Reach(wanted.top_k or 0, wanted.distance))
    return reaching_alike(works)


def retrieve_stage(experiment: Experiment) -> Stage:
    """The stage of retrieval: its services and budgets."""
    works = retrieve_works(experiment)
    sources = experiment.evaluation.sources
    return Stage(
        STAGE,
        {work.service: work for work in works.values()},
        {work.service: work.retriever for work in works.values()},
        {work.service: sources[source].pool or "" for source, work in works.items()},
        experiment.pools,
        experiment.accounts(),
        experiment.max_failure_rate,
        experiment.budget,
    )


def call_stages(experiment: Experiment) -> Iterator[CallStage]:
    """The stages of an experiment that make calls; models are called once every ranking is there."""
    embed, retrieve = embed_stage(experiment), retrieve_stage(experiment)
    yield CallStage(embed.name, embed.pools.values())
    yield CallStage(retrieve.name, retrieve.pools.values(), after={embed.name})
    if experiment.calls_models:
        from rankbeam.pipelines.run.answers import answer_stage, work_of  # answers need rankings, not the reverse

        judge = answer_stage(experiment, work_of(experiment))
        yield CallStage(judge.name, judge.pools.values(), after={retrieve.name})
