"""The rounds of a run with batch jobs: whole pipelines over one ledger, and jobs between them.

round: calls that the ledger lacks are written down, their tasks end ─► jobs: made, waited for, answers to the ledger ─┐
  ▲                                                                                                                  │
  └────────────────────────────── until a round leaves no call ◄─────────────────────────────────────────────────────┘

Each round completes one more step of the judge. Only the pipeline after the last round publishes results.
"""

import copy
import hashlib
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.run.build import calls_of, day_of, new_pipeline, pin_of, read_dataset
from rankbeam.pipelines.run.folders import ROUND, delete_abandoned, owner_files, owner_of, work_folder
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import BATCHES, BatchFolder, BatchRound
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.run import Run

if TYPE_CHECKING:
    from rankbeam.transforms.clients.models.batches.make import BatchJobs
    from rankbeam.transforms.clients.models.batches.service import BatchedService

_logger = logging.getLogger(__name__)


@contextmanager
def run_batch_rounds(
    experiment: Experiment, execution: Run, options: PipelineOptions, clock: Clock = SYSTEM_CLOCK
) -> Iterator[Experiment]:
    """Run the rounds of an experiment with batch jobs; yields the experiment of the pipeline that publishes."""
    if not experiment.calls.batched:
        if experiment.makes_calls:
            delete_abandoned(files.join(experiment.ledger, BATCHES), ROUND)
        if experiment.makes_calls and (
            records := [record for record in BatchFolder(experiment.ledger).records() if record.is_open]
        ):
            calls = f"{sum(record.calls for record in records):,} calls"
            advice = "`rankbeam batch collect` or a run with batch: collects them; this run pays for their calls again"
            _logger.warning("%d batch jobs of this ledger with %s are open: %s", len(records), calls, advice)
        yield experiment
        return
    from rankbeam.transforms.clients.models.batches.make import BatchJobs  # few experiments need it

    ledger = Ledger(experiment.ledger, owner_of(experiment.calls, execution))
    jobs = BatchJobs(ledger, services_of(experiment.calls.services, experiment.calls.pools), clock)
    pinned = experiment.pinned(pin_of(execution), day_of(execution))

    def run_round(batch: BatchRound) -> None:
        pipeline = new_pipeline(copy.deepcopy(options))
        calls_of(pipeline, _in_round(pinned, batch), execution, read_dataset(pipeline, pinned))
        pipeline.run().wait_until_finish()

    with rounds(ledger, jobs, experiment.calls.pools, experiment.calls.max_cost, run_round) as last:
        evaluation = experiment.evaluation
        evaluation = replace(evaluation, notes=(*evaluation.notes, *jobs.warnings))
        yield _in_round(replace(experiment, evaluation=evaluation), last)


def _in_round(experiment: Experiment, batch: BatchRound) -> Experiment:
    return replace(experiment, calls=replace(experiment.calls, batch=batch, spent=batch.spent))


@contextmanager
def rounds(
    ledger: Ledger,
    jobs: "BatchJobs",
    pools: Mapping[str, Quota],
    max_cost: float | None,
    run_round: Callable[[BatchRound], object],
) -> Iterator[BatchRound]:
    """Repeat rounds until none leaves a call to jobs; yields the last round, which makes all calls that remain."""
    run = hashlib.sha256(f"{ledger.owner.run_id} {ledger.owner.started}".encode()).hexdigest()[:16]
    parent = files.join(ledger.folder, BATCHES)
    with work_folder(parent, ROUND, run) as folder:
        if len(owner_files(parent, ROUND)) == 1:  # another run may be writing files that look unused
            BatchFolder(ledger.folder).delete_unused_parts()
        if records := jobs.open():
            earlier = pluralize(len(records), "job of earlier runs", "jobs of earlier runs")
            calls = pluralize(sum(record.calls for record in records), "call")
            _logger.info("batch: waiting for %s, with %s; `rankbeam batch cancel` ends the wait", earlier, calls)
            jobs.run(records)
        batch = BatchRound(folder)
        for number in itertools.count(1):
            batch = replace(batch, spent=cost_by_stage(ledger, pools))
            run_round(batch)
            with batch.pending() as pending:
                if not pending:
                    break
                _logger.info("batch: after round %d, %s calls remain", number, f"{len(pending):,}")
                remaining = float("inf") if max_cost is None else max_cost - sum(cost_by_stage(ledger, pools).values())
                records, decisions = jobs.planned(pending, remaining)
            batch.decide({**decisions, **jobs.run(records)})
        yield replace(batch, parks=False, spent=cost_by_stage(ledger, pools))


def cost_by_stage(ledger: Ledger, pools: Mapping[str, Quota]) -> dict[str, float]:
    """Cost of all calls in a run so far, by stage."""
    costs: defaultdict[str, float] = defaultdict(float)
    for use in ledger.uses():
        for stage, _, usage in use.usages:
            if usage.position is None and use.pool in pools:
                costs[stage] += pools[use.pool].cost(usage.calls, usage.tokens) or 0.0
    return dict(costs)


def services_of(services: Mapping[str, ConfiguredService], pools: Mapping[str, Quota]) -> "list[BatchedService]":
    """The services whose calls go to batch jobs."""
    from rankbeam.transforms.clients.models.batches.service import BatchedService

    batched_services = []
    for name, service in services.items():
        if service.batch is not None:
            assert isinstance(service.parameters, RemoteModel)  # noqa: S101  others have no `batch:`
            quota = pools[service.pool or ""]
            pool = service.pool or "", service.account
            batched_services.append(BatchedService(name, service.kind, service.parameters, *pool, quota))
    return batched_services
