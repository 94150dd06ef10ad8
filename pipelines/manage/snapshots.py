"""The state of a submitted job, on whatever engine it runs: at one moment, and followed to its end."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import RankbeamError

_DONE = frozenset({"done", "finished"})
_FAILED = frozenset({"gone", "failed", "canceled", "cancelled", "drained", "updated"})
LOST_AFTER_S = 600.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 20.0


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


def follow(
    look: Callable[[], JobSnapshot],
    show: Callable[[JobSnapshot], None],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> JobSnapshot:
    """Show snapshots of a job until it has ended; return the last one.

    Raises:
        RankbeamError: the first request failed, or all requests of ten minutes.
    """
    answered: float | None = None
    for pause_s in pauses():
        try:
            snapshot = look()
        except RankbeamError:
            if answered is None or clock() - answered > LOST_AFTER_S:
                raise
        else:
            answered = clock()
            show(snapshot)
            if snapshot.has_ended:
                return snapshot
        sleep(pause_s)
    raise AssertionError("pauses never end")


def pauses() -> Iterator[float]:
    """Seconds between requests: a short job is noticed at once, and a long one is not asked for too often."""
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)
