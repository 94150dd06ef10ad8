"""The state of a submitted job at one moment, on whatever engine the job runs."""

from dataclasses import dataclass

from rankbeam.transforms.records.counters import Counts

_DONE = frozenset({"done", "finished"})
_FAILED = frozenset({"gone", "failed", "canceled", "cancelled", "drained", "updated"})


@dataclass(frozen=True)
class JobSnapshot:
    """State, counters and errors of a job; engines add up all quota pools, so the pool of every counter is empty."""

    state: str
    counts: Counts
    problems: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        return self.state in _FAILED

    @property
    def is_done(self) -> bool:
        return self.state in _DONE

    @property
    def has_ended(self) -> bool:
        return self.has_failed or self.is_done


def gist(problem: str) -> str:
    """The last line of an error message with a traceback; any other message as a whole.

    >>> gist("Traceback (most recent call last):\\n  File 'a.py', line 1\\nValueError: no [while running 'Read']\\n")
    "ValueError: no [while running 'Read']"
    """
    lines = problem.strip().splitlines()
    return lines[-1] if "Traceback (most recent call last)" in problem else "\n".join(lines)
