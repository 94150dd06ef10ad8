"""Polling: engines report the state of a job, but not when it changes."""

from collections.abc import Callable
from typing import TypeVar

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock

Answer = TypeVar("Answer")
PAUSE_S = 0.25


def poll_until(poll: Callable[[], Answer | None], within_s: float, clock: Clock = SYSTEM_CLOCK) -> Answer | None:
    """Poll until the first answer that is not None; return None after `within_s`."""
    deadline, condition = clock.monotonic() + within_s, clock.condition()
    with condition, clock.at_work():
        while (answer := poll()) is None and (left := deadline - clock.monotonic()) > 0:
            condition.wait(min(PAUSE_S, left))
    return answer
