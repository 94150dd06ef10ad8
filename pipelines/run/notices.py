"""Print rankbeam's own log messages on standard error while a pipeline runs and Beam's log is silent."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rankbeam.pipelines.run.messages import say

_printed: set[str] = set()


class _OnStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in _printed:  # every lane of a pool logs the same damaged files
            _printed.add(message)
            say(f"{'warning' if record.levelno >= logging.WARNING else 'rankbeam'}: {message}")


@contextmanager
def shown() -> Iterator[None]:
    """Print rankbeam's log messages, each once."""
    logger = logging.getLogger("rankbeam")
    before = logger.level, logger.propagate
    handler = _OnStandardError()
    _printed.clear()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def is_news(message: str) -> bool:
    """Whether a message was not printed during the last pipeline."""
    return message not in _printed
