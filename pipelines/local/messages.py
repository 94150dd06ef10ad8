"""The last messages of a process: one message for errors, and an exit status."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rankbeam.pipelines.local import interrupt
from rankbeam.pipelines.local.interrupt import Interrupted, end_process
from rankbeam.transforms.clients.sharing import shared

_NO_THREAD = "can't start new thread"  # Python's message, of a RuntimeError
FAILED, REFUSED, MISSED, RUNNING, CLOSED_PIPE = 1, 2, 3, 4, 141


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
    except Interrupted as error:
        say(f"rankbeam: interrupted; {error.outcome}")
        end_process(error.folders)
    except KeyboardInterrupt:
        _end_interrupted()
    except BrokenPipeError:  # the reader of the output, for example head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "  # a failed write does not name its file
        leave(f"{place}{error.strerror or error}", FAILED)
    except Exception as error:
        _explain(error)
        raise


def _explain(error: Exception) -> None:
    """End the process with a message if the cause of an unexpected error is known."""
    if interrupt.received_at is not None:
        problem = f"{type(error).__name__}: {error}"
        _end_interrupted("" if "interrupt" in problem.lower() else f"; then {problem}")  # libraries raise their own
    if sys.flags.optimize > 1 and isinstance(error, AttributeError):  # Beam reads the docstrings of pandas
        leave("Apache Beam needs docstrings; run Python without -OO and without PYTHONOPTIMIZE=2", FAILED)
    if _NO_THREAD in str(error):
        leave(f"{_NO_THREAD}: raise the limit of processes (ulimit -u, pids of a container) or of memory", FAILED)


def _end_interrupted(error: str = "") -> None:
    say(f"rankbeam: interrupted{error}")
    end_process([])


def leave(message: str, status: int) -> None:
    say(f"rankbeam: {message}")
    sys.exit(status)


def warn(*warnings: str) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


def say(message: str) -> None:
    """Print a message on standard error; a terminal gets whole words, and lists keep their indentation."""
    from rankbeam.pipelines.show.tabular import Screen  # `rankbeam --help` prints no message

    screen = Screen.of(sys.stderr)
    for line in message.split("\n"):
        blanks = line[: len(line) - len(line.lstrip())]
        interrupt.tell(screen.prose(line, indent=f"  {blanks}"))


_printed: set[str] = set()


class _OnStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in _printed:  # every lane of a pool logs the same damaged files
            _printed.add(message)
            say(f"{'warning' if record.levelno >= logging.WARNING else 'rankbeam'}: {message}")


@shared
@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Print rankbeam's log messages, each once."""
    logger = logging.getLogger("rankbeam")
    settings = logger.level, logger.propagate
    handler = _OnStandardError()
    _printed.clear()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(settings[0])
        logger.propagate = settings[1]


def is_news(message: str) -> bool:
    """Return whether a message was not printed during the last pipeline."""
    return message not in _printed
