"""What comes of tasks: answers, failures, and what they cost."""

from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.records.calls.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.calls.steps import Subject
from rankbeam.transforms.records.failures import Failure


@dataclass(frozen=True)
class Answer:
    """A task that came to a value.

    Attributes:
        work: the name of its work.
        name: of the task.
        subjects: all that the value belongs to.
        value: what the work's `steps` returned.
    """

    work: str
    name: str
    subjects: tuple[Subject, ...]
    value: Any


@dataclass(frozen=True)
class FailedTask:
    """A task that came to none: one for each of its subjects.

    Attributes:
        work: the name of its work.
        subject: that has no value.
        failure: why.
    """

    work: str
    subject: Subject
    failure: Failure


@dataclass(frozen=True)
class Usage:
    """What a stage used a quota pool for.

    Attributes:
        pool: its name.
        calls: attempts that were made.
        ledger_hits: calls that the ledger answered.
        records: names of the ledger's records that say the same.
        stage: that made the calls.
        model: that they went to; None for services that are no models.
        tokens: of all attempts, failed ones included.
    """

    pool: str
    calls: int
    ledger_hits: int
    records: tuple[str, ...] = ()
    stage: str = ""
    model: str | None = None
    tokens: Tokens = NO_TOKENS
