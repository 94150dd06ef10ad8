"""Follow a submitted job to its end."""

import time
from collections.abc import Callable, Iterator

from rankbeam.pipelines.manage.snapshots import JobSnapshot
from rankbeam.transforms.records.errors import RankbeamError

LOST_AFTER_S = 600.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 20.0


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
