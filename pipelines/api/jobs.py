"""Submitted jobs on any engine: from their records, their state, and the runs that they are still writing."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.manage.job_progress import JobSnapshot
    from rankbeam.pipelines.portable.job import EngineJob


def of_record(record: dict[str, Any], place: str, endpoint: str | None = None) -> "DataflowJob | EngineJob":
    """The job in a record; `endpoint` is another address of Dataflow's API."""
    from rankbeam.pipelines.portable.job import EngineJob, is_record_of_engine

    if is_record_of_engine(record):
        return EngineJob.of_record(record, place)
    from rankbeam.pipelines.dataflow.record import DataflowJob

    on_dataflow = DataflowJob.of_record(record, place)
    return on_dataflow if endpoint is None else replace(on_dataflow, endpoint=endpoint)


def snapshot_of(job: "DataflowJob | EngineJob", options: "PipelineOptions | None" = None) -> "JobSnapshot":
    from rankbeam.pipelines.portable.job import EngineJob

    if isinstance(job, EngineJob):
        return job.snapshot()
    from rankbeam.pipelines.dataflow.service import DataflowService

    return DataflowService(job.endpoint, options).snapshot(job)


def _is_at_work(job: "DataflowJob | EngineJob", options: "PipelineOptions | None") -> bool:
    from rankbeam.pipelines.portable.job import EngineJob

    return job.is_at_work() if isinstance(job, EngineJob) else not snapshot_of(job, options).has_ended


def refuse_second(output: str, run_id: str | None, options: "PipelineOptions | None" = None) -> None:
    """Refuse a run that a job on any engine is still writing: that job would lose its rows."""
    if run_id is None:  # a new id belongs to no job
        return
    from rankbeam.pipelines.manage import jobs
    from rankbeam.pipelines.run.options import is_dataflow
    from rankbeam.transforms.records.errors import InputError, RankbeamError

    try:
        job = of_record(jobs.find(output, run_id), output)
        if not _is_at_work(job, options):
            return
    except InputError:  # no job was submitted, or Dataflow no longer has it
        return
    except RankbeamError:  # its engine does not answer, which only another job there has to wait for
        if options is None or not is_dataflow(options):
            return
        raise
    raise job.still_writing()
