"""One request to a remote service, and its depth into a ranking."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchDepth:
    """The depth of a call into a ranking. An answer of a larger depth also answers calls of a smaller one."""

    results: int
    distance: float | None = None  # results at this distance or farther are not wanted; None if all are wanted

    def covers(self, other: "SearchDepth") -> bool:
        """Return whether an answer of this depth contains all results of the other depth.

        >>> SearchDepth(100, None).covers(SearchDepth(10, 0.5)), SearchDepth(100, 0.5).covers(SearchDepth(10, None))
        (True, False)
        """
        near = other.distance is not None and self.distance is not None and other.distance <= self.distance
        return self.results >= other.results and (self.distance is None or near)

    def joined(self, other: "SearchDepth") -> "SearchDepth":
        """The smallest depth that covers both.

        >>> SearchDepth(10, None).joined(SearchDepth(100, 0.5))
        SearchDepth(results=100, distance=None)
        """
        distance = None if self.distance is None or other.distance is None else max(self.distance, other.distance)
        return SearchDepth(max(self.results, other.results), distance)


@dataclass(frozen=True)
class Call:
    """One request to a remote service."""

    service: str
    key: str | None
    payload: str
    depth: SearchDepth | None = None  # None if an answer is whole
    positions: frozenset[int] | None = None  # None for those of the call's task
    keeps_malformed: bool = False
    step: str = ""
