"""The parts that the pools of one lane share."""

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rankbeam.transforms.clients.calls.attempts import Answered
from rankbeam.transforms.clients.calls.budget import Budget
from rankbeam.transforms.clients.calls.call_sums import CallSums
from rankbeam.transforms.clients.calls.driver import Flight
from rankbeam.transforms.clients.calls.in_flight import InFlight
from rankbeam.transforms.clients.calls.shared import SharedServices
from rankbeam.transforms.clients.calls.unexpected import UnexpectedErrors
from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError

Counts = Tally[tuple[Counter, str]]
"""Counts by counter and service."""


class CallOwner(Protocol):
    """The lane that calls are made for."""

    def is_held(self) -> bool:
        """True while no call may begin, because answers cannot be written."""
        ...

    def answered(self, answered: Answered) -> None:
        """Take the answer to a call."""
        ...

    def failed(self, flight: Flight, error: CallError) -> None:
        """Take the final failure of a call."""
        ...


@dataclass(frozen=True)
class LaneContext:
    """The parts that the pools of one lane share."""

    lane: int
    owner: CallOwner
    count_in_flight: Callable[[int], None]  # 1 when an attempt begins, -1 when it has ended
    shared: SharedServices
    tally: Counts
    sums: CallSums
    in_flight: InFlight
    budget: Budget
    unexpected: UnexpectedErrors
    clock: Clock
