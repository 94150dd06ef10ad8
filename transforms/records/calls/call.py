"""One request to a remote service, and how deep into a ranking it reaches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """The depth of a call into a ranking. An answer of a longer reach also answers calls of a shorter one."""

    results: int
    distance: float | None = None  # results at this distance or farther are not wanted; None if all are wanted

    def covers(self, other: "Reach") -> bool:
        """Return whether an answer of this reach contains all results of the other reach.

        >>> Reach(100, None).covers(Reach(10, 0.5)), Reach(100, 0.5).covers(Reach(10, None))
        (True, False)
        """
        near = other.distance is not None and self.distance is not None and other.distance <= self.distance
        return self.results >= other.results and (self.distance is None or near)

    def joined(self, other: "Reach") -> "Reach":
        """The least reach that covers both.

        >>> Reach(10, None).joined(Reach(100, 0.5))
        Reach(results=100, distance=None)
        """
        distance = None if self.distance is None or other.distance is None else max(self.distance, other.distance)
        return Reach(max(self.results, other.results), distance)


@dataclass(frozen=True)
class Call:
    """One request to a remote service."""

    service: str
    key: str | None
    payload: str
    reach: Reach | None = None  # None if an answer is whole
    positions: frozenset[int] | None = None  # None for those of the call's task
    keeps_malformed: bool = False
    step: str = ""
