"""The limit on the share of failed queries: whether a run in progress can still meet it."""

from collections import Counter

from rankbeam.transforms.records.calls.outcomes import FailedTask


class FailureLimit:
    """Counts failures until more queries have failed than the limit allows."""

    def __init__(self, most: float, queries: int) -> None:
        self._most, self._queries = most, queries
        self._failed: Counter[tuple[str, int]] = Counter()
        self._is_exceeded = False

    def add(self, failed: FailedTask) -> str | None:
        """Count a failure; returns a warning, once, that the limit can no longer be met."""
        subject = failed.subject
        places = [(subject.panel, position) for position in subject.positions]
        self._failed.update(places)
        if self._is_exceeded or all(self._failed[place] / self._queries <= self._most for place in places):
            return None
        self._is_exceeded = True
        count = max(self._failed[place] for place in places)
        return (
            f"{count:,} of {self._queries:,} queries have failed for good, more than {self._most:.1%} "
            "(max_failure_rate): the run continues, and will end with status 3; the last failure: "
            f"{failed.failure.message}"
        )
