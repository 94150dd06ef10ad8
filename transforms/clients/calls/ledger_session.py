"""A lane's session with the ledger: a writable folder, the lease, use records, and look-ups of new parts.

probe ─► claim the lease, or wait for its holder ─► look up new answers ─► calls
                                                     calls ─► heartbeat, use record, new parts ─► all written ─► release
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.clock import is_set_within
from rankbeam.transforms.clients.ledger import Ledger, LedgerWriter, UseRecord
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.records.errors import InputError

_TICK_S = 0.25
_POLL_S = 1.0
_LOOK_EVERY_S, _LOOK_LEAST_S = 50.0, 2.0
_NOTE_EVERY_S = 5.0
_STOP_EVERY_S = 1.0  # a cancelled run may go on beginning calls for this long
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionHooks:
    """The callbacks of a session to its lane."""

    look: Callable[[], Awaitable[bool]]  # looks up answers of other runs; returns whether calls are left to make
    stop: Callable[[], None]
    sleep: Callable[[float], Awaitable[None]]
    is_look_due: Callable[[], bool] = lambda: False  # whether to look before the usual time


class LedgerSession:
    """Holds the ledger for a lane: an asynchronous context in which the calls are made."""

    def __init__(
        self,
        ledger: Ledger,
        leases: Sequence[Lease],
        writer: LedgerWriter,
        records: Sequence[UseRecord],
        hooks: SessionHooks,
        clock: Callable[[], float],
    ) -> None:
        self._ledger, self._writer, self._records = ledger, writer, records
        self._leases = sorted(leases, key=lambda lease: lease.name)  # the same order in all runs: no deadlock
        self._hooks, self._clock = hooks, clock
        self._failing_since: float | None = None
        self._problem: InputError | None = None

    async def __aenter__(self) -> "LedgerSession":
        await self._refuse_cancelled()
        await asyncio.to_thread(self._ledger.probe)
        try:
            for lease in self._leases:
                if not await self._claim(lease):
                    break
            await self._hooks.look()
        except BaseException:
            await self._release()
            raise
        self._looked = self._noted = self._clock()
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._keep_up())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._ended.set()
            await self._task
            await self._write_all()
        finally:
            await self._release()
        if self._problem is not None and (error is None or isinstance(error, LaneStopped)):
            raise self._problem from None

    async def _claim(self, lease: Lease) -> bool:
        """Wait for a lease; returns False when the holder has answered all calls meanwhile."""
        began = looked = self._clock()
        holder_before = None
        while (holder := await asyncio.to_thread(lease.claim)) is not None:
            self._refuse_to_wait(lease, holder, self._clock() - began)
            if holder.token != holder_before:
                _logger.info("%s", _held_by(lease, holder, "waiting for it; its answers are used"))
                holder_before = holder.token
            await self._hooks.sleep(_POLL_S)
            await self._refuse_cancelled()
            await self._beat()
            if self._clock() - looked >= _LOOK_EVERY_S:
                looked = self._clock()
                if not await self._hooks.look():
                    return False
        return True

    def _refuse_to_wait(self, lease: Lease, holder: Holder, waited_s: float) -> None:
        owner = self._ledger.owner
        is_this_run = owner.run_id != "" and (holder.run_id, holder.run_started) == (owner.run_id, owner.started)
        if owner.wait_s is not None and waited_s >= owner.wait_s and not is_this_run:
            advice = "wait for it (--wait-for-lease SECONDS), end it, or use another ledger (output.ledger)"
            raise InputError(_held_by(lease, holder, advice), path=self._ledger.folder)

    async def _release(self) -> None:
        for lease in self._leases:
            await asyncio.to_thread(lease.release)

    async def _beat(self) -> None:
        for lease in self._leases:
            await asyncio.to_thread(lease.beat)

    async def _keep_up(self) -> None:
        try:
            while not await is_set_within(self._ended, _TICK_S):
                self._check_writer()
                if self._clock() - self._stop_checked >= _STOP_EVERY_S:
                    await self._refuse_cancelled()
                await self._beat()
                await self._write_records()
                await self._look_again()
        except InputError as error:
            self._problem = InputError(error.problem, path=error.path)  # not a subclass: workers send its name
            self._hooks.stop()

    def _check_writer(self) -> None:
        """Begin no call while the writer has a problem; end the lane if the problem lasts."""
        problem = self._writer.problem
        if problem is None:
            self._failing_since = None
            return
        if self._failing_since is None:
            self._failing_since = self._clock()
            _logger.warning("%s; no call is begun until it can be written", problem)
        if self._clock() - self._failing_since >= self._ledger.patience_s:
            raise problem

    async def _refuse_cancelled(self) -> None:
        self._stop_checked = self._clock()
        if await asyncio.to_thread(self._ledger.is_stop_requested):
            raise InputError("the run was cancelled; no answer is lost", path=self._ledger.folder)

    async def _look_again(self) -> None:
        since_s = self._clock() - self._looked
        if since_s >= _LOOK_EVERY_S or (since_s >= _LOOK_LEAST_S and self._hooks.is_look_due()):
            self._looked = self._clock()
            with suppress(InputError):  # optional: it saves calls, and is repeated later
                await self._hooks.look()

    async def _write_records(self) -> None:
        if self._clock() - self._noted >= _NOTE_EVERY_S:
            self._noted = self._clock()
            for record in self._records:
                await asyncio.to_thread(record.write)

    async def _write_all(self) -> None:
        """Write all answers to the ledger, with retries while `patience_s` lasts."""
        began = self._clock() if self._failing_since is None else self._failing_since
        while self._writer.unwritten and self._clock() - began < self._ledger.patience_s:
            with suppress(InputError):
                await asyncio.to_thread(self._writer.flush)
                break
            with suppress(InputError):
                await self._beat()
            await asyncio.sleep(_TICK_S)
        try:
            await asyncio.to_thread(self._writer.close)
        except InputError as error:
            lost = f"{self._writer.unwritten:,} answers that were paid for could not be stored"
            raise InputError(f"{error.problem}; {lost}", path=error.path) from error
        finally:
            for record in self._records:
                await asyncio.to_thread(record.write, at_once=True)


def _held_by(lease: Lease, holder: Holder, advice: str) -> str:
    return f"{lease.name}: {holder} makes calls with the same ledger; {advice}"
