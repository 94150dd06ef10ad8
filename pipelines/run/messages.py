"""The last messages of a process: errors as one message, and an exit status."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from rankbeam.pipelines.run.interrupt import Interrupted, end_process

FAILED, REFUSED, MISSED, CLOSED_PIPE = 1, 2, 3, 141


@contextmanager
def messages() -> Iterator[None]:
    """Convert the errors that rankbeam raises on purpose into one message and an exit status."""
    from rankbeam.transforms.records.errors import InputError, RankbeamError

    try:
        yield
    except InputError as error:
        leave(str(error), REFUSED)
    except RankbeamError as error:
        leave(str(error), FAILED)
    except KeyboardInterrupt as interrupt:
        interrupted = interrupt if isinstance(interrupt, Interrupted) else Interrupted([])
        say(f"rankbeam: interrupted; {interrupted.kept}")
        end_process(interrupted.folders)
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "  # a failed write does not name its file
        leave(f"{place}{error.strerror or error}", FAILED)


def leave(message: str, status: int) -> None:
    """End the process with a message and an exit status."""
    say(f"rankbeam: {message}")
    sys.exit(status)


def warn(warning: str) -> None:
    """Print a warning."""
    say(f"warning: {warning}")


def say(message: str) -> None:
    """Print a message on standard error; a terminal gets whole words."""
    from rankbeam.pipelines.show.screen import Screen  # `rankbeam --help` says nothing

    click.echo(Screen.of(sys.stderr).prose(message, indent="  "), err=True)
