"""Run an experiment: its pipeline, from the first file to the row in `runs`, on any of Beam's runners."""

import contextlib
import logging
import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import notices
from rankbeam.pipelines.run.build import build
from rankbeam.transforms.clients.storage import files, spill
from rankbeam.transforms.load import failure_behind
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError, RankbeamError
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.write import tables as write

_BEAM_SUFFIX = " [while running"  # Beam adds the step to the message of what it raises again
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SYSTEM_ERROR = re.compile(r"\[Errno \d+\] (?P<what>.+) \[while running '(?P<step>[^']*)'\]")


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
    _make_room(experiment, execution)
    try:
        with refusals(), quiet_beam(), notices.heard(), _spilling(options):
            pipeline = build(experiment, execution, options)
            state = pipeline.run().wait_until_finish()
    except BaseException as error:
        if (not_loaded := failure_behind(error)) is not None:  # all files are complete
            raise RunFailed(not_loaded) from error
        forget(experiment.output, execution.run_id)
        if system := _SYSTEM_ERROR.search(str(error)):
            kept = f"only the ledger {experiment.ledger} was kept" if experiment.remote else "nothing was kept"
            raise RunFailed(f"{system['what']} (in step {system['step']}); of this run {kept}") from error
        raise
    if state != "DONE":
        raise RunFailed(f"the pipeline ended in state {state}")
    return Results(experiment.output, execution.run_id)


def submit(experiment: Experiment, execution: Run, options: PipelineOptions) -> PipelineResult:
    """Hand a run to a service that works on by itself; returns the service's own handle of it.

    Raises:
        InputError: an input turned out to be unusable, or the service has it that an option is.
    """
    _make_room(experiment, execution)
    try:
        with refusals(), quiet_beam():
            return build(experiment, execution, options).run()
    except BaseException:
        forget(experiment.output, execution.run_id)
        raise


def _make_room(experiment: Experiment, execution: Run) -> None:
    if experiment.bigquery is not None:
        from rankbeam.transforms.clients.bigquery import places  # few experiments need it

        places.refuse_apart(experiment.output, experiment.bigquery)
    files.make_folder(experiment.output)
    _refuse_taken(experiment.output, execution)
    for folder in run_folders(experiment.output, execution.run_id):
        files.delete(folder)


def _refuse_taken(output: str, execution: Run) -> None:
    """Leave a finished run of another experiment alone.

    Raises:
        InputError: it has the run id.
    """
    try:
        theirs = Results(output, execution.run_id).experiment
    except InputError:  # there is no such run
        return
    if theirs != execution.experiment:
        problem = (
            f"run {execution.run_id!r} is of the experiment {theirs!r}, and {execution.experiment!r} would replace it"
        )
        raise InputError(f"{problem}; choose another --run-id, or another --output", path=output)


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


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Raise what was wrong with the input, instead of what Beam makes of it.

    Raises:
        InputError: an input turned out to be unusable.
    """
    try:
        yield
    except Exception as error:
        if (refused := find_input_error(error)) is not None:
            raise refused from error
        raise


class quiet_beam:  # noqa: N801  reads like the context managers of contextlib
    """Keeps Beam's log silent: what went wrong is raised, with its traceback, and rankbeam says it."""

    def __enter__(self) -> None:
        self._loggers = {name: logging.getLogger(name) for name in ("apache_beam", "root")}
        self._levels = {name: logger.level for name, logger in self._loggers.items()}
        for logger in self._loggers.values():
            logger.setLevel(logging.CRITICAL + 1)

    def __exit__(self, *exception: Any) -> None:
        for name, logger in self._loggers.items():
            logger.setLevel(self._levels[name])
