"""The branch of a pipeline that rewrites queries before anything is retrieved."""

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.branches import Branches
from rankbeam.pipelines.run.stages import calls_of_stage
from rankbeam.transforms.call import CallResults
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.storage.batches import JUDGED
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.stages import REWRITE
from rankbeam.transforms.retrieve import rewrite


def rewrite_all(experiment: Experiment, execution: Run, dataset: Dataset, branches: Branches) -> None:
    works = rewrite_works(experiment)
    call = calls_of_stage(rewrite_stage(experiment), experiment, execution, dataset)
    called: CallResults = tasks_to_rewrite(dataset, experiment) | "CallRewriters" >> call
    parts = {JUDGED: dataset.judged, rewrite.TEXTS: called.answers, rewrite.FAILED: called.failed}
    branches.rewritten, empty = parts | "AskRewritten" >> rewrite.AskRewritten(experiment.evaluation, works)
    branches.failures.append(called.failed | "FailedRewrites" >> beam.FlatMap(rewrite.failures_of, works))
    branches.warnings += [empty, called.warnings]
    branches.usage = called.usage


def tasks_to_rewrite(dataset: Dataset, experiment: Experiment) -> beam.PCollection[TaskBatch]:
    works = rewrite_works(experiment)
    plan = beam.FlatMap(rewrite.tasks_of, works, experiment.evaluation).with_output_types(TaskBatch)
    return dataset.judged | "PlanRewrites" >> plan


def rewrite_works(experiment: Experiment) -> rewrite.Works:
    """The works that rewrite queries, each with the sources that get its texts."""
    services = experiment.calls.services
    return rewrite.works_of(
        experiment.evaluation, {name: (entry.kind, entry.parameters) for name, entry in services.items()}
    )


def rewrite_stage(experiment: Experiment) -> Stage:
    return experiment.calls.stage(REWRITE, {name: work for name, (work, _) in rewrite_works(experiment).items()})
