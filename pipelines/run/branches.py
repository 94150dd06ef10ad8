"""The branches of a pipeline that produce rankings: read, retrieved in process, or retrieved by calls.

A branch that few experiments have is imported where it is added: to score runs, calls and retrievers are not needed.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.options import workers_of
from rankbeam.transforms.clients.storage.batches import FAILURES, JUDGED, RANKINGS, SourceRows
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.read_files import ReadRun
from rankbeam.transforms.records.run import Run

if TYPE_CHECKING:
    from rankbeam.transforms.retrieve.replay import CollectedAnswers


@dataclass
class Branches:
    """The collections that the branches of a pipeline produce; each branch adds its own."""

    rankings: dict[str, beam.PCollection] = field(default_factory=dict)
    failures: list[beam.PCollection] = field(default_factory=list)
    warnings: list[beam.PCollection] = field(default_factory=list)
    rewritten: beam.PCollection | None = None  # by source, rewritten queries; None if none are rewritten
    usage: beam.PCollection | None = None  # use of the quota pools; None if none is used
    replayed: beam.PCollection | None = None

    def parts(self, dataset: Dataset) -> dict[str, beam.PCollection]:
        """Queries, rankings and failures so far, as `GatherContexts` takes them."""
        parts = {JUDGED: dataset.judged, **self.rankings}
        if self.failures:
            parts[FAILURES] = self.failures | f"FailuresSoFar_{len(self.failures)}" >> beam.Flatten()
        return parts

    def add_applications(self, collected: "CollectedAnswers | None") -> None:
        """Add the answers of applications, which are used as those that exist already."""
        if collected is None:
            return
        self.rankings[f"{RANKINGS}_applications"] = collected.rankings
        parts = [collected.answers, *([] if self.replayed is None else [self.replayed])]
        self.replayed = parts | "EveryAnswer" >> beam.Flatten()


def rankings_of(
    pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset, buckets: int
) -> Branches:
    """The rankings of every source; fusions are computed from the others at scoring."""
    before = Branches()
    if experiment.rewritten:
        _rewrite(experiment, execution, dataset, before)
    before.rewritten = with_joined(experiment, dataset, before.rewritten)
    if experiment.embedders:
        from rankbeam.pipelines.run.calling import embed

        embedded = embed(pipeline, experiment, execution, dataset, before.rewritten, before.usage)
        before.usage = embedded.usage
        before.warnings.append(embedded.warnings)
    branches = local_rankings(pipeline, experiment, dataset, buckets, before)
    if experiment.remote:
        from rankbeam.pipelines.run.calling import call

        called = call(experiment, execution, dataset, branches.usage, branches.rewritten)
        branches.rankings[f"{RANKINGS}_called"] = called.rankings
        branches.add_applications(called.applications)
        branches.failures += called.failures
        branches.warnings.append(called.warnings)
        branches.usage = called.usage
    if experiment.rerankers:
        _rerank(experiment, execution, dataset, branches)
    return branches


def with_joined(
    experiment: Experiment, dataset: Dataset, rewritten: beam.PCollection | None, label: str = ""
) -> beam.PCollection | None:
    """The rewritten queries, and those of sources that are asked the messages before a query, too."""
    if not experiment.joined:
        return rewritten
    from rankbeam.transforms.retrieve.rewrite import with_histories

    join = beam.FlatMap(with_histories, experiment.joined).with_output_types(SourceRows)
    joined = dataset.judged | f"JoinHistory{label}" >> join
    return joined if rewritten is None else (joined, rewritten) | f"WithJoined{label}" >> beam.Flatten()


def _rewrite(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    from rankbeam.pipelines.run.rewriting import rewrite_all

    rewritten = rewrite_all(experiment, execution, dataset)
    branches.rewritten, branches.usage = rewritten.queries, rewritten.usage
    branches.failures.append(rewritten.failures)
    branches.warnings += rewritten.warnings


def _rerank(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    from rankbeam.pipelines.run.reranking import rerank_all

    reranked = rerank_all(experiment, execution, dataset, branches.parts(dataset), branches.usage)
    branches.rankings[f"{RANKINGS}_reranked"] = reranked.rows.rankings
    branches.failures.append(reranked.rows.failures)
    branches.warnings += [reranked.rows.warnings, *reranked.warnings]
    branches.usage = reranked.usage


def local_rankings(
    pipeline: beam.Pipeline, experiment: Experiment, dataset: Dataset, buckets: int, before: Branches | None = None
) -> Branches:
    """The rankings that need no call, but those that rewrite queries and embed texts, which were made before."""
    branches = Branches() if before is None else before
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
    from rankbeam.transforms.retrieve.local import RetrieveRankings

    top_k = {source: experiment.evaluation.sources[source].top_k or 0 for source in experiment.local}
    shares = min(buckets, workers_of(dataset.judged.pipeline.options))
    retrieve = RetrieveRankings(
        experiment.local,
        top_k,
        experiment.documents_by_source,
        dataset.summary,
        shares,
        branches.usage,
        branches.rewritten,
    )
    rankings, failed, warnings = dataset.judged | "RetrieveRankings" >> retrieve
    branches.rankings[RANKINGS] = rankings
    branches.failures.append(failed)
    branches.warnings.append(warnings)


def _replay(experiment: Experiment, dataset: Dataset, branches: Branches, buckets: int) -> None:
    from rankbeam.transforms.retrieve.replay import ReplayAnswers

    is_ranked = bool(experiment.evaluation.retrieval)
    replayed = dataset.judged | "ReplayAnswers" >> ReplayAnswers(experiment.replayed, buckets, is_ranked)
    branches.replayed = replayed.answers
    branches.rankings[f"{RANKINGS}_replayed"] = replayed.rankings
    branches.failures.append(replayed.failures)
    branches.warnings.append(replayed.warnings)
