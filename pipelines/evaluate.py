"""Build the pipeline of an experiment and run it, on any of Beam's runners."""

import contextlib
import logging
import re
import secrets
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from pipelines.experiment import Experiment
from pipelines.results import Results
from transforms import write
from transforms.aggregate import AggregateScores, comparisons_table, metrics_table
from transforms.clients import files, spill
from transforms.read import ReadDataset, ReadRun
from transforms.records import tables
from transforms.records.errors import InputError, RankbeamError
from transforms.records.evaluation import Run
from transforms.retrieve import RetrieveRankings
from transforms.score import FAILURES, JUDGED, RANKINGS, ScoreRankings

_BEAM_SUFFIX = " [while running"  # Beam adds the step to the message of what it raises again
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SYSTEM_ERROR = re.compile(r"\[Errno \d+\] (?P<what>.+) \[while running '(?P<step>[^']*)'\]")
_BUCKET_BYTES = 8 << 20
_LEAST_BUCKETS, _MOST_BUCKETS = 4, 4096


class RunFailed(RankbeamError):
    """The pipeline did not finish: exit status 1."""


def new_run(experiment: Experiment, run_id: str | None = None) -> Run:
    """A run of an experiment that begins now.

    Raises:
        InputError: the run id could not be part of a path.
    """
    now = datetime.now(UTC)
    if run_id is None:
        run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(f"run id {run_id!r}: use letters, digits, and - _ . with a letter or digit first")
    return Run(run_id, experiment.name, now, experiment.text)


def run(experiment: Experiment, execution: Run, options: PipelineOptions) -> Results:
    """Run an experiment to its end; returns what it found.

    A second run of the same run_id replaces the first: its row in `runs` goes first and comes last.

    Raises:
        InputError: an input turned out to be unusable.
        RunFailed: the pipeline failed for another reason.
    """
    files.make_folder(experiment.output)
    for folder in run_folders(experiment.output, execution.run_id):
        files.delete(folder)
    try:
        with _quiet_beam(), _spilling(options):
            pipeline = build(experiment, execution, options)
            state = pipeline.run().wait_until_finish()
    except BaseException as error:
        forget(experiment.output, execution.run_id)
        refused = find_input_error(error)
        if refused is not None:
            raise refused from error
        if system := _SYSTEM_ERROR.search(str(error)):
            raise RunFailed(f"{system['what']} (in step {system['step']}); nothing of this run was kept") from error
        raise
    if state != "DONE":
        raise RunFailed(f"the pipeline ended in state {state}")
    return Results(experiment.output, execution.run_id)


def build(experiment: Experiment, execution: Run, options: PipelineOptions) -> beam.Pipeline:
    """The pipeline of an experiment; nothing runs yet."""
    evaluation, output = experiment.evaluation, experiment.output
    try:
        pipeline = beam.Pipeline(runner=_runner(options), options=options)
    except ValueError as error:  # an unknown runner, or an option that a runner needs and does not have
        raise InputError(str(error)) from error
    buckets = _buckets(experiment)
    judged, summary = pipeline | "ReadDataset" >> ReadDataset(
        experiment.qrels, experiment.queries, buckets, evaluation.slices
    )
    runs = {
        f"{RANKINGS}_{source}": pipeline | f"ReadRun{source}" >> ReadRun(each.path, source, buckets)
        for source, each in enumerate(evaluation.sources)
        if each.path is not None
    }
    parts = {JUDGED: judged, **runs}
    rows = {"configurations": pipeline | "Configurations" >> beam.Create([write.configurations(evaluation)])}
    asked = {i: experiment.retrievers[i] for i, each in enumerate(evaluation.sources) if each.path is None}
    warnings = None
    if asked:
        top_k = {source: evaluation.sources[source].top_k or 0 for source in asked}
        retrieve = RetrieveRankings(asked, top_k, experiment.corpus, summary)
        parts[RANKINGS], failures, warnings = judged | "RetrieveRankings" >> retrieve
        parts[FAILURES] = failures
        rows["failures"] = failures | "FailureRows" >> beam.Map(write.failure_row, evaluation)
    scored = parts | "ScoreRankings" >> ScoreRankings(evaluation)
    aggregate = scored | "AggregateScores" >> AggregateScores(evaluation)
    rows["query_metrics"] = scored | "QueryRows" >> beam.FlatMap(write.query_metrics, evaluation)
    rows["configuration_metrics"] = aggregate | "MetricRows" >> beam.Map(metrics_table, evaluation)
    if len(evaluation.configurations) > 1:
        rows["comparisons"] = aggregate | "ComparisonRows" >> beam.Map(comparisons_table, evaluation)
    if any(source.keep_rankings for source in evaluation.sources):
        rows["rankings"] = scored | "RankingRows" >> beam.FlatMap(write.rankings, evaluation)
    written = [rows[name] | f"Write_{name}" >> write.WriteTable(name, output, execution) for name in rows]
    finish = write.FinishRun(output, execution, versions(), written, summary, aggregate, warnings)
    _ = pipeline | "FinishRun" >> finish
    return pipeline


