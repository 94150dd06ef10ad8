"""Submit a run to a job server, and follow its job to the end."""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import grpc
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, PortableOptions
from apache_beam.runners.runner import PipelineResult

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.interrupt import Interrupted, in_thread
from rankbeam.pipelines.local.messages import warn
from rankbeam.pipelines.local.runner import find_input_error, quiet_beam
from rankbeam.pipelines.manage import jobs
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.portable import engine
from rankbeam.pipelines.portable.job import LOOPBACK, EngineJob, reason
from rankbeam.pipelines.portable.service import JobServerError, JobService
from rankbeam.pipelines.portable.worker_pool import VARIABLES
from rankbeam.pipelines.run import evaluate
from rankbeam.pipelines.run.options import runner_name, works_elsewhere
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.clients.secrets import env_name
from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import InputError, message_behind
from rankbeam.transforms.records.run import Run

_ANSWER_S = 8.0
_EXTERNAL = "EXTERNAL"
_LOOK_S = 2.0
_CANCELLING_S = 90.0


def refuse_unset(experiment: Experiment, options: PipelineOptions) -> None:
    """Refuse an experiment whose secrets are in variables that its workers lack, if they can report that."""
    places = {name: place for reference, place in experiment.secrets.items() if (name := env_name(reference))}
    portable = options.view_as(PortableOptions)
    if portable.environment_type == "LOOPBACK":
        _refuse({name for name in places if not os.environ.get(name, "").strip()}, places, "here")
    elif portable.environment_type == _EXTERNAL and not works_elsewhere(options):
        address = portable.environment_config
        if (unset := _unset_at(address, sorted(places))) is not None:
            _refuse(unset, places, f"in the pool of workers at {address}; set it there and start the pool again")
        elif places:
            unknown = "Beam's own pool cannot report its variables"
            warn(
                f"not checked: {', '.join(sorted(places))} must be set for the pool of workers at {address}; {unknown}"
            )
    elif places:
        warn(f"not checked: {', '.join(sorted(places))} must be set where the workers are")


def _refuse(unset: Collection[str], places: Mapping[str, str], where: str) -> None:
    if unset:
        needed = ", ".join(f"{name} ({places[name]})" for name in sorted(unset))
        raise InputError(f"environment variables that the workers need are not set {where}: {needed}")


def _unset_at(address: str, names: list[str]) -> list[str] | None:
    """The variables that a pool lacks; None for Beam's own pool, which cannot report them."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer: bytes = channel.unary_unary(VARIABLES)(json.dumps(names).encode(), timeout=_ANSWER_S)
        except grpc.RpcError as error:
            if isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise InputError(f"no pool of workers answers at {address}; check --environment_config") from error
    unset: list[str] = json.loads(answer)
    return unset


@dataclass(frozen=True)
class SubmittedJob:
    """A job that this process has submitted and follows."""

    job: EngineJob
    result: PipelineResult
    service: JobService

    def state(self) -> str:
        """The job's state, with the number of finished tasks if the engine reports it."""
        if self.job.flink is None:
            return self.service.state(self.job.job_id).lower()
        return "starting" if (job := self.job.at_flink()) is None else job.state_and_tasks()

    def counts(self) -> Counts:
        if self.job.flink is not None:
            return Counts() if (job := self.job.at_flink()) is None else job.counts()
        return self.service.counts(self.job.job_id)

    def cancel(self) -> None:
        """Request cancellation; the job continues for a while."""
        self.service.cancel(self.job.job_id)

    def wait_until_ended(self) -> bool:
        """Wait for the end of the job after `cancel`; return whether it ended in time."""
        has_ended = self.service.wait_until_ended(self.job.job_id, _CANCELLING_S) is not None
        if self.job.flink is None:
            return has_ended
        job = self.job.at_flink()  # the job server calls a job cancelled before its tasks have ended
        return job is None or job.wait_until_ended(_CANCELLING_S) is not None


