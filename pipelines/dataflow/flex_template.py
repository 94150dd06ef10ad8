"""The entry point of the Dataflow Flex Template: `rankbeam evaluate` for the template's launcher.

The launcher runs in the template's image, on a machine that Dataflow starts for it. Its own options, such as
--template_location, make Beam write the job to a file instead of submitting it; Dataflow starts the job from that file.
So here the job has no id yet, and the launcher does not wait for it. The output is a line in the launcher's log, and
the record of the job beside its results, with its name in place of its id.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from rankbeam.pipelines.local.messages import messages, warn

_IMAGE = "RANKBEAM_IMAGE"  # the Dockerfile sets it to the address of its image


@dataclass(frozen=True)
class TemplateParameters:
    """The template's parameters, under their names in metadata.json."""

    experiment: str
    output: str | None = None
    run_id: str | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the job that the launcher requests; end the process with the exit statuses of `rankbeam`."""
    with messages():
        parameters, beam_options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
        click.echo(hand_over(parameters, beam_options), err=True)


def parse_arguments(arguments: Sequence[str]) -> tuple[TemplateParameters, list[str]]:
    """Split the template's parameters from Beam's options; an empty value, which a form sends, counts as absent.

    >>> parse_arguments(["--experiment=gs://b/e.yaml", "--run_id=", "--region=us-central1"])
    (TemplateParameters(experiment='gs://b/e.yaml', output=None, run_id=None), ['--region=us-central1'])
    """
    from rankbeam.transforms.records.errors import InputError

    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for name in TemplateParameters.__dataclass_fields__:
        parser.add_argument(f"--{name}")
    parameters, beam_options = parser.parse_known_args(arguments)
    arguments_set = {name: value for name, value in vars(parameters).items() if value}
    if "experiment" not in arguments_set:
        raise InputError("the template needs the parameter experiment")
    return TemplateParameters(**arguments_set), beam_options


def hand_over(parameters: TemplateParameters, beam_options: Sequence[str]) -> str:
    """Build the job and give it to the runner; return a line for the log."""
    from tempfile import TemporaryDirectory

    from apache_beam.options.pipeline_options import WorkerOptions

    from rankbeam.pipelines.dataflow import package, record, uploads
    from rankbeam.pipelines.dataflow.service import translate_errors
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.manage.jobs import RunRecord
    from rankbeam.pipelines.plan.limits import refuse_above_budget
    from rankbeam.pipelines.run import evaluate
    from rankbeam.pipelines.run.folders import refuse_elsewhere
    from rankbeam.pipelines.run.options import pipeline_options
    from rankbeam.transforms.clients.warehouse.duckdb import refuse_foreign

    experiment = load_experiment(parameters.experiment, parameters.output)
    options = pipeline_options(list(_known_options(beam_options)))
    refuse_elsewhere(experiment)
    uploads.refuse_local(experiment, options)
    refuse_foreign(experiment.output)
    warn(*refuse_above_budget(experiment, parameters.experiment))
    worker = options.view_as(WorkerOptions)
    worker.sdk_container_image = worker.sdk_container_image or os.environ.get(_IMAGE) or None
    execution = evaluate.new_run(experiment, parameters.run_id)
    package.set_defaults(options, execution, experiment.calls.lanes)
    with TemporaryDirectory(prefix="rankbeam-") as folder, translate_errors(execution.run_id):
        package.stage(options, folder)
        run = RunRecord.of(experiment, execution)
        evaluate.submit(experiment, execution, options)
    record.of_run(experiment, execution, options, run).save()
    return f"rankbeam: run {execution.run_id} of {experiment.name} goes to {experiment.output}"


def _known_options(arguments: Sequence[str]) -> Iterator[str]:
    """Options that Beam knows. A launcher newer than this Beam may add others, which must not fail every launch."""
    from rankbeam.pipelines.run.options import pipeline_options
    from rankbeam.transforms.records.errors import InputError

    options: list[list[str]] = []
    for word in arguments:
        if word.startswith("--") or not options:
            options.append([])
        options[-1].append(word)
    for words in options:
        try:
            pipeline_options(words)
        except InputError as error:
            if "unknown option" not in str(error):
                raise
            click.echo(f"rankbeam: left out: {error}", err=True)
        else:
            yield from words
