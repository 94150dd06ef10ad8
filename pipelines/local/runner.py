"""Beam pipelines on this machine: errors in the user's terms, without Beam's log and overheads."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineRunner

from rankbeam.pipelines.local import overheads
from rankbeam.transforms.clients.sharing import shared
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.errors import InputError, message_behind


def find_input_error(error: BaseException | None) -> InputError | None:
    """The InputError behind a Beam exception, which wraps exceptions in DoFns."""
    message = message_behind(error, InputError)
    return None if message is None else InputError(message)


def new_pipeline(runner: PipelineRunner | None, options: PipelineOptions) -> beam.Pipeline:
    pipeline = beam.Pipeline(runner=runner, options=options)
    Path(pipeline.local_tempdir).rmdir()  # only transforms in other languages use it; an interrupt would leave it
    return pipeline


@contextlib.contextmanager
def on_this_machine(options: PipelineOptions) -> Iterator[None]:
    """With Beam's local runner, spill growing data to disk, and avoid Beam's overheads."""
    if options.view_as(StandardOptions).runner != "FnApiRunner":
        yield
        return
    with spill.spilling(), overheads.avoid_overheads():
        yield
    spill.release_unused_memory()  # of the stages, before results are read


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Raise the InputError behind a Beam exception."""
    try:
        yield
    except Exception as error:
        if (refused := find_input_error(error)) is not None:
            raise refused from error
        raise


@shared
@contextlib.contextmanager
def quiet_beam() -> Iterator[None]:
    """Silence Beam's log: errors are raised with their tracebacks, and rankbeam reports them."""
    levels = {logger: logger.level for logger in map(logging.getLogger, ("apache_beam", "root"))}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
