"""The command line for jobs behind Beam's Job API (Flink, Prism, Spark)."""

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.local.interrupt import Interrupted, defer_interrupt, finish_calls, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.experiment.experiment import Experiment
    from rankbeam.pipelines.manage.job_progress import Watch
    from rankbeam.pipelines.manage.jobs import RunRecord
    from rankbeam.pipelines.portable.launch import SubmittedJob
    from rankbeam.pipelines.results.run import Results
    from rankbeam.transforms.records.run import Run

_SUBMITTING = "the job is being submitted, and cancelled right afterwards; press Ctrl-C again to stop at once"
_CANCELLING = "cancelling the job; press Ctrl-C again to leave without waiting"


def on_engine(
    experiment: "Experiment",
    execution: "Run",
    options: "PipelineOptions",
    run: "RunRecord",
    beam_options: "Sequence[str]",
    own: "Sequence[str]",
    form: str,
    *,
    wait: bool,
) -> "Results | None":
    """Submit a run to a job server, follow its job to the end, and return its results.

    Without `wait`, return None while the job goes on. Beam's runners handle signals, so call this on the main thread.
    """
    from rankbeam.pipelines.local import messages
    from rankbeam.pipelines.portable import launch
    from rankbeam.pipelines.portable.job_server import job_server
    from rankbeam.pipelines.results.run import Results
    from rankbeam.pipelines.run.evaluate import release_corpora
    from rankbeam.pipelines.run.options import refuse_unknown

    if not wait:
        launch.refuse_unwatched(experiment, options)
    with job_server(options) as service:
        refuse_unknown(beam_options, own, service.options())
        click.echo(f"rankbeam: submitting the job to {service.endpoint}", err=True)
        with messages.log_to_stderr():
            with defer_interrupt(_SUBMITTING) as raise_held:
                submitted = launch.submit(experiment, execution, options, service, run, waits=wait)
            try:
                raise_held()
                if not wait:
                    click.echo(submitted.job.as_json() if form == "json" else submitted.job.as_text())
                    return None
                _follow(submitted, experiment)
            except KeyboardInterrupt:
                raise _cancel_job(submitted, experiment) from None
    release_corpora(experiment, execution)
    return Results(experiment.output, execution.run_id)


def _follow(submitted: "SubmittedJob", experiment: "Experiment") -> None:
    from rankbeam.pipelines.local import progress
    from rankbeam.pipelines.manage.job_progress import Watch
    from rankbeam.pipelines.portable import launch
    from rankbeam.pipelines.portable.job import LOOPBACK

    shown = _JobLines(submitted, Watch(submitted.job.run, submitted.job.run_id))
    if submitted.job.workers == LOOPBACK:  # then this process counts, pool by pool
        work = progress.Progress(
            len(experiment.local), len(experiment.evaluation.configurations), experiment.calls.pools
        )
        showing: AbstractContextManager[None] = progress.show_progress(work)
    else:
        showing = progress.show_repeatedly(lambda: (shown.line, None))
    with showing:
        launch.follow(submitted, shown.look)


@dataclass
class _JobLines:
    """Lines about a job whose workers are elsewhere."""

    submitted: "SubmittedJob"
    _watch: "Watch"
    _page: str | None = None
    line: str = "submitted"

    def look(self) -> None:
        from rankbeam.pipelines.manage.job_progress import JobSnapshot
        from rankbeam.pipelines.portable.service import JobServerError
        from rankbeam.transforms.records.errors import InputError

        with suppress(JobServerError, InputError):  # the next look may succeed; Beam reports the end of the job
            described = self.submitted.state()
            state = described.partition(",")[0]  # the finished tasks follow
            line = self._watch.line(JobSnapshot(state, self.submitted.counts()), datetime.now(UTC))
            self.line = f"{described}{line.removeprefix(state)}"
            if self._page is None and (page := self.submitted.job.page()) is not None:
                self._page = page
                click.echo(f"rankbeam: the job runs at {page}", err=True)


def _cancel_job(submitted: "SubmittedJob", experiment: "Experiment") -> Interrupted:
    """Cancel a job that this process has submitted; the partial output is deleted once the job has ended."""
    from rankbeam.pipelines.portable import launch
    from rankbeam.pipelines.portable.job import LOOPBACK
    from rankbeam.pipelines.portable.service import JobServerError
    from rankbeam.pipelines.run import evaluate as evaluation
    from rankbeam.transforms.records.errors import InputError

    job = submitted.job
    advice = f"the job may continue; `{job.cancel_command}` cancels it"
    if not job.outlives_submission:
        advice = "the job's workers or its job server end with this process, and so does the job"
    try:
        tell(f"rankbeam: {_CANCELLING}")
        try:
            submitted.cancel()
        finally:  # after telling the engine, which would otherwise take the end of the calls for a failure
            job.stop_calls()
        outcome = (
            finish_calls(experiment.ledger) if job.workers == LOOPBACK and job.ledger else launch.recovery_hint(job)
        )
        if not submitted.wait_until_ended():
            return Interrupted([], f"the job does not end; {advice}")
    except KeyboardInterrupt:
        return Interrupted([], advice)
    except (JobServerError, InputError) as error:
        return Interrupted([], f"{error}; {advice}")
    evaluation.delete_rows(job.output, job.run_id)
    return Interrupted(evaluation.run_folders(job.output, job.run_id), f"the job is cancelled; {outcome}")
