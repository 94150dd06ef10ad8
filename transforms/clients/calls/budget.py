"""The money that calls may cost: each reserves the most it may cost, and settles with what it did."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_ROUNDING = 1e-9  # of sums of many small costs


@dataclass
class BudgetReservation:
    """Money reserved for one attempt."""

    cost: float = 0.0


class Account:
    """The money that lanes of one loop share: what one of them does not need, another may spend."""

    def __init__(self, limit: float = 0.0) -> None:
        self.limit = limit
        self.reserved = self.spent = 0.0
        self.changed = asyncio.Event()

    def is_over(self, cost: float) -> bool:
        """Return whether a sum is more than all calls may cost."""
        return cost > self.limit * (1 + _ROUNDING)


class Budget:
    """Reserves money for the calls of one lane."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.refused = 0

    @property
    def is_limited(self) -> bool:
        """True if calls may be refused."""
        return math.isfinite(self._account.limit)

    @asynccontextmanager
    async def reserved(self, most: float, refuse_when_stopped: Callable[[], None]) -> AsyncIterator[BudgetReservation]:
        """Put aside the most that an attempt may cost, once there is enough beside those in flight.

        Args:
            most: the highest cost of the attempt.
            refuse_when_stopped: raises an error where nothing more is to begin.

        Raises:
            CallError: it may cost more than is left, even if those in flight cost nothing.
        """
        account = self._account
        while most > 0 and account.is_over(account.spent + account.reserved + most):
            refuse_when_stopped()
            if account.is_over(account.spent + most):
                self.refused += 1
                left = max(0.0, account.limit - account.spent)
                problem = f"not asked: it may cost {most:,.4g}, and {left:,.4g} of max_cost is left"
                raise CallError(FailureKind.OVER_BUDGET, problem, 0)
            account.changed.clear()
            await account.changed.wait()
        account.reserved += most
        reservation = BudgetReservation()
        try:
            yield reservation
        finally:
            account.reserved -= most
            account.spent += reservation.cost
            self.wake()

    def wake(self) -> None:
        """Let those that wait look again."""
        self._account.changed.set()
