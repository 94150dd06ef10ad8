"""One batch job at its service: found or made, waited for, and its answers matched to their calls.

job of its name at the service? ─┬─ yes ─► poll ─► ended, or cancelled after its deadline ─► answers
             ▲                   └─ no ──► create ─┬─► poll
             └──── the reply was lost, or a limit ─┘
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.clients.ledger.batches import GIVEN_UP, BatchJobRecord
from rankbeam.transforms.clients.ledger.waiting import PendingCall
from rankbeam.transforms.clients.models.batches.matching import BatchRequest, Matched
from rankbeam.transforms.clients.models.batches.service import BatchService, KeyedLine, ServiceJob, spooled
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.failures import FailureKind

FIRST_POLL_S, LONGEST_POLL_S = 60.0, 600.0
_ENDING_S = 3600.0  # the time that a cancelled job has to end
_REFUSALS = (FailureKind.PERMISSION, FailureKind.NOT_FOUND, FailureKind.INVALID)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobRun:
    """Brings one job to its end.

    Attributes:
        service: the batch jobs of the service.
        parameters: parameters of the service.
        deadline_s: longest time from the part to its answers.
        save: writes the record of the job.
        pause: waits some seconds.
        clock: the time of day.
        waits: false to do only what can be done at once.
    """

    service: BatchService
    parameters: RemoteModel
    deadline_s: float
    save: Callable[[BatchJobRecord], None]
    pause: Callable[[float], Awaitable[None]]
    clock: Clock
    waits: bool = True

    async def create(
        self, record: BatchJobRecord, calls: Callable[[], Sequence[PendingCall]], in_memory: asyncio.Lock
    ) -> BatchJobRecord:
        """The record with the id of its job, which is made unless the service has it.

        Args:
            record: record of the part.
            calls: reads the calls of the part.
            in_memory: held while they are in memory.

        Raises:
            InputError: the service refuses batch jobs.
        """
        pause_s = FIRST_POLL_S
        while record.job is None:
            try:
                known = [job for job in await self.service.find(record.name) if job.id not in record.ended]
                if not known and not self.waits:
                    return record
                if known:
                    job = known[0].id
                else:
                    async with in_memory:
                        job = await self._create(record, calls())
                record = self._saved(replace(record, job=job, state="made"))
            except CallError as error:
                if error.kind in _REFUSALS:
                    raise _refusal(record, error) from None
                if self._seconds_left(record) <= 0 or not self.waits:
                    return self._saved(replace(record, state=GIVEN_UP)) if self.waits else record
                _logger.info("batch: %s could not be made so far: %s", record.name, error.message)
                await self.pause(max(pause_s, error.retry_after_s or 0.0))
                pause_s = min(2 * pause_s, LONGEST_POLL_S)
        return record

    async def ended(self, record: BatchJobRecord) -> ServiceJob | None:
        """The job once it has ended; None if it goes on and is not waited for, or is gone."""
        pause_s, cancelled = FIRST_POLL_S, False
        while (job := await self._state(record)) is None or not job.has_ended:
            if not self.waits or self._seconds_left(record) <= -_ENDING_S:
                return None
            if self._seconds_left(record) <= 0 and not cancelled:
                cancelled = await self._cancelled(record)
            left_s = self._seconds_left(record)
            await self.pause(min(pause_s, left_s) if left_s > 0 else pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)
        if job.message:
            _logger.warning("batch: %s: %s: %s", record.name, job.state, job.message)
        return job

    async def matched(self, job: ServiceJob | None, calls: Sequence[PendingCall]) -> Matched:
        """The answers of a job.

        Raises:
            CallError: they cannot be read now.
        """
        matched = Matched({call.key: call.payload for call in calls}, self.parameters)
        if job is not None:
            async for row in self.service.rows(job, partial(self._lines, calls)):
                matched.add(row, self.service)
        matched.end()
        return matched

    async def _create(self, record: BatchJobRecord, calls: Sequence[PendingCall]) -> str:
        with spooled(line for _, line in self._lines(calls)) as file:
            return await self.service.create(record.name, file, record.step)

    def _lines(self, calls: Sequence[PendingCall]) -> Iterator[KeyedLine]:
        for call in calls:
            marked = BatchRequest.of(call.payload, self.parameters)
            yield call.key, self.service.line(call.key, marked.request, marked.prompt)

    async def _state(self, record: BatchJobRecord) -> ServiceJob | None:
        """The job as the service describes it; None if it cannot be reached now."""
        try:
            job = await self.service.job(record.job or "")
        except CallError as error:
            if error.kind in _REFUSALS:
                raise _refusal(record, error) from None
            return None
        if job.state != record.state:
            self.save(replace(record, state=job.state))
        return job

    async def _cancelled(self, record: BatchJobRecord) -> bool:
        _logger.warning("batch: %s has not ended within its deadline; it is cancelled", record.name)
        try:
            await self.service.cancel(record.job or "")
        except CallError:
            return False
        return True

    def _seconds_left(self, record: BatchJobRecord) -> float:
        return self.deadline_s - (self.clock.now() - datetime.fromisoformat(record.created)).total_seconds()

    def _saved(self, record: BatchJobRecord) -> BatchJobRecord:
        self.save(record)
        return record


def _refusal(record: BatchJobRecord, error: CallError) -> InputError:
    advice = "correct the service, or take its batch: out"
    return InputError(f"{record.service}: the service refuses batch job {record.name}: {error.message}; {advice}")