def _runner(options: PipelineOptions) -> FnApiRunner | None:
    """Beam's local runner with worker processes; None leaves the choice to the options.

    Beam starts these through a shell without quoting Python's path, which fails below a folder with a blank.
    """
    direct = options.view_as(DirectOptions)
    if options.view_as(StandardOptions).runner != "FnApiRunner" or direct.direct_running_mode != "multi_processing":
        return None
    direct.direct_running_mode = "in_memory"  # the environment below says where the work is done
    command = f"{shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command))


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    names = ("rankbeam", "apache-beam", "bm25s", "numpy", "pyarrow")
    return {"python": sys.version.split()[0], **{name: version(name) for name in names}}


def find_input_error(error: BaseException | None) -> InputError | None:
    """The refusal behind an exception of Beam's, which wraps what a DoFn raises."""
    while error is not None:
        if isinstance(error, InputError):
            return InputError(str(error).partition(_BEAM_SUFFIX)[0])
        marker = f"{InputError.__module__}.InputError: "
        if marker in str(error):  # from another process there is only its traceback
            told = str(error).rpartition(marker)[2]
            return InputError(told.partition(_BEAM_SUFFIX)[0].partition("\n\n")[0].strip())
        error = error.__cause__ or error.__context__
    return None


def _spilling(options: PipelineOptions) -> contextlib.AbstractContextManager[None]:
    local = options.view_as(StandardOptions).runner == "FnApiRunner"
    return spill.spilling() if local else contextlib.nullcontext()


def _buckets(experiment: Experiment) -> int:
    """Enough parts that one of them fits into memory many times over, and keeps several workers busy."""
    largest = max(files.size(path) for path in experiment.inputs())
    return max(_LEAST_BUCKETS, min(_MOST_BUCKETS, -(-largest // _BUCKET_BYTES)))


def forget(output: str, run_id: str) -> None:
    """Delete what a run that did not finish has written, as far as that goes.

    Workers may still be writing. What they leave has no row in `runs`, and so is part of no run.
    """
    for folder in run_folders(output, run_id):
        with contextlib.suppress(OSError):
            files.delete(folder)


def run_folders(output: str, run_id: str) -> list[str]:
    """Where a run's rows lie. `runs` comes first: once that is deleted, the run does not look finished.

    >>> run_folders("out", "r1")[:2]
    ['out/runs/r1', 'out/configurations/r1']
    """
    return [write.run_folder(output, name, run_id) for name in tables.TABLES]


class _quiet_beam:  # noqa: N801  reads like the context managers of contextlib
    """Keeps Beam's log silent: what went wrong is raised, with its traceback, and rankbeam says it."""

    def __enter__(self) -> None:
        self._loggers = {name: logging.getLogger(name) for name in ("apache_beam", "root")}
        self._levels = {name: logger.level for name, logger in self._loggers.items()}
        for logger in self._loggers.values():
            logger.setLevel(logging.CRITICAL)

    def __exit__(self, *exception: Any) -> None:
        for name, logger in self._loggers.items():
            logger.setLevel(self._levels[name])
