"""The stages of an experiment's calls, with its quota pools, budget and ledger."""

from collections.abc import Mapping
from typing import Any

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.folders import owner_of
from rankbeam.transforms.call import CallServices
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import BatchRound
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.steps import Work
from rankbeam.transforms.records.run import Run


def stage_of(
    experiment: Experiment,
    name: str,
    works: Mapping[str, Work[Any]],
    called: Mapping[str, tuple[Service, str | None]] | None = None,
    *,
    max_failure_rate: float = 1.0,
    batch: BatchRound | None = None,
) -> Stage:
    """A stage; `called` are its services with their quota pools, by default the models that its works name."""
    if called is None:
        models = {service: experiment.services[service] for work in works.values() for service in work.services}
        called = {service: (model.parameters, model.pool) for service, model in models.items()}
    return Stage(
        name,
        works,
        {service: parameters for service, (parameters, _) in called.items()},
        {service: pool or "" for service, (_, pool) in called.items()},
        experiment.pools,
        experiment.accounts(),
        max_failure_rate,
        experiment.budget(name),
        batch,
    )


def calls_of(
    stage: Stage, experiment: Experiment, execution: Run, dataset: Dataset, earlier: beam.PCollection | None = None
) -> CallServices:
    """The transform that makes a stage's calls once the usage of `earlier` stages is known."""
    ledger = Ledger(experiment.ledger, owner_of(experiment, execution))
    return CallServices(stage, ledger, dataset.summary, earlier)
