"""Counts what arrives in every sliding second and every sliding minute, as a service does that has a quota."""

import math
from collections import deque
from dataclasses import dataclass, field

SECOND_S, MINUTE_S = 1.0, 60.0


@dataclass
class Window:
    """A window of fixed length that ends at the latest arrival; what is exactly its length older is outside.

    Attributes:
        length_s: length of the window in seconds.
        limit: arrivals that it may hold; None for any number.
        times: times of the arrivals in it, in seconds.
        busiest: the most arrivals that it ever held.
        violations: arrivals that were over the limit.
    """

    length_s: float
    limit: int | None
    times: deque[float] = field(default_factory=deque)
    busiest: int = 0
    violations: int = 0

    def add(self, now_s: float) -> None:
        """Count an arrival."""
        self._forget(now_s)
        self.times.append(now_s)
        self.busiest = max(self.busiest, len(self.times))
        self.violations += self.limit is not None and len(self.times) > self.limit

    def wait_s(self, now_s: float) -> float:
        """Seconds until there is room for one more; 0 where there is."""
        self._forget(now_s)
        if self.limit is None or len(self.times) < self.limit:
            return 0.0
        return self.times[-self.limit] + self.length_s - now_s

    def _forget(self, now_s: float) -> None:
        while self.times and self.times[0] <= now_s - self.length_s:
            self.times.popleft()


class Meter:
    """A quota's two windows, over all arrivals and over those that were let in: what is refused uses up nothing.

    Args:
        requests_per_minute: the quota; None for none.
        by_second: whether what is over the quota of a second came too early, too.

    Attributes:
        second: all arrivals of a second, of which a sixtieth of the quota is allowed, rounded up.
        minute: all arrivals of a minute.
    """

    def __init__(self, requests_per_minute: float | None, *, by_second: bool = True) -> None:
        self.second, self.minute = _windows(requests_per_minute)
        second, minute = _windows(requests_per_minute)
        self._admitted = (second, minute) if by_second else (minute,)

    def arrive(self, now_s: float) -> float:
        """Count an arrival.

        Args:
            now_s: when it came, never before the last one.

        Returns:
            How long it should have waited, in seconds; 0 where it came within the quota.
        """
        self.second.add(now_s)
        self.minute.add(now_s)
        wait_s = max(window.wait_s(now_s) for window in self._admitted)
        if wait_s == 0:
            for window in self._admitted:
                window.add(now_s)
        return wait_s


def _windows(requests_per_minute: float | None) -> tuple[Window, Window]:
    if requests_per_minute is None:
        return Window(SECOND_S, None), Window(MINUTE_S, None)
    return Window(SECOND_S, math.ceil(requests_per_minute / 60)), Window(MINUTE_S, math.floor(requests_per_minute))
