"""The tasks of a lane on their way to the event loop from the thread of the bundle, the only one that may read them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from rankbeam.transforms.records.calls.steps import Task

Group = Sequence[Task]
"""Tasks of one name: they need the same calls, which are made once."""

_AT_ONCE = 128
_MOST_READY = 512


class Feed:
    """A bounded queue of groups of tasks.

    Args:
        groups: the groups; an iterator that only the thread that calls `fill` advances.
        number: how many groups there are.
    """

    def __init__(self, groups: Iterable[Group], number: int) -> None:
        self._groups: Iterator[Group] = iter(groups)
        self._number, self._taken = number, 0
        self._ready: deque[Group] = deque()
        self._is_read = False
        self._on_filled: Callable[[], object] = _nothing
        self._on_taken: Callable[[], object] = _nothing

    def connect(self, on_filled: Callable[[], object], on_taken: Callable[[], object]) -> None:
        """Connect the two ends.

        Args:
            on_filled: called when there are groups to take, or at the end; in the thread that calls `fill`.
            on_taken: called when there is room again, in the thread that calls `take`.
        """
        self._on_filled, self._on_taken = on_filled, on_taken

    @property
    def has_ended(self) -> bool:
        """Whether all groups were taken."""
        return self._is_read and not self._ready

    @property
    def left(self) -> int:
        """How many groups are not taken yet."""
        return 0 if self.has_ended else max(0, self._number - self._taken)

    def fill(self) -> bool:
        """Read some groups, if there is room for them; returns whether there was."""
        if self._is_read or len(self._ready) >= _MOST_READY:
            return False
        for _ in range(_AT_ONCE):
            group = next(self._groups, None)
            if group is None:
                self._is_read = True
                break
            self._ready.append(group)
        self._on_filled()
        return True

    def take(self) -> list[Group]:
        """Take some groups, if there are any."""
        taken = [self._ready.popleft() for _ in range(min(_AT_ONCE, len(self._ready)))]
        self._taken += len(taken)
        if taken and not self._is_read:
            self._on_taken()
        return taken


def _nothing() -> None:
    """The default of both callbacks until `connect` sets them."""
