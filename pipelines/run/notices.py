"""What the code below says while a pipeline runs: on standard error at once, though Beam's log is silent."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

_said: set[str] = set()


class _OnStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in _said:  # every lane of a pool meets the same damage
            _said.add(message)
            click.echo(f"{'warning' if record.levelno >= logging.WARNING else 'rankbeam'}: {message}", err=True)


@contextmanager
def heard() -> Iterator[None]:
    """Say what rankbeam logs; each message once."""
    logger = logging.getLogger("rankbeam")
    before = logger.level, logger.propagate
    handler = _OnStandardError()
    _said.clear()
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
    """Whether a message was not said while the last pipeline ran."""
    return message not in _said
