"""The branches of a pipeline that produce rankings: read, retrieved in process, or retrieved by calls."""

from dataclasses import dataclass, field

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.embeddings import embed
from rankbeam.pipelines.run.options import workers_of
from rankbeam.transforms.call import Called, CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.retrievers.retrieve import STAGE, Retrieve, reaching_alike
from rankbeam.transforms.clients.storage.batches import RANKINGS
from rankbeam.transforms.read import Dataset, ReadRun
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.replay import ReplayAnswers, Replayed
from rankbeam.transforms.retrieve import remote
from rankbeam.transforms.retrieve.local import RetrieveRankings
from rankbeam.transforms.retrieve.remote import CollectRankings


@dataclass
class Branches:
    """The collections that the branches of a pipeline produce; each branch adds its own.

    Attributes:
        rankings: pairs of bucket and rows, by their name in the input of `ScoreRankings`.
        failures: pairs of bucket and failure.
        warnings: texts that users should see.
        usage: use of the quota pools; None where none is used.
        replayed: existing answers, by bucket and source; None where there are none.
    """

    rankings: dict[str, beam.PCollection] = field(default_factory=dict)
    failures: list[beam.PCollection] = field(default_factory=list)
    warnings: list[beam.PCollection] = field(default_factory=list)
    usage: beam.PCollection | None = None
    replayed: beam.PCollection | None = None


def rankings_of(
    pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset, buckets: int
) -> Branches:
    """The rankings of every source; fusions are computed from the others at scoring."""
    embedded = embed(pipeline, experiment, execution, dataset) if experiment.embedders else None
    usage = None if embedded is None else embedded.usage
    branches = local_rankings(pipeline, experiment, dataset, buckets, usage)
    if embedded is not None:
        branches.warnings.append(embedded.warnings)
    if experiment.remote:
        _call(experiment, execution, dataset, branches)
    return branches


def local_rankings(
    pipeline: beam.Pipeline,
    experiment: Experiment,
    dataset: Dataset,
    buckets: int,
    embedded: beam.PCollection | None = None,
) -> Branches:
    """The rankings that need no call, but those that embed texts.

    Args:
        pipeline: of the run.
        experiment: what is to be done.
        dataset: the queries.
        buckets: into how many parts they are divided.
        embedded: the usage of the models that embed texts; None where none does.
    """
    branches = Branches(usage=embedded)
    for number, source in enumerate(experiment.evaluation.sources):
        if source.path is not None:
            rows = pipeline | f"ReadRun{number}" >> ReadRun(source.path, number, buckets)
            branches.rankings[f"{RANKINGS}_{number}"] = rows
    if experiment.local:
        _retrieve(experiment, dataset, branches, buckets)
    if experiment.replayed:
        _replay(experiment, dataset, branches, buckets)
    return branches


def _retrieve(experiment: Experiment, dataset: Dataset, branches: Branches, buckets: int) -> None:
    """Run the retrievers that answer in process."""
    top_k = {source: experiment.evaluation.sources[source].top_k or 0 for source in experiment.local}
    shares = min(buckets, workers_of(dataset.judged.pipeline.options))
    retrieve = RetrieveRankings(experiment.local, top_k, experiment.searched, dataset.summary, shares, branches.usage)
    rankings, failed, warnings = dataset.judged | "RetrieveRankings" >> retrieve
    branches.rankings[RANKINGS] = rankings
    branches.failures.append(failed)
    branches.warnings.append(warnings)


def _call(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    """Call the retrievers behind a network."""
    owner = Owner(execution.run_id, execution.started_at.isoformat(), experiment.wait_for_lease_s)
    earlier, ledger = branches.usage, Ledger(experiment.ledger, owner)
    services = CallServices(retrieve_stage(experiment), ledger, dataset.summary, earlier)
    called: Called = tasks_to_do(dataset.judged, experiment) | "CallServices" >> services
    collected = called.answers | "CollectRankings" >> CollectRankings(experiment.evaluation, called.recalled)
    branches.rankings[f"{RANKINGS}_called"] = collected.rankings
    branches.failures += [collected.failures, called.failed | "FailedCalls" >> beam.FlatMap(remote.failures_of)]
    branches.warnings.append(called.warnings)
    branches.usage = called.usage if earlier is None else (earlier, called.usage) | "UsageSoFar" >> beam.Flatten()


def _replay(experiment: Experiment, dataset: Dataset, branches: Branches, buckets: int) -> None:
    """Add existing answers, and the rankings that they are based on."""
    replayed: Replayed = dataset.judged | "ReplayAnswers" >> ReplayAnswers(experiment.replayed, buckets)
    branches.replayed = replayed.answers
    branches.rankings[f"{RANKINGS}_replayed"] = replayed.rankings
    branches.failures.append(replayed.failures)
    branches.warnings.append(replayed.warnings)


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
