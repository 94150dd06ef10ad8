"""Make the calls of a stage."""

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.folders import owner_of
from rankbeam.transforms.call import CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.run import Run


def calls_of_stage(
    stage: Stage, experiment: Experiment, execution: Run, dataset: Dataset, earlier: beam.PCollection | None = None
) -> CallServices:
    """The transform that makes a stage's calls once the usage of `earlier` stages is known."""
    ledger = Ledger(experiment.ledger, owner_of(experiment.calls, execution))
    return CallServices(stage, ledger, dataset.summary, earlier)
