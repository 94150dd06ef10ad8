"""Costs and durations of a lane's calls, by service, in all and for each configuration that needed them."""

from collections import Counter as Tally
from collections.abc import Collection

from rankbeam.transforms.clients.calls.attempts import Attempts
from rankbeam.transforms.kernels.durations import bin_of
from rankbeam.transforms.records.calls.outcomes import Took
from rankbeam.transforms.records.reply import NO_TOKENS


class _Sum:
    """A `Took` that grows."""

    def __init__(self) -> None:
        self.calls = self.shared = 0
        self.tokens = NO_TOKENS
        self.durations: Tally[int] = Tally()

    def add(self, attempts: Attempts, *, is_shared: bool) -> None:
        self.calls += attempts.made
        self.shared += attempts.made if is_shared else 0
        self.tokens += attempts.tokens
        if attempts.answered_s is not None:
            self.durations[bin_of(attempts.answered_s)] += 1

    def took(self, position: int | None) -> Took:
        return Took(position, self.calls, self.shared, self.tokens, dict(self.durations))


class CallSums:
    """Costs and durations of calls, by service and position."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int | None], _Sum] = {}

    def add(self, service: str, positions: Collection[int], attempts: Attempts) -> None:
        """Add a call that has ended."""
        for position in (None, *positions):
            total = self._sums.setdefault((service, position), _Sum())
            total.add(attempts, is_shared=position is not None and len(positions) > 1)

    def took(self) -> list[tuple[str, Took]]:
        """Each service, and what its calls took so far."""
        return [(service, total.took(position)) for (service, position), total in list(self._sums.items())]
