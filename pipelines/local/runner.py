"""Pipelines of Beam on this machine: errors in the user's terms, no log of Beam's, and no overheads."""

import contextlib
import logging
from collections.abc import Iterator

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from rankbeam.pipelines.local import overheads
from rankbeam.transforms.clients.sharing import shared
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.errors import InputError

_BEAM_SUFFIX = " [while running"  # Beam appends the step to the message of an exception


def find_input_error(error: BaseException | None) -> InputError | None:
    """The InputError behind an exception of Beam's, which wraps the exceptions of DoFns."""
    while error is not None:
        if isinstance(error, InputError):
            return InputError(str(error).partition(_BEAM_SUFFIX)[0])
        marker = f"{InputError.__module__}.InputError: "
        if marker in str(error):  # an exception of another process arrives as the text of its traceback
            message = str(error).rpartition(marker)[2]
            return InputError(message.partition(_BEAM_SUFFIX)[0].partition("\n\n")[0].strip())
        error = error.__cause__ or error.__context__
    return None


@contextlib.contextmanager
def on_this_machine(options: PipelineOptions) -> Iterator[None]:
    """With Beam's local runner, spill data that grows to disk, and avoid Beam's overheads."""
    if options.view_as(StandardOptions).runner != "FnApiRunner":
        yield
        return
    with spill.spilling(), overheads.avoided():
        yield


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Raise the InputError behind an exception of Beam's."""
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
