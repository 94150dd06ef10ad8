"""Build the pipeline of an experiment: which stage gets what from which; nothing runs here."""

import sys
from functools import partial
from importlib.metadata import version
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.gates.table import verdict_of
from rankbeam.pipelines.run import worker_processes
from rankbeam.transforms.aggregate import AggregateScores, met, warnings_of
from rankbeam.transforms.call import Called, CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.retrievers.retrieve import STAGE, Retrieve, reaching_alike
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.batches import FAILURES, JUDGED, RANKINGS
from rankbeam.transforms.load import LoadTables
from rankbeam.transforms.read import ReadDataset, ReadRun
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.retrieve import remote
from rankbeam.transforms.retrieve.local import RetrieveRankings
from rankbeam.transforms.retrieve.remote import CollectRankings
from rankbeam.transforms.score import ScoreRankings
from rankbeam.transforms.write import rows as row
from rankbeam.transforms.write import tables as write

_BUCKET_BYTES = 8 << 20
_LEAST_BUCKETS, _MOST_BUCKETS = 4, 4096


def build(experiment: Experiment, execution: Run, options: PipelineOptions) -> beam.Pipeline:
    """The pipeline of an experiment."""
    experiment = experiment.pinned(f"{execution.run_id} {execution.started_at.isoformat()}")
    evaluation, output = experiment.evaluation, experiment.output
    pipeline = new_pipeline(options)
    buckets = _buckets(experiment)
    judged, summary = read_dataset(pipeline, experiment)
    runs = {
        f"{RANKINGS}_{source}": pipeline | f"ReadRun{source}" >> ReadRun(each.path, source, buckets)
        for source, each in enumerate(evaluation.sources)
        if each.path is not None
    }
    parts = {JUDGED: judged, **runs}
    rows = {"configurations": pipeline | "Configurations" >> beam.Create([row.configurations(evaluation)])}
    failures, warnings, usage = [], [], None
    if experiment.local:
        top_k = {source: evaluation.sources[source].top_k or 0 for source in experiment.local}
        ask = RetrieveRankings(experiment.local, top_k, experiment.corpus, summary)
        parts[RANKINGS], failed, told = judged | "RetrieveRankings" >> ask
        failures.append(failed)
        warnings.append(told)
    if experiment.remote:
        called = _called(experiment, execution, judged, summary)
        collected = called.answers | "CollectRankings" >> CollectRankings(evaluation)
        parts[f"{RANKINGS}_called"] = collected.rankings
        failures.append(collected.failures)
        failures.append(called.failed | "FailedCalls" >> beam.FlatMap(remote.failures_of))
        usage = called.usage
        warnings.append(called.warnings)
    if failures:
        parts[FAILURES] = failures | "EveryFailure" >> beam.Flatten()
        rows["failures"] = parts[FAILURES] | "FailureRows" >> beam.Map(row.failure_row, evaluation)
    scored = parts | "ScoreRankings" >> ScoreRankings(evaluation)
    aggregate = scored | "AggregateScores" >> AggregateScores(evaluation)
    if experiment.qrels is not None:
        aggregate = aggregate | "CheckRuns" >> beam.Map(met, evaluation, experiment.qrels)
    warnings.append(aggregate | "Warnings" >> beam.FlatMap(warnings_of, evaluation))
    rows["query_metrics"] = scored | "QueryRows" >> beam.FlatMap(row.query_metrics, evaluation)
    rows["configuration_metrics"] = aggregate | "MetricRows" >> beam.Map(metrics_table, evaluation)
    if len(evaluation.configurations) > 1:
        rows["comparisons"] = aggregate | "ComparisonRows" >> beam.Map(comparisons_table, evaluation)
    if any(source.keep_rankings for source in evaluation.sources):
        rows["rankings"] = scored | "RankingRows" >> beam.FlatMap(row.rankings, evaluation)
    written = [rows[name] | f"Write_{name}" >> write.WriteTable(name, output, execution) for name in rows]
    told = warnings | "EveryWarning" >> beam.Flatten()
    judge = partial(
        verdict_of,
        evaluation=evaluation,
        gates=experiment.gates,
        max_failure_rate=experiment.max_failure_rate,
        run=execution,
    )
    finish = write.FinishRun(
        output, execution, versions(), evaluation.statistics, judge, written, summary, aggregate, told, usage
    )
    finished = pipeline | "FinishRun" >> finish
    if experiment.bigquery is not None:
        folders = table_folders(output, execution.run_id)
        _ = finished | "LoadTables" >> LoadTables(experiment.bigquery, execution.run_id, output, folders)
    return pipeline


