"""Run an experiment's pipeline, from the first file to the row in `runs`, on any of Beam's runners."""

import contextlib
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult

from rankbeam.pipelines.experiment.dataset_checks import refuse_strange_answers
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local import messages, overheads, progress
from rankbeam.pipelines.local.interrupt import Interrupted, defer_interrupt, end, finish_calls, in_thread, result_of
from rankbeam.pipelines.local.runner import on_this_machine, quiet_beam, refusals
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.batch import run_batch_rounds
from rankbeam.pipelines.run.build import build, table_folders
from rankbeam.pipelines.run.folders import RACE, owner_of, sole_writer
from rankbeam.pipelines.run.options import refuse_invalid
from rankbeam.pipelines.run.race import run_race
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage import files, spill
from rankbeam.transforms.records.errors import InputError, RankbeamError, message_behind
from rankbeam.transforms.records.run import Run

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SYSTEM_ERROR = re.compile(r"\[Errno \d+\] (?P<what>.+) \[while running '(?P<step>[^']*)'\]")


class RunFailed(RankbeamError):
    """The pipeline did not finish: exit status 1."""


def new_run(experiment: Experiment, run_id: str | None = None) -> Run:
    now = datetime.now(UTC)
    if run_id is None:
        run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if not isinstance(run_id, str):
        raise InputError(f"run id {run_id!r} is {type(run_id).__name__}; use str")
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(f"run id {run_id!r}: use letters, digits, and - _ . with a letter or digit first")
    return Run(run_id, experiment.name, now, experiment.text)


def run(experiment: Experiment, execution: Run, options: PipelineOptions) -> Results:
    """Run an experiment to the end; return its results.

    A second run with the same run_id replaces the first: the row in `runs` is deleted first and written last.
    """
    refuse_strange_answers(experiment)
    _delete_previous_rows(experiment, execution, options)
    try:
        with refusals(), quiet_beam(), messages.log_to_stderr(), on_this_machine(options):
            ready = run_race(_with_corpora(experiment, execution), execution, options)
            with run_batch_rounds(ready, execution, options) as last:
                state = build(last, execution, options).run().wait_until_finish()
    except BaseException as error:
        if (not_loaded := message_behind(error, LoadFailed)) is not None:  # all files are complete
            raise RunFailed(not_loaded) from error
        delete_rows(experiment.output, execution.run_id)
        if system := _SYSTEM_ERROR.search(str(error)):
            remaining = f"only the ledger {experiment.ledger}" if experiment.makes_calls else "nothing"
            raise RunFailed(f"{system['what']} (in step {system['step']}); {remaining} of this run was kept") from error
        raise
    if state != "DONE":
        raise RunFailed(f"the pipeline ended in state {state}")
    return Results(experiment.output, execution.run_id)


def release_corpora(experiment: Experiment, execution: Run) -> None:
    """Delete the corpora that exist only for the run."""
    if experiment.served:
        from rankbeam.pipelines.run import corpora

        with messages.log_to_stderr():
            try:
                temporary = corpora.temporary(experiment)
            except InputError as error:
                messages.warn(f"corpora of this run could not be deleted: {error}")
                return
            ledger = Ledger(experiment.ledger, owner_of(experiment.calls, execution))
            corpora.release(temporary, ledger, experiment.calls.corpus_quotas.data)


def _with_corpora(experiment: Experiment, execution: Run, *, waits: bool = True) -> Experiment:
    if not experiment.served:
        return experiment
    from rankbeam.pipelines.run import corpora  # few experiments need it

    return corpora.prepare_corpora(experiment, execution, waits=waits)


def submit(experiment: Experiment, execution: Run, options: PipelineOptions, *, waits: bool = False) -> PipelineResult:
    """Submit a run to a service that executes it without this process; return the service's handle."""
    if experiment.evaluation.race is not None:
        raise InputError("race: its rounds need a runner that this process waits for; remove race")
    for name in experiment.calls.batched:
        problem = "its jobs need a runner that this process waits for; remove --runner or batch:"
        raise InputError(f"services.{name}.batch: {problem}")
    _delete_previous_rows(experiment, execution, options)
    try:
        with refusals(), quiet_beam(), messages.log_to_stderr():
            return build(_with_corpora(experiment, execution, waits=waits), execution, options).run()
    except BaseException:
        delete_rows(experiment.output, execution.run_id)
        raise


