"""Calls that a lane need not make: those that the ledger answers, and those left to batch jobs."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from rankbeam.transforms.clients.calls.driver import BatchPending, OpenCall
from rankbeam.transforms.clients.calls.lane_context import FanOutContext
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.ledger.rows import BATCH
from rankbeam.transforms.clients.ledger.waiting import BatchRound, PendingCall
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.reply import Reply

_READ_AT_ONCE = 128
_MOST_ADDED = 20_000

Read = tuple[OpenCall, Reply, list[Any]]
"""A call, the reply to it, and the outcome that each requesting task reads from it."""


class Hits:
    """The calls that the ledger answers, or will answer once its writer has flushed."""

    def __init__(self, shared: FanOutContext) -> None:
        self._shared, self._lookup, self._added = shared, shared.lookup, shared.added
        self._calls: dict[str, OpenCall] = {}
        self._must_flush = False

    def __len__(self) -> int:
        return len(self._calls)

    def has_many(self) -> bool:
        """Return whether enough answers are missing from the index to refresh it: they take less memory there."""
        return len(self._added) >= _MOST_ADDED

    def take(self, open_call: OpenCall) -> bool:
        """Take a call if the ledger answers it; returns whether it does."""
        key, depth = open_call.call.key, open_call.call.depth
        if key is None or key in self._calls:
            return False
        is_own = key in self._added
        if not is_own and self._lookup.place(key, depth) is None:
            return False
        self._must_flush |= is_own
        self._calls[key] = open_call
        return True

    async def refresh(self) -> None:
        """Read the answers that other runs, or this lane, have added to the ledger."""
        await asyncio.to_thread(self._lookup.refresh)
        place = self._lookup.place
        for key in [key for key, depth in self._added.items() if place(key, depth) is not None]:
            del self._added[key]

    def give(self) -> dict[str, OpenCall]:
        calls, self._calls = self._calls, {}
        return calls

    async def read(self, calls: dict[str, OpenCall]) -> AsyncIterator[list[Read]]:
        if self._must_flush:
            self._must_flush = False
            with suppress(InputError):  # the lane's session reports it
                await asyncio.to_thread(self._shared.flush)
            await self.refresh()
        reads = self._read_answers(calls)
        while batch := await asyncio.to_thread(lambda: list(islice(reads, _READ_AT_ONCE))):
            yield batch

    def _read_answers(self, calls: dict[str, OpenCall]) -> Iterator[Read]:
        for entry in self._lookup.read({key: open_call.call.depth for key, open_call in calls.items()}):
            open_call = calls[entry.key]
            reply = Reply(entry.answer, entry.tokens, attempts=entry.attempts)
            outcomes = open_call.read(reply)
            # If no task can read an answer any more, the call is made again; the answer of a job had one attempt only.
            is_useless = all(isinstance(outcome, CallError) and outcome.kind.is_transient for outcome in outcomes)
            if (open_call.call.keeps_malformed and entry.via != BATCH) or not is_useless:
                yield open_call, reply, outcomes


_MOST_BYTES = 8 << 20  # of payloads in memory


class Parking:
    """Decides which calls of a lane wait for batch jobs, and writes them down."""

    def __init__(self, batch: BatchRound, stage: str, services: Mapping[str, Service]) -> None:
        self._batch, self._stage = batch, stage
        self._waits = {name: getattr(service, "waits", None) for name, service in services.items()}
        self._pending: list[PendingCall] = []
        self._bytes = 0
        self._decided: dict[str, str] = {}

    def load(self) -> None:
        self._decided = self._batch.decided()

    def refusal(self, call: Call, positions: Collection[int]) -> CallError | None:
        """The error of a call that is not made now; None for a call to be made.

        A call that no job answered fails if the service has `otherwise: fail`.
        """
        if call.key is None:
            return None
        if (reason := self._decided.get(call.key)) is not None:
            return CallError(FailureKind.TIMEOUT, reason, 0) if reason else None
        waits = self._waits[call.service]
        if not self._batch.parks or waits is None or not waits(call.payload):
            return None
        needed_by = tuple(sorted(positions))
        self._pending.append(PendingCall(call.key, call.service, self._stage, call.step, needed_by, call.payload))
        self._bytes += len(call.payload)
        if self._bytes >= _MOST_BYTES:
            self.flush()
        return BatchPending()

    def flush(self) -> None:
        pending, self._pending, self._bytes = self._pending, [], 0
        if pending:
            self._batch.write_pending(pending)