def table_folders(output: str, run_id: str) -> dict[str, str]:
    """Where one run's rows of each table lie."""
    return {name: write.run_folder(output, name, run_id) for name in tables.TABLES}


def read_dataset(pipeline: beam.Pipeline, experiment: Experiment) -> Any:  # judged queries by bucket, and a summary
    """Read queries and judgements."""
    return pipeline | "ReadDataset" >> ReadDataset(
        experiment.qrels,
        experiment.queries,
        _buckets(experiment),
        experiment.evaluation.attributes,
        experiment.evaluation.highest_grade,
        _compared(experiment),
        experiment.references,
        everyone=bool(experiment.judged),
    )


def _compared(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """The files whose ids are compared with those of the judgements before anything is asked.

    Where nothing is, runs are compared by their scores.
    """
    if experiment.evaluation.allow_disjoint:
        return ()
    is_asked = bool(experiment.local or experiment.remote)
    return tuple(each for each in experiment.compared if each[0] == "corpus" or is_asked)


def tasks_to_do(judged: beam.PCollection, experiment: Experiment) -> beam.PCollection[TaskBatch]:
    """The tasks that ask every remote retriever every judged query."""
    works = retrieve_works(experiment)
    return judged | "PlanTasks" >> beam.FlatMap(remote.tasks_of, works).with_output_types(TaskBatch)


def retrieve_works(experiment: Experiment) -> dict[int, Retrieve]:
    """For each source that is a remote retriever, how it is asked."""
    works = {}
    for source, retriever in experiment.remote.items():
        wanted, kind = experiment.evaluation.sources[source], experiment.sources[source].retriever.kind
        works[source] = Retrieve(f"{kind} {source}", kind, retriever, Reach(wanted.top_k or 0, wanted.distance))
    return reaching_alike(works)


def retrieve_stage(experiment: Experiment) -> Stage:
    """What retrieving calls, and out of which budgets."""
    works = retrieve_works(experiment)
    sources = experiment.evaluation.sources
    return Stage(
        STAGE,
        {work.service: work for work in works.values()},
        {work.service: work.retriever for work in works.values()},
        {work.service: sources[source].pool or "" for source, work in works.items()},
        experiment.pools,
        experiment.accounts(),
    )


def _called(
    experiment: Experiment, execution: Run, judged: beam.PCollection, summary: beam.PCollection[DatasetSummary]
) -> Called:
    owner = Owner(execution.run_id, execution.started_at.isoformat(), experiment.wait_for_lease_s)
    ledger = Ledger(experiment.ledger, owner)
    services = CallServices(retrieve_stage(experiment), ledger, summary)
    called: Called = tasks_to_do(judged, experiment) | "CallServices" >> services
    return called


def new_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """An empty pipeline on the runner that the options name.

    Raises:
        InputError: there is no such runner, or it lacks an option.
    """
    try:
        return beam.Pipeline(runner=_runner(options), options=options)
    except ValueError as error:  # an unknown runner, or an option that a runner needs and does not have
        raise InputError(str(error)) from error


def _runner(options: PipelineOptions) -> FnApiRunner | None:
    """Beam's local runner with worker processes of ours; None leaves the choice to the options."""
    direct = options.view_as(DirectOptions)
    if options.view_as(StandardOptions).runner != "FnApiRunner" or direct.direct_running_mode != "multi_processing":
        return None
    direct.direct_running_mode = "in_memory"  # the environment below says where the work is done
    return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(worker_processes.command()))


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    names = ("rankbeam", "apache-beam", "bm25s", "numpy", "pyarrow")
    return {"python": sys.version.split()[0], **{name: version(name) for name in names}}


def _buckets(experiment: Experiment) -> int:
    """Enough parts that one of them fits into memory many times over, and keeps several workers busy."""
    largest = max(files.size(path) for path in experiment.inputs())
    return max(_LEAST_BUCKETS, min(_MOST_BUCKETS, -(-largest // _BUCKET_BYTES)))
