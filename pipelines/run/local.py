"""Run an experiment in this process and the worker processes that it starts, so that Ctrl-C interrupts it at once."""

import contextlib

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import evaluate as evaluation
from rankbeam.pipelines.run import progress
from rankbeam.pipelines.run.interrupt import Interrupted, finish_calls, in_background
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.run import Run


def run_here(
    experiment: Experiment, execution: Run, options: PipelineOptions, *, temporary: bool, shown: bool = True
) -> Results:
    """Run an experiment to its end; return its results."""
    work = progress.Progress(len(experiment.local), len(experiment.evaluation.configurations), experiment.pools)
    try:
        with progress.shown(work) if shown else contextlib.nullcontext():
            return in_background(lambda: evaluation.run(experiment, execution, options))
    except KeyboardInterrupt:
        kept = [finish_calls(experiment.ledger)] if experiment.makes_calls else []
        evaluation.delete_rows(experiment.output, execution.run_id)
        folders = evaluation.run_folders(experiment.output, execution.run_id)
        spilled = [] if (folder := spill.folder()) is None else [folder]
        raise Interrupted(spilled + ([experiment.output] if temporary else folders), *kept) from None
