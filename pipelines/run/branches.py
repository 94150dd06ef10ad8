"""The pipeline branches that produce rankings: read from files, retrieved in process, or retrieved by calls.

Branches that few experiments need are imported where they are added: scoring runs needs no calls or retrievers.
"""

from dataclasses import dataclass, field

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.options import workers_of
from rankbeam.transforms.clients.storage.batches import FAILURES, JUDGED, RANKINGS, SourceRows
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.read_files import read_runs


@dataclass
class Branches:
    """The collections that a pipeline's branches produce; each branch adds its own."""

    rankings: dict[str, beam.PCollection] = field(default_factory=dict)
    failures: list[beam.PCollection] = field(default_factory=list)
    warnings: list[beam.PCollection] = field(default_factory=list)
    rewritten: beam.PCollection | None = None  # rewritten queries by source; None if no query is rewritten
    usage: beam.PCollection | None = None  # use of the quota pools; None if none is used
    replayed: beam.PCollection | None = None  # existing answers, and answers of applications

    def parts(self, dataset: Dataset) -> dict[str, beam.PCollection]:
        """Queries, rankings and failures so far, as input for `GatherContexts`."""
        parts = {JUDGED: dataset.judged, **self.rankings}
        if self.failures:
            parts[FAILURES] = self.failures | f"FailuresSoFar_{len(self.failures)}" >> beam.Flatten()
        return parts

    def add_usage(self, usage: beam.PCollection, label: str) -> None:
        """Add the usage of a stage; the next one waits for it, so that a quota pool has one owner at a time."""
        self.usage = usage if self.usage is None else (self.usage, usage) | label >> beam.Flatten()


def with_joined(
    experiment: Experiment, dataset: Dataset, rewritten: beam.PCollection | None, label: str = ""
) -> beam.PCollection | None:
    """The rewritten queries, and queries joined with earlier messages for the sources that need them."""
    if not experiment.joined:
        return rewritten
    from rankbeam.transforms.retrieve.rewrite import with_histories

    join = beam.FlatMap(with_histories, experiment.joined).with_output_types(SourceRows)
    joined = dataset.judged | f"JoinHistory{label}" >> join
    return joined if rewritten is None else (joined, rewritten) | f"WithJoined{label}" >> beam.Flatten()


def local_rankings(
    pipeline: beam.Pipeline, experiment: Experiment, dataset: Dataset, buckets: int, branches: Branches
) -> None:
    """Add rankings that are read or computed in this process, after queries are rewritten and texts embedded."""
    runs = {
        number: source.path for number, source in enumerate(experiment.evaluation.sources) if source.path is not None
    }
    if runs:
        branches.rankings[f"{RANKINGS}_runs"] = pipeline | "ReadRuns" >> read_runs(runs, buckets)
    if experiment.local:
        _retrieve(experiment, dataset, branches, buckets)
    if experiment.replayed:
        _replay(experiment, dataset, branches, buckets)


def _retrieve(experiment: Experiment, dataset: Dataset, branches: Branches, buckets: int) -> None:
    """Run the retrievers in this process."""
    from rankbeam.transforms.retrieve.local import RetrieveRankings

    top_k = {source: experiment.evaluation.sources[source].top_k or 0 for source in experiment.local}
    last = {source: experiment.evaluation.last_of(source) for source in experiment.local}
    shares = min(buckets, workers_of(dataset.judged.pipeline.options))
    retrieve = RetrieveRankings(
        experiment.local,
        top_k,
        last,
        experiment.documents_by_source,
        dataset.summary,
        shares,
        branches.usage,
        branches.rewritten,
    )
    branches.rankings[RANKINGS], failed, warnings = dataset.judged | "RetrieveRankings" >> retrieve
    branches.failures.append(failed)
    branches.warnings.append(warnings)


def _replay(experiment: Experiment, dataset: Dataset, branches: Branches, buckets: int) -> None:
    from rankbeam.transforms.retrieve.replay import ReplayAnswers

    is_ranked = bool(experiment.evaluation.retrieval)
    replayed = dataset.judged | "ReplayAnswers" >> ReplayAnswers(experiment.replayed, buckets, is_ranked)
    branches.replayed, branches.rankings[f"{RANKINGS}_replayed"], failed, warnings = replayed
    branches.failures.append(failed)
    branches.warnings.append(warnings)
