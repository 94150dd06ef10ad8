"""Build an experiment's pipeline: connect the stages; nothing runs here."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.quotas import DATA
from rankbeam.pipelines.gates.table import verdict_of
from rankbeam.pipelines.local import runner, worker_processes
from rankbeam.pipelines.run.branches import Branches, local_rankings, with_joined
from rankbeam.pipelines.run.buckets import buckets_of, of_documents
from rankbeam.pipelines.run.provenance import provenance
from rankbeam.transforms.aggregate import AggregateScores, EstimateScores, check_overlap, warnings_of
from rankbeam.transforms.clients.storage.batches import FAILURES, GRADES, JUDGED, REPLAYED, VALUES
from rankbeam.transforms.clients.storage.parquet import run_folder
from rankbeam.transforms.read import Dataset, ReadDataset, above_max_rel, of_a_judge
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.score import ScoreRankings
from rankbeam.transforms.write import rows as row
from rankbeam.transforms.write.tables import FinishRun, LoadTables, WriteFn

if TYPE_CHECKING:
    from rankbeam.pipelines.run.answers import AnswerBranch


@dataclass
class Scores:
    """The collections between the dataset and the tables."""

    scored: beam.PCollection
    aggregates: beam.PCollection
    failures: beam.PCollection | None
    usage: list[beam.PCollection]
    warnings: list[beam.PCollection]
    answers: "AnswerBranch | None"  # None if there are no answers


def build(experiment: Experiment, execution: Run, options: PipelineOptions) -> beam.Pipeline:
    """Build the pipeline of an experiment.

    dataset ──► rankings: read, retrieved, by calls   ──► score ──► aggregate ──► rows ──► finish ──► BigQuery
       │                      └──► answer ──► judge ────────► values               ▲
       │                              └──────────┴── answers, verdicts ────────────┘
       └──────────────────────────────────────────────────► judgements
    """
    experiment = experiment.pinned(pin_of(execution), day_of(execution))
    evaluation = experiment.evaluation
    pipeline = new_pipeline(options)
    dataset = read_dataset(pipeline, experiment)
    scores = scores_of(pipeline, experiment, execution, dataset)
    estimates, answers = scores.aggregates | "EstimateScores" >> EstimateScores(evaluation), scores.answers
    if experiment.dataset.qrels is not None:
        estimates = estimates | "CheckRuns" >> beam.Map(check_overlap, evaluation, experiment.dataset.qrels)
    rows = dict(_rows(pipeline, evaluation, scores.failures, scores.scored, estimates))
    if evaluation.holes is not None:
        from rankbeam.pipelines.run.answers import audit_rows

        rows["agreement"] = audit_rows(experiment, scores.scored)
    if answers is not None:
        rows |= answers.together(rows)
    rows |= dict(_corpus_rows(pipeline, experiment, rows))
    if (usage := _usage(pipeline, experiment, scores.usage)) is not None:
        pools = {**experiment.calls.pools, DATA: experiment.calls.corpus_quotas.data}
        rows["usage"] = usage | "UsageRows" >> beam.Map(row.usage_row, pools, evaluation, _needed_by(experiment))
    written = [rows[name] | f"Write_{name}" >> beam.ParDo(WriteFn(name, experiment.output, execution)) for name in rows]
    score_warnings = estimates | "Warnings" >> beam.FlatMap(warnings_of, evaluation)
    qrels_warnings = pipeline | "Judgements" >> beam.Create(_qrels(experiment)) | "OfAJudge" >> beam.FlatMap(of_a_judge)
    grade_warnings = dataset.summary | "AboveMaxRel" >> beam.FlatMap(above_max_rel, *evaluation.max_rel)
    warnings = [*scores.warnings, score_warnings, qrels_warnings, grade_warnings] | "EveryWarning" >> beam.Flatten()
    inputs = {name: getattr(experiment.dataset, name) for name in ("queries", "qrels", "corpus")}
    finish = FinishRun(
        experiment.output,
        execution,
        versions(experiment.libraries) | provenance(inputs),
        evaluation.statistics,
        partial(
            verdict_of,
            evaluation=evaluation,
            gates=experiment.gates,
            max_failure_rate=experiment.calls.max_failure_rate,
            run=execution,
        ),
        written,
        dataset.summary,
        estimates,
        warnings,
        usage,
    )
    finished = pipeline | "FinishRun" >> finish
    if experiment.bigquery is not None:
        folders = table_folders(experiment.output, execution.run_id)
        load = LoadTables(experiment.bigquery, execution.run_id, experiment.output, folders)
        _ = finished | "LoadTables" >> load
    return pipeline


def calls_of(
    pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset
) -> "tuple[Branches, dict[str, beam.PCollection], AnswerBranch | None]":
    """Retrieve and answer; return the branches, all queries' parts, and the answers."""
    branches = _rankings(pipeline, experiment, execution, dataset)
    parts = {JUDGED: dataset.judged, **branches.rankings}
    if branches.failures:
        parts[FAILURES] = branches.failures | "EveryFailure" >> beam.Flatten()
    complete = parts if branches.replayed is None else {**parts, REPLAYED: branches.replayed}
    return branches, parts, _answers(experiment, execution, dataset, complete, branches.usage)


