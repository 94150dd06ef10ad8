"""Submitted jobs on any engine: from their records, their state, and the runs that they are still writing."""

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.manage.job_progress import JobSnapshot
    from rankbeam.pipelines.portable.job import EngineJob


def of_record(record: dict[str, Any], place: str, endpoint: str | None = None) -> "DataflowJob | EngineJob":
    """The job in a record; `endpoint` is another address of Dataflow's API."""
    from rankbeam.pipelines.portable import job

    if job.is_record_of_engine(record):
        return job.of_record(record, place)
    from rankbeam.pipelines.dataflow import record as dataflow

    on_dataflow = dataflow.of_record(record, place)
    return on_dataflow if endpoint is None else replace(on_dataflow, endpoint=endpoint)


def snapshot_of(job: "DataflowJob | EngineJob") -> "JobSnapshot":
    from rankbeam.pipelines.portable.job import EngineJob

    if isinstance(job, EngineJob):
        return job.snapshot()
    from rankbeam.pipelines.dataflow.service import DataflowService

    return DataflowService(job.endpoint).snapshot(job)


def refuse_second(output: str, run_id: str | None) -> None:
    """Refuse a run on this machine if a job is still writing it: the job would lose its rows."""
    if run_id is None:  # a new id belongs to no job
        return
    from rankbeam.pipelines.manage import jobs
    from rankbeam.transforms.records.errors import InputError, RankbeamError

    try:
        job = of_record(jobs.find(output, run_id), output)
        if snapshot_of(job).has_ended:
            return
    except RankbeamError:  # no job was submitted, or its engine does not answer
        return
    cancel = shlex.join(["rankbeam", "cancel", output, "--run-id", run_id])
    advice = f"wait for it, cancel it ({cancel}), or choose another --run-id"
    raise InputError(f"the job {job.job_name} is still writing the run {run_id}; {advice}")
