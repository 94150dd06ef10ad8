"""The branch of a pipeline in which models embed documents and queries, before any of them are compared."""

from typing import NamedTuple

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.folders import owner_of
from rankbeam.transforms.call import Called, CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import STAGE, Embed
from rankbeam.transforms.embed import Searching, tasks_of_documents, tasks_of_queries, warning_of
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.run import Run


class Embedded(NamedTuple):
    """What `embed` returns."""

    usage: beam.PCollection
    """Of the quota pools; it is there when all calls have ended."""
    warnings: beam.PCollection
    """Texts that users should see."""


def embed(pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset) -> Embedded:
    """Embed what retrievers in process compare; the vectors stay in the ledger, where retrievers find them."""
    owner = owner_of(experiment, execution)
    services = CallServices(embed_stage(experiment), Ledger(experiment.ledger, owner), dataset.summary)
    called: Called = tasks_to_embed(pipeline, experiment, dataset) | "CallEmbedders" >> services
    failed = called.failed | "AllNotEmbedded" >> beam.combiners.ToList() | "NotEmbedded" >> beam.FlatMap(warning_of)
    return Embedded(called.usage, (called.warnings, failed) | "WarningsOfEmbedders" >> beam.Flatten())


def tasks_to_embed(pipeline: beam.Pipeline, experiment: Experiment, dataset: Dataset) -> beam.PCollection[TaskBatch]:
    """The tasks that embed documents, chunks and queries."""
    documents = (
        pipeline
        | "Embedded" >> beam.Create(_searching(experiment), reshuffle=False)
        | "PlanDocuments" >> beam.FlatMap(tasks_of_documents).with_output_types(TaskBatch)
    )
    asked = beam.FlatMap(tasks_of_queries, _of_queries(experiment)).with_output_types(TaskBatch)
    return (documents, dataset.judged | "PlanQueries" >> asked) | "EveryText" >> beam.Flatten()


def embed_stage(experiment: Experiment) -> Stage:
    """The stage of embedding: its services and budgets."""
    embedders = experiment.embedders.values()
    works = [work for each in embedders for work in (each, each.as_role(Role.QUERY))]
    models = {each.service: each.parameters for each in embedders}
    return Stage(
        STAGE,
        {work.name: work for work in works},
        models,
        {name: experiment.services[name].pool or "" for name in models},
        experiment.pools,
        experiment.accounts(),
        budget=experiment.budget,
    )


def _searching(experiment: Experiment) -> list[Searching]:
    searched = experiment.searched
    return [(each, experiment.local[source], searched[source]) for source, each in experiment.embedders.items()]


def _of_queries(experiment: Experiment) -> dict[str, Embed]:
    """The models that embed queries: not those whose retriever reads vectors of queries from a file."""
    return {
        each.service: each
        for source, each in experiment.embedders.items()
        if "query_vectors" not in experiment.local[source].inputs()
    }