def _rankings(pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset) -> Branches:
    """The rankings of every source; fusions are computed from the others during scoring."""
    branches = Branches()
    if experiment.rewritten:
        from rankbeam.pipelines.run.rewriting import rewrite_all

        rewrite_all(experiment, execution, dataset, branches)
    branches.rewritten = with_joined(experiment, dataset, branches.rewritten)
    if experiment.embedders:
        from rankbeam.pipelines.run.calling import embed

        embed(pipeline, experiment, execution, dataset, branches)
    local_rankings(pipeline, experiment, dataset, buckets_of(experiment), branches)
    if experiment.remote:
        from rankbeam.pipelines.run.calling import call

        call(experiment, execution, dataset, branches)
    if experiment.rerankers:
        from rankbeam.pipelines.run.reranking import rerank_all

        rerank_all(experiment, execution, dataset, branches)
    return branches


def scores_of(pipeline: beam.Pipeline, experiment: Experiment, execution: Run, dataset: Dataset) -> Scores:
    branches, parts, answers = calls_of(pipeline, experiment, execution, dataset)
    located = _locate_chunks(experiment, branches.rankings)
    if answers is not None:
        parts = {**parts, VALUES: answers.values}
        parts |= {} if answers.grades is None else {GRADES: answers.grades}
    scored = {**parts, **located} | "ScoreRankings" >> ScoreRankings(experiment.evaluation, dataset.summary)
    aggregates = scored | "AggregateScores" >> AggregateScores(experiment.evaluation)
    warnings = [*branches.warnings, *([] if answers is None else [answers.warnings])]
    usage = [part for part in (branches.usage, None if answers is None else answers.usage) if part is not None]
    return Scores(scored, aggregates, parts.get(FAILURES), usage, warnings, answers)


def _qrels(experiment: Experiment) -> list[str]:
    """Files of judgements that may contain a judge's grades; if holes are filled, such grades are refused instead."""
    qrels = experiment.dataset.qrels
    return [] if qrels is None or experiment.evaluation.holes is not None else [qrels]


def pin_of(execution: Run) -> str:
    """A name of an execution for BigQuery, so that each query runs once in it."""
    return f"{execution.run_id} {execution.started_at.isoformat()}"


def day_of(execution: Run) -> str:
    """An execution's date, in UTC."""
    return f"{execution.started_at:%Y-%m-%d}"


def _rows(
    pipeline: beam.Pipeline,
    evaluation: Evaluation,
    failures: beam.PCollection | None,
    scored: beam.PCollection,
    estimates: beam.PCollection,
) -> Iterator[tuple[str, beam.PCollection]]:
    yield "configurations", pipeline | "Configurations" >> beam.Create([row.configurations(evaluation)])
    if failures is not None:
        yield "failures", failures | "FailureRows" >> beam.Map(row.failure_rows, evaluation)
    yield "query_metrics", scored | "QueryRows" >> beam.FlatMap(row.query_metrics, evaluation)
    yield "configuration_metrics", estimates | "MetricRows" >> beam.Map(metrics_table, evaluation)
    if len(evaluation.configurations) > 1:
        yield "comparisons", estimates | "ComparisonRows" >> beam.Map(comparisons_table, evaluation)
    if any(source.keep_rankings for source in evaluation.sources):
        yield "rankings", scored | "RankingRows" >> beam.FlatMap(row.rankings, evaluation)


def _locate_chunks(experiment: Experiment, rankings: dict[str, beam.PCollection]) -> dict[str, beam.PCollection]:
    """The rankings with the chunks' positions in their documents, if spans are judged."""
    if not experiment.evaluation.spans or experiment.dataset.corpus is None:
        return {}
    from rankbeam.transforms.contexts import LocateChunks

    locate = LocateChunks(experiment.dataset.corpus, of_documents(experiment.dataset.corpus))
    return {name: rows | f"Locate_{name}" >> locate for name, rows in rankings.items()}


