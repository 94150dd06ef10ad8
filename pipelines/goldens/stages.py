"""Run a stage of a round as a pipeline: tasks go through the paced fan-out, results to parts in a folder."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.local import messages
from rankbeam.pipelines.local.runner import on_this_machine, quiet_beam, refusals
from rankbeam.pipelines.run.batch import rounds, services_of
from rankbeam.pipelines.run.build import new_pipeline
from rankbeam.pipelines.run.evaluate import RunFailed
from rankbeam.pipelines.run.folders import WORK, new_owner, work_folder
from rankbeam.pipelines.run.options import is_dataflow, works_elsewhere
from rankbeam.transforms.call import CallResults, CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import BatchRound
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens import parts
from rankbeam.transforms.records.calls.steps import Subject, Task, Usage
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError

Record = TypeVar("Record")

_jobs: dict[str, Ledger] = {}


@dataclass(frozen=True)
class StageResults:
    """The results of a stage."""

    records: list[Any]
    usage: list[Usage]
    warnings: list[str]


def run_stage(
    stage: Stage, ledger: Ledger, items: Sequence[tuple[str, Any]], folder: str, record: type, options: PipelineOptions
) -> StageResults:
    files.delete(folder)
    files.make_writable_folder(folder)
    with refusals(), quiet_beam(), messages.log_to_stderr(), on_this_machine(options):
        pipeline = new_pipeline(options)
        _connect(pipeline, stage, ledger, items, folder)
        result = pipeline.run()
        with _at_work(result, ledger):
            state = result.wait_until_finish()
    if state != "DONE":
        raise RunFailed(f"the pipeline ended in state {state}")
    return StageResults(
        list(parts.read_parts(folder, parts.RESULTS, record)),
        list(parts.read_parts(folder, parts.USAGE, Usage)),
        list(parts.read_parts(folder, parts.WARNINGS, str)),
    )


def run_alone(
    stage: Stage,
    calls: CallSettings,
    output: str,
    items: Sequence[tuple[str, Any]],
    record: type,
    options: PipelineOptions,
    *,
    batches: bool = False,
) -> StageResults:
    """Run a stage that belongs to no round of a benchmark; batch jobs may make its calls if `batches` is true."""
    owner = new_owner(calls, stage.name)
    ledger, warnings = Ledger(calls.ledger_of(output), owner), list[str]()
    with work_folder(output, WORK, owner.run_id) as folder:
        place = files.join(folder, stage.name)
        run = partial(run_stage, ledger=ledger, items=items, folder=place, record=record, options=options)
        with batched_stage(calls, stage, ledger, run, warnings) if batches else nullcontext(stage) as last:
            results = run(last)
    return replace(results, warnings=[*warnings, *results.warnings])


@contextmanager
def batched_stage(
    calls: CallSettings, stage: Stage, ledger: Ledger, run: Callable[[Stage], StageResults], warnings: list[str]
) -> Iterator[Stage]:
    """Run the rounds of a stage whose calls batch jobs may make; yield the stage that makes the remaining calls."""
    models = {name: calls.services[name] for name in stage.services if name in calls.services}
    if not (services := services_of(models, calls.pools)):
        yield stage
        return
    from rankbeam.transforms.clients.models.batches.make import BatchJobs  # few benchmarks need it

    def with_rest(batch: BatchRound) -> Stage:
        return replace(stage, batch=batch, budget=max(0.0, stage.budget - sum(batch.spent.values())))

    jobs, limit = BatchJobs(ledger, services), None if math.isinf(stage.budget) else stage.budget
    with (
        messages.log_to_stderr(),
        rounds(ledger, jobs, calls.pools, limit, lambda batch: run(with_rest(batch))) as last,
    ):
        warnings += jobs.warnings
        yield with_rest(last)


@contextmanager
def _at_work(result: PipelineResult, ledger: Ledger) -> Iterator[None]:
    """Record an engine's job while the block waits for it; other runners only return once they are done."""
    job_id: str | None = getattr(result, "_job_id", None)  # Beam has no public name for it
    if job_id is None:
        yield
        return
    _jobs[job_id] = ledger
    try:
        yield
    finally:
        del _jobs[job_id]


def at_work() -> dict[str, Ledger]:
    """The ledger of each job that an engine is running for this process, by the engine's job id."""
    return dict(_jobs)


def refuse_local(goldens: Goldens, options: PipelineOptions) -> None:
    """Refuse local folders if workers on other machines would write answers to them."""
    for name, place in {"output": goldens.output, "output.ledger": goldens.ledger}.items():
        if works_elsewhere(options) and files.is_local(place):
            problem = "the workers of this job cannot reach folders on this machine; name one in a bucket"
            raise InputError(f"{name}: {problem}", path=place)


def refuse_dataflow(options: PipelineOptions) -> None:
    """Refuse Dataflow, where every stage of every round would be a separate job."""
    if is_dataflow(options):
        problem = "each stage of each round would be a job, and quotas, not machines, limit how fast calls are made"
        raise InputError(f"goldens do not run on Dataflow: {problem}; leave out --runner, or name a job server")


def _connect(
    pipeline: beam.Pipeline, stage: Stage, ledger: Ledger, items: Iterable[tuple[str, Any]], folder: str
) -> None:
    """Tasks ──► fan-out ──► parts."""
    tasks = [Task(name, stage.name, item, (Subject(stage.name, name, 0, (0,)),)) for name, item in items]
    batches = [(stage.name, batch) for batch in batches_of(tasks)]
    summary = pipeline | "Summary" >> beam.Create([DatasetSummary(judged=len(tasks))])
    called: CallResults = (
        pipeline
        | "Tasks" >> beam.Create(batches, reshuffle=False)
        | "CallModels" >> CallServices(stage, ledger, summary)
    )
    _ = called.answers | "WriteResults" >> beam.ParDo(parts.WriteResultsFn(folder))
    _ = called.usage | "WriteUsage" >> beam.Map(parts.write_record, folder, parts.USAGE)
    _ = called.warnings | "WriteWarnings" >> beam.Map(parts.write_record, folder, parts.WARNINGS)