def refuse_unwatched(experiment: Experiment, options: PipelineOptions) -> None:
    """Refuse a run that its job cannot finish without this process."""
    portable = options.view_as(PortableOptions)
    problems = []
    if portable.job_endpoint is None:
        problem = "rankbeam would start the job server, which ends with this process"
        problems.append(f"{problem}; name one that keeps running as --job_endpoint HOST:PORT")
    if portable.environment_type == LOOPBACK:
        pool = "--environment_type EXTERNAL --environment_config HOST:PORT"
        problems.append(f"the workers would be in this process (LOOPBACK); name a pool of workers: {pool}")
    if experiment.evaluation.race is not None:
        problems.append("race: this process decides after each round which configurations are dropped; take race out")
    problem = "this process collects the answers of its jobs; take batch: out"
    problems += [f"services.{name}.batch: {problem}" for name in experiment.calls.batched]
    try:
        if experiment.served:
            from rankbeam.pipelines.run import corpora  # few experiments need it

            corpora.refuse_unwatched(experiment)
    except InputError as error:
        problems.append(str(error))
    if problems:
        first = "--no-wait: this run needs this process to its end:"
        raise InputError("\n".join([first, *(f"  {problem}" for problem in problems)]))


def submit(
    experiment: Experiment,
    execution: Run,
    options: PipelineOptions,
    service: JobService,
    run: RunRecord,
    *,
    waits: bool = True,
) -> SubmittedJob:
    refuse_unset(experiment, options)
    evaluate.refuse_taken(experiment.output, execution)
    cloud = options.view_as(GoogleCloudOptions)
    cloud.job_name = cloud.job_name or _job_name(execution)
    job = _job(experiment, execution, options, service, run)
    job.save()  # before the job makes calls: this process may be killed at any moment
    try:
        result = evaluate.submit(experiment, execution, options, waits=waits)
    except grpc.RpcError as error:
        details = error.details() if isinstance(error, grpc.Call) else error
        raise JobServerError(f"the job server at {service.endpoint} refused the job: {details}") from error
    except KeyboardInterrupt:
        job.stop_calls()
        raise Interrupted([], f"the job may have begun; `{job.cancel_command}` cancels it") from None
    job = replace(job, job_id=result._job_id)  # Beam has no public name for it
    job.save()
    return SubmittedJob(job, result, service)


def _job(
    experiment: Experiment, execution: Run, options: PipelineOptions, service: JobService, run: RunRecord
) -> EngineJob:
    runner = runner_name(options)
    return EngineJob(
        runner=runner,
        job_id="",
        job_name=options.view_as(GoogleCloudOptions).job_name,
        run_id=execution.run_id,
        run_started=execution.started_at.isoformat(),
        experiment=execution.experiment,
        output=experiment.output,
        ledger=experiment.ledger if experiment.makes_calls else None,
        submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        endpoint=service.endpoint if service.is_external else None,
        flink=engine.address_of(options) if runner == "FlinkRunner" else None,
        workers=options.view_as(PortableOptions).environment_type or "DOCKER",
        machine=process.machine(),
        pid=os.getpid(),
        pid_started=process.own_start_time(),
        run=run,
    )


def _job_name(execution: Run) -> str:
    """A name unique to one execution, because Flink finds jobs by name, and a run can be repeated under the same id."""
    return f"{jobs.job_name(execution)}-{hashlib.sha256(execution.started_at.isoformat().encode()).hexdigest()[:4]}"


def follow(submitted: SubmittedJob, look: Callable[[], None]) -> None:
    end = in_thread(submitted.result.wait_until_finish)
    with quiet_beam():
        while not wait([end], timeout=_LOOK_S).done:
            look()
    look()
    if (error := end.exception()) is None:
        if (state := end.result()) != "DONE":
            raise evaluate.RunFailed(f"the job ended in state {state}; {recovery_hint(submitted.job)}")
        return
    if (not_loaded := message_behind(error, LoadFailed)) is not None:  # all files are complete
        raise evaluate.RunFailed(not_loaded) from error
    _refuse_lost(submitted, error)
    evaluate.delete_rows(submitted.job.output, submitted.job.run_id)
    if (refused := find_input_error(error)) is not None:
        raise refused from error
    raise evaluate.RunFailed(f"{reason(str(error))}; {recovery_hint(submitted.job)}") from error


def recovery_hint(job: EngineJob) -> str:
    """Describe which parts of an unfinished run are stored, and how to continue it."""
    if job.ledger is None:
        return "nothing of this run was kept; other runs are unchanged"
    return f"all answers so far are in {job.ledger}, and the same command continues from there"


def _refuse_lost(submitted: SubmittedJob, error: BaseException) -> None:
    """Report a lost connection to the job server: the job itself may continue."""
    try:
        submitted.service.state(submitted.job.job_id)
    except JobServerError as lost:
        advice = f"the job may continue; {submitted.job.cancel_command} cancels it"
        raise evaluate.RunFailed(f"{lost}; {advice}") from error