def _answers(
    experiment: Experiment,
    execution: Run,
    dataset: Dataset,
    parts: dict[str, beam.PCollection],
    earlier: beam.PCollection | None,
) -> "AnswerBranch | None":
    """The answer-and-judge branch; None (and nothing imported) when unused."""
    if not experiment.calls_models and not experiment.replayed and not experiment.applications:
        return None
    from rankbeam.pipelines.run.answers import answers_of

    return answers_of(experiment, execution, dataset, parts, earlier)


def _corpus_rows(
    pipeline: beam.Pipeline, experiment: Experiment, rows: dict[str, beam.PCollection]
) -> Iterator[tuple[str, beam.PCollection]]:
    """Rows for corpora that a service built, and for documents that they lack, together with other failures."""
    if not experiment.built:
        return
    yield "corpora", pipeline | "Corpora" >> beam.Create([row.corpora(experiment.built)])
    if (failed := row.failed_documents(experiment.built)).num_rows:
        documents = pipeline | "FailedDocuments" >> beam.Create([failed])
        yield "failures", [documents, *([rows["failures"]] if "failures" in rows else [])] | "Failed" >> beam.Flatten()


def _usage(
    pipeline: beam.Pipeline, experiment: Experiment, call_usage: list[beam.PCollection]
) -> beam.PCollection | None:
    parts = [*call_usage]
    if experiment.corpus_usage:
        from rankbeam.transforms.call import merge_usage

        parts.append(pipeline | "CorpusUsage" >> beam.Create(merge_usage(experiment.corpus_usage)))
    return parts | "EveryUsage" >> beam.Flatten() if parts else None


def _needed_by(experiment: Experiment) -> row.Needed:
    """Configurations that need the calls of each stage."""
    from rankbeam.transforms.clients.models.embeddings import STAGE as EMBED
    from rankbeam.transforms.clients.retrievers.base import STAGE as RETRIEVE
    from rankbeam.transforms.judge.work import STAGE as JUDGE
    from rankbeam.transforms.records.stages import RERANK, REWRITE

    evaluation = experiment.evaluation
    judged = {position: (position,) for position in range(len(evaluation.configurations))}
    sources = {source: evaluation.users(source) for source in range(len(evaluation.sources))}
    return {REWRITE: sources, EMBED: sources, RETRIEVE: sources, RERANK: sources, JUDGE: judged}


def table_folders(output: str, run_id: str) -> dict[str, str]:
    return {name: run_folder(output, name, run_id) for name in tables.TABLES}


def read_dataset(pipeline: beam.Pipeline, experiment: Experiment) -> Dataset:
    dataset: Dataset = pipeline | "ReadDataset" >> ReadDataset(
        experiment.dataset.evidence if experiment.evaluation.spans else experiment.dataset.qrels,
        experiment.dataset.queries,
        buckets_of(experiment),
        experiment.evaluation.attributes,
        experiment.evaluation.highest_grade,
        _compared_files(experiment),
        experiment.dataset.references,
        everyone=bool(experiment.judged),
        spans=experiment.evaluation.spans,
        subtopics=experiment.evaluation.subtopics,
        cluster=experiment.evaluation.statistics.cluster,
        holes=experiment.evaluation.holes,
        max_rel=experiment.evaluation.max_rel[0],
        quoted=experiment.dataset.corpus,
    )
    return dataset


def _compared_files(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """The files whose ids are compared with the judgements' before any call.

    Without calls, runs are compared by their scores.
    """
    if experiment.evaluation.allow_disjoint:
        return ()
    is_asked = bool(experiment.local) or experiment.makes_calls
    return tuple(comparison for comparison in experiment.compared if comparison[0] == "corpus" or is_asked)


def new_pipeline(options: PipelineOptions) -> beam.Pipeline:
    try:
        return runner.new_pipeline(_runner(options), options)
    except ValueError as error:  # an unknown runner, or a missing option of a runner
        raise InputError(str(error)) from error


def _runner(options: PipelineOptions) -> FnApiRunner | None:
    """Beam's local runner with our worker processes; None leaves the choice to the options."""
    direct = options.view_as(DirectOptions)
    if options.view_as(StandardOptions).runner != "FnApiRunner" or direct.direct_running_mode != "multi_processing":
        return None
    direct.direct_running_mode = "in_memory"  # the environment below starts worker processes
    return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(worker_processes.command()))


def versions(modules: Sequence[str] = ()) -> dict[str, str]:
    """Versions of the libraries that compute the numbers, and of some modules from any package."""
    names = ("rankbeam", "apache-beam", "bm25s", "PyStemmer", "numpy", "pyarrow")  # bm25s: stop words only
    more = {name: str(import_module(name).__version__) for name in modules}
    return {"python": sys.version.split()[0], **{name: version(name) for name in names}, **more}