def _delete_previous_rows(experiment: Experiment, execution: Run, options: PipelineOptions) -> None:
    with quiet_beam():
        refuse_invalid(options)
    if experiment.bigquery is not None:
        from rankbeam.transforms.clients.bigquery import loads

        loads.refuse_apart(experiment.output, experiment.bigquery)
    files.make_writable_folder(experiment.output)
    refuse_taken(experiment.output, execution)
    if experiment.bigquery is not None:
        from rankbeam.transforms.clients.bigquery import publish

        publish.refuse_taken(experiment.bigquery, execution.run_id, execution.experiment)
    _warn_of_later_runs(experiment.output, execution)
    for folder in run_folders(experiment.output, execution.run_id):
        files.delete(folder)


def _warn_of_later_runs(output: str, execution: Run) -> None:
    """Warn if this machine's clock is behind: commands would take an earlier run for the latest one."""
    with contextlib.suppress(InputError):  # there is no run, or one that cannot be read
        latest = finished_runs(output)[-1]
        if latest.execution[1] > execution.started_at and latest.run_id != execution.run_id:
            problem = f"by this machine's clock, run {latest.run_id} starts later ({latest.execution[1]:%F %T} UTC)"
            messages.warn(
                f"{problem}, so it will be used as the latest run; set the clock, or pass --run-id to commands"
            )


def refuse_taken(output: str, execution: Run) -> None:
    """Refuse to replace a finished run of another experiment."""
    try:
        existing = Results(output, execution.run_id).experiment
    except InputError:  # the run does not exist
        return
    if existing != execution.experiment:
        owner = f"run {execution.run_id!r} belongs to the experiment {existing!r}"
        problem = f"{owner}, and {execution.experiment!r} would replace it"
        raise InputError(f"{problem}; choose another --run-id, or another --output", path=output)


def delete_rows(output: str, run_id: str) -> None:
    """Delete an unfinished run's rows, and table folders without other runs, as far as possible.

    Workers may still be writing. Rows that they leave behind belong to no run, because `runs` has no row for them.
    """
    for folder in run_folders(output, run_id):
        with contextlib.suppress(OSError):
            files.delete(folder)
            if files.is_local(folder):  # an object store has no folders
                Path(folder).parent.rmdir()  # fails if other runs have rows


def run_folders(output: str, run_id: str) -> list[str]:
    """The folders of a run's rows. `runs` comes first: once it is deleted, the run does not look finished.

    >>> run_folders("out", "r1")[:2]
    ['out/runs/r1', 'out/configurations/r1']
    """
    return list(table_folders(output, run_id).values())


def run_here(
    experiment: Experiment, execution: Run, options: PipelineOptions, *, temporary: bool, shown: bool = True
) -> Results:
    if experiment.calls_models and overheads.ends_with_its_command:
        spill.share_heap()
    seen = progress.Progress(len(experiment.local), len(experiment.evaluation.configurations), experiment.calls.pools)
    work = None
    try:
        display = progress.show_progress(seen) if shown else contextlib.nullcontext()
        run_id = execution.run_id
        with sole_writer(experiment.output, run_id, f"the run {run_id}", "--run-id"), display:
            work = in_thread(lambda: run(experiment, execution, options))
            results = result_of(work)
    except KeyboardInterrupt:
        spilled = spill.folder()  # once its calls have ended, the thread forgets the folder before it deletes it
        notes = [finish_calls(experiment.ledger)] if experiment.makes_calls else []
        if work is not None and not overheads.ends_with_its_command:  # the process continues, and the run would, too
            end(work)
        if experiment.calls.batched:
            notes = [f"{'; '.join(notes)}; batch jobs continue, and the next run collects their answers"]
        delete_rows(experiment.output, execution.run_id)
        race = files.join(experiment.output, f"{RACE}{execution.run_id}")
        folders = [*run_folders(experiment.output, execution.run_id), race]
        temporaries = list(filter(None, (spilled, spill.folder())))
        raise Interrupted(temporaries + ([experiment.output] if temporary else folders), *notes) from None
    with defer_interrupt("stopping once the corpora of this run are deleted") as raise_held:
        release_corpora(experiment, execution)
    raise_held()
    return results
