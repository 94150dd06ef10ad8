"""Ask again until there is an answer: engines say how a job is, and not when that changes."""

from collections.abc import Callable
from typing import TypeVar

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock

Answer = TypeVar("Answer")
PAUSE_S = 0.25


def asked_until(ask: Callable[[], Answer | None], within_s: float, clock: Clock = SYSTEM_CLOCK) -> Answer | None:
    """The first answer that is not None; None where there is none in time."""
    deadline, condition = clock.monotonic() + within_s, clock.condition()
    with condition, clock.at_work():
        while (answer := ask()) is None and (left := deadline - clock.monotonic()) > 0:
            condition.wait(min(PAUSE_S, left))
    return answer
