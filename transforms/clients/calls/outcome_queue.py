"""Outcomes on their way from the event loop to the thread of the bundle, which waits on the clock of the fan-out."""

from collections import deque

from rankbeam.transforms.clients.calls.driver import Outcome
from rankbeam.transforms.clients.clock import Clock


class OutcomeQueue:
    """A queue of outcomes. Any thread may put one; None only wakes the thread that waits."""

    def __init__(self, clock: Clock) -> None:
        self._changed = clock.condition()
        self._outcomes = deque[tuple[Outcome | None, int]]()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    def put(self, outcome: Outcome | None, size: int = 0) -> None:
        """Add an outcome."""
        with self._changed:
            self._outcomes.append((outcome, size))
            self.held_bytes += size
            self._changed.notify_all()

    def get(self, timeout_s: float = 0.0) -> Outcome | None:
        """The first outcome; None after some time without one."""
        with self._changed:
            if not self._outcomes and timeout_s > 0:
                self._changed.wait(timeout_s)
            outcome, size = self._outcomes.popleft() if self._outcomes else (None, 0)
            self.held_bytes -= size
            return outcome
