"""The money that the calls of one lane may cost: each reserves the most it may cost, and settles with what it did."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_ROUNDING = 1e-9  # of sums of many small costs


@dataclass
class Reservation:
    """What is put aside for one attempt.

    Attributes:
        cost: what it has cost, as far as is known; it is settled with this.
    """

    cost: float = 0.0


class Budget:
    """Reserves money on one loop.

    Args:
        limit: that all calls together may cost; infinite for no limit.

    Attributes:
        spent: by attempts that have ended.
        refused: calls that were not made, because they might have cost more than was left.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = limit
        self._reserved = 0.0
        self._changed = asyncio.Event()
        self.spent = 0.0
        self.refused = 0

    @property
    def is_limited(self) -> bool:
        """Whether calls may be refused."""
        return math.isfinite(self._limit)

    @asynccontextmanager
    async def reserved(self, most: float, refuse_when_stopped: Callable[[], None]) -> AsyncIterator[Reservation]:
        """Put aside the most that an attempt may cost, once there is enough beside those in flight.

        Args:
            most: that the attempt may cost.
            refuse_when_stopped: raises an error where nothing more is to begin.

        Raises:
            CallError: it may cost more than is left, even if those in flight cost nothing.
        """
        while self._is_over(self.spent + self._reserved + most):
            refuse_when_stopped()
            if self._is_over(self.spent + most):
                self.refused += 1
                left = max(0.0, self._limit - self.spent)
                problem = f"not asked: it may cost {most:,.4g}, and {left:,.4g} of max_cost is left"
                raise CallError(FailureKind.OVER_BUDGET, problem, 0)
            self._changed.clear()
            await self._changed.wait()
        self._reserved += most
        reservation = Reservation()
        try:
            yield reservation
        finally:
            self._reserved -= most
            self.spent += reservation.cost
            self.wake()

    def wake(self) -> None:
        """Let those that wait look again."""
        self._changed.set()

    def _is_over(self, cost: float) -> bool:
        return cost > self._limit * (1 + _ROUNDING)
