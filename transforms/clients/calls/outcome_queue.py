"""Outcomes on their way from the event loop to the thread of the bundle, which waits on the clock of the fan-out."""

from collections import deque
from collections.abc import Callable

from rankbeam.transforms.clients.calls.driver import Outcome
from rankbeam.transforms.clients.clock import Clock

_MOST, _MOST_BYTES = 1000, 16 << 20
"""Outcomes above which the queue is full."""


class OutcomeQueue:
    """A queue of outcomes. Any thread may put one, full or not; None only wakes the thread that waits."""

    def __init__(self, clock: Clock, on_room: Callable[[], object]) -> None:
        self._changed, self._on_room = clock.condition(), on_room
        self._outcomes = deque[tuple[Outcome | None, int]]()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def is_full(self) -> bool:
        """True while too many outcomes wait for their reader."""
        return len(self._outcomes) > _MOST or self.held_bytes > _MOST_BYTES

    def put(self, outcome: Outcome | None, size: int = 0) -> None:
        with self._changed:
            self._outcomes.append((outcome, size))
            self.held_bytes += size
            self._changed.notify_all()

    def get(self, timeout_s: float = 0.0) -> Outcome | None:
        """The first outcome; None after some time without one."""
        with self._changed:
            if not self._outcomes and timeout_s > 0:
                self._changed.wait(timeout_s)
            was_full = self.is_full
            outcome, size = self._outcomes.popleft() if self._outcomes else (None, 0)
            self.held_bytes -= size
            has_room_again = was_full and not self.is_full
        if has_room_again:
            self._on_room()
        return outcome
