"""The calls of a lane that the ledger answers: collected, and read in the order of its files, some at a time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from rankbeam.transforms.clients.calls.driver import Flight
from rankbeam.transforms.clients.ledger import Lookup
from rankbeam.transforms.records.calls.call import Reach
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.reply import Reply

_READ_AT_ONCE = 128
_MOST_ADDED = 20_000

Read = tuple[Flight, Reply, list[Any]]
"""A call, the reply to it, and the outcome that each requesting task reads from it."""


class Hits:
    """The calls that the ledger answers, or is about to."""

    def __init__(self, lookup: Lookup, flush: Callable[[], None], added: dict[str, Reach | None]) -> None:
        self._lookup, self._flush, self._added = lookup, flush, added
        self._calls: dict[str, Flight] = {}
        self._others: list[Flight] = []
        self._must_flush = False

    def __len__(self) -> int:
        return len(self._calls)

    def added(self, key: str, reach: Reach | None) -> None:
        """This lane adds an answer to the ledger that is not in the index yet."""
        self._added[key] = reach

    def has_many(self) -> bool:
        """True if so many answers are not in the index that it is time to refresh it: there they take less memory."""
        return len(self._added) >= _MOST_ADDED

    def take(self, flight: Flight) -> bool:
        """Take a call if the ledger answers it; returns whether it does."""
        key, reach = flight.call.key, flight.call.reach
        if key is None or key in self._calls:
            return False
        is_own = key in self._added
        if not is_own and self._lookup.place(key, reach) is None:
            return False
        self._must_flush |= is_own
        self._calls[key] = flight
        return True

    async def refresh(self) -> None:
        """Read what other runs, or this lane, have added to the ledger.

        Raises:
            InputError: the ledger cannot be listed.
        """
        await asyncio.to_thread(self._lookup.refresh)
        place = self._lookup.place
        for key in [key for key, reach in self._added.items() if place(key, reach) is not None]:
            del self._added[key]

    def give(self) -> dict[str, Flight]:
        """All calls taken so far, to be read."""
        calls, self._calls = self._calls, {}
        return calls

    async def read(self, calls: dict[str, Flight]) -> "AsyncReads":
        """Read the answers to calls.

        Raises:
            InputError: the ledger cannot be listed.
        """
        if self._must_flush:
            self._must_flush = False
            with suppress(InputError):  # the lane's upkeep reports it
                await asyncio.to_thread(self._flush)
            await self.refresh()
        return AsyncReads(self._read(calls))

    def _read(self, calls: dict[str, Flight]) -> Iterator[Read]:
        for entry in self._lookup.read({key: flight.call.reach for key, flight in calls.items()}):
            flight = calls[entry.key]
            reply = Reply(entry.answer, entry.tokens)
            outcomes = flight.read(reply)
            if flight.call.keeps_malformed or not _is_useless(outcomes):
                yield flight, reply, outcomes


class AsyncReads:
    """Answers that a thread reads, some at a time."""

    def __init__(self, reads: Iterator[Read]) -> None:
        self._reads = reads

    def __aiter__(self) -> "AsyncReads":
        return self

    async def __anext__(self) -> list[Read]:
        """The next answers."""
        reads = await asyncio.to_thread(lambda: list(islice(self._reads, _READ_AT_ONCE)))
        if not reads:
            raise StopAsyncIteration
        return reads


def _is_useless(outcomes: list[Any]) -> bool:
    """Return whether no task can read an answer any more: the call is then made again."""
    return all(isinstance(outcome, CallError) and outcome.kind.is_transient for outcome in outcomes)
