"""The batch jobs of a run: from waiting calls to answers in the ledger.

If the process is killed at any moment, no job is lost or paid for twice: a part is written before its job is created,
the job has the part's name, and its record is closed after its answers are in the ledger.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.ledger_session import LedgerSession, SessionHooks
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock, is_set_within
from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, LedgerEntry, LedgerWriter
from rankbeam.transforms.clients.ledger import waiting as stored
from rankbeam.transforms.clients.ledger.rows import BATCH
from rankbeam.transforms.clients.ledger.waiting import BatchFolder, BatchJobRecord, PendingCall, PendingCalls
from rankbeam.transforms.clients.models.batches.jobs import FIRST_POLL_S, LONGEST_POLL_S, JobAnswers, JobRun, unreadable
from rankbeam.transforms.clients.models.batches.service import (
    MOST_CALLS,
    BatchedService,
    BatchService,
    ServiceJob,
    parts_of,
)
from rankbeam.transforms.clients.models.model_connection import RequestPart
from rankbeam.transforms.records.calls.steps import CallUsage, sum_by_position
from rankbeam.transforms.records.errors import CallError, pluralize

_COMPLETE_S = 600.0  # time after which files have all answers, even if the service counts more
_NOT_ANSWERED = "no batch job answered it (otherwise: fail)"
_logger = logging.getLogger(__name__)


class _JobRecorder:
    """Records the answers, and the usage, of one service's jobs for a stage."""

    def __init__(self, ledger: Ledger, writer: LedgerWriter, service: BatchedService, stage: str, clock: Clock) -> None:
        self._writer, self._service, self._stage, self._clock = writer, service, stage, clock
        self._usages: tuple[CallUsage, ...] = ()
        self._stored: tuple[CallUsage, ...] = ()
        self._calls = self._answered = 0
        self.use = ledger.record(service.pool, 0, self._counts, clock)

    def record(self, matched: JobAnswers, calls: Sequence[PendingCall]) -> None:
        """Write answers, then their usage: after a kill, usage may be written twice, but no call is made twice."""
        now, name = self._clock.now(), self._service.name
        for key, reply in matched.replies.items():
            self._writer.add(LedgerEntry(key, None, reply.answer, 1, 0.0, now, reply.tokens, name, BATCH))
        self._writer.flush()
        self.add(matched, calls)
        self.use.write(at_once=True)

    def add(self, matched: JobAnswers, calls: Iterable[PendingCall]) -> None:
        used = [(call, position) for call in calls for position in (None, *call.positions)]
        usages = (
            CallUsage(position, 1, int(position is not None and len(call.positions) > 1), matched.tokens[call.key])
            for call, position in used
            if call.key in matched.tokens
        )
        stored = (
            CallUsage(position, 1, tokens=matched.replies[call.key].tokens, hits=1)
            for call, position in used
            if call.key in matched.replies
        )
        self._usages = sum_by_position([*self._usages, *usages])
        self._stored = sum_by_position([*self._stored, *stored])
        self._calls += len(matched.tokens)
        self._answered += len(matched.replies)

    def _counts(self) -> LaneCounts:
        usages, answers = (
            tuple((self._stage, self._service.parameters.model, item) for item in items)
            for items in (self._usages, self._stored)
        )
        return LaneCounts(0, self._calls, self._answered, usages, stage=self._stage, stored=answers)


@dataclass
class _Queue:
    """The queue of a service's jobs, which may be full, or shorter than a job."""

    most_calls: int = MOST_CALLS  # of a job
    refused_calls: int = 0  # calls of a job that did not fit since one did
    full_since: float | None = None

    def shorten(self, least_calls: int) -> int:
        """The most calls of the next jobs: half as many if none fitted."""
        if self.refused_calls:
            self.most_calls, self.refused_calls = max(least_calls, self.refused_calls // 2), 0
        return self.most_calls


class BatchJobs:
    """Creates the batch jobs of a run, waits for them, and records their answers."""

    def __init__(self, ledger: Ledger, services: Iterable[BatchedService], clock: Clock = SYSTEM_CLOCK) -> None:
        self._ledger, self._clock = ledger, clock
        self._services = {service.name: service for service in services}
        self._folder = BatchFolder(ledger.folder)
        self._stopped = asyncio.Event()
        self._in_memory = asyncio.Lock()  # for one job's calls and answers at a time
        self._ended_parts: set[str] = set()
        self._queues: defaultdict[str, _Queue] = defaultdict(_Queue)  # by service
        self._refused_parts: dict[str, frozenset[RequestPart]] = {}  # parts of requests, by service
        self.warnings: list[str] = []

    def open(self) -> list[BatchJobRecord]:
        """Jobs of earlier runs with uncollected answers that this run's services can collect."""
        return [record for record in self._folder.records() if record.is_open and self._service(record) is not None]

    def planned(self, pending: PendingCalls, left: float) -> tuple[list[BatchJobRecord], dict[str, str]]:
        """Write calls to parts of jobs while money is left; returns their records, and decisions on other calls."""
        records: list[BatchJobRecord] = []
        others: list[str] = []

        def affordable(calls: Iterable[PendingCall], service: BatchedService) -> Iterator[PendingCall]:
            """The calls that the budget allows; each reserves the most that it may cost."""
            nonlocal left
            for call in calls:
                if (cost := service.most_cost(call)) <= left:
                    left -= cost
                    yield call
                else:
                    others.append(call.key)

        for name, number, calls in pending.steps():
            service = self._services[name]
            if number >= service.settings.min_calls:
                most_calls = self._queues[name].shorten(service.settings.min_calls)
                for part in parts_of(affordable(calls, service), most_calls):
                    if (hashed := stored.hash_of(part)) in self._ended_parts:  # its job did not answer them
                        others += [call.key for call in part]
                    else:
                        records.append(self._save_part(service, hashed, part))
            others += [call.key for call in calls]
        return records, dict.fromkeys(others, "")

    def run(self, records: Sequence[BatchJobRecord], *, waits: bool = True) -> dict[str, str]:
        """Run jobs to their ends, or collect only ended ones; returns decisions on their calls."""
        if not records:
            return {}
        return asyncio.run_coroutine_threadsafe(self._run_jobs(records, waits), self._clock.loop()).result()

    def _save_part(self, service: BatchedService, name: str, part: Sequence[PendingCall]) -> BatchJobRecord:
        first = part[0]
        self._folder.save_part(name, part)
        known = self._folder.record(name)
        if known is not None and known.is_open:  # another run waits for it
            return known
        record = BatchJobRecord(
            hash=name,
            service=service.name,
            kind=service.kind,
            parameters=service.parameters.model_dump(mode="json", exclude_defaults=True),
            stage=first.stage,
            step=first.step,
            calls=len(part),
            created=self._clock.now().isoformat(timespec="seconds"),
            ended=() if known is None else known.ended,
        )
        self._folder.save(record)
        message = "batch: %s calls of %s (%s) are made by job %s"
        _logger.info(message, f"{len(part):,}", service.name, first.step, record.name)
        return record

    def _service(self, record: BatchJobRecord) -> BatchedService | None:
        """The service of a job, which may have another name in this experiment."""
        for service in self._services.values():
            own = type(service.parameters)
            if service.kind == record.kind and service.identity == own(**record.parameters).identity(record.kind):
                return service
        return None

    async def _run_jobs(self, records: Sequence[BatchJobRecord], waits: bool) -> dict[str, str]:
        jobs = [(record, service) for record in records if (service := self._service(record)) is not None]
        services = {service.name: service for _, service in jobs}
        lanes = {service.account: service.quota.lanes for service in services.values()}
        names = [f"quota pool {account}, lane {lane}" for account in lanes for lane in range(lanes[account])]
        leases = [self._ledger.lease(name, self._clock) for name in names]
        writer, recordings = self._ledger.writer(clock=self._clock), dict[tuple[str, str], _JobRecorder]()
        for record, service in jobs:
            if (key := (service.name, record.stage)) not in recordings:
                recordings[key] = _JobRecorder(self._ledger, writer, service, record.stage, self._clock)
        uses = [recording.use for recording in recordings.values()]
        hooks = SessionHooks(_go_on, self._stopped.set, self._pause)
        async with LedgerSession(self._ledger, leases, writer, uses, hooks, self._clock.monotonic):
            connections: dict[str, BatchService] = {}
            try:
                for name, service in services.items():
                    connections[name] = await service.connect()
                    connections[name].connection.refusals.parts |= self._refused_parts.get(name, frozenset())
                works = []
                for record, service in jobs:
                    if (current := self._folder.current(record.hash)) is not None:
                        run = JobRun(service, connections[service.name], self._folder, self._pause, self._clock, waits)
                        works.append(self._run_job(current, run, recordings[service.name, record.stage]))
                return {key: reason for decisions in await _run_all(works) for key, reason in decisions.items()}
            finally:
                for name, jobs_connection in connections.items():
                    connection = jobs_connection.connection
                    self._refused_parts[name] = connection.refusals.parts
                    self.warnings += [warning for warning in connection.warnings if warning not in self.warnings]
                    await connection.close()

    async def _run_job(self, record: BatchJobRecord, run: JobRun, recording: _JobRecorder) -> dict[str, str]:
        """Run a job to its end and record its answers; returns decisions on its calls."""
        service = run.service
        record = await run.create(record, partial(self._unanswered, record.hash), self._in_memory)
        if record.job is None and record.is_open:
            if not run.waits:
                return {}
            # Another run has answers to some of its calls, or the ledger has answers that no step can read.
            known = self._answered(self._folder.calls(record.hash))
            self._folder.save(record.closed(stored.GIVEN_UP))
            self._folder.delete_part(record.hash)
            return dict.fromkeys(known, "")
        job = None if record.job is None else await run.ended(record)
        if job is None and not run.waits:
            return {}
        reads = 0
        while True:
            async with self._in_memory:
                calls = self._folder.calls(record.hash)
                matched = await self._match_answers(run, record, job, calls)
                problem = matched.message if isinstance(matched, CallError) else self._lack(record, job, matched)
                if isinstance(matched, JobAnswers) and not problem:
                    pause_s = self._make_room(service, job, matched)
                    await asyncio.to_thread(recording.record, matched, calls)
                    state = stored.GIVEN_UP if job is None or job.is_over_limit else stored.COLLECTED
                    self._folder.save(matched.closed(record, state))
                    self._folder.delete_part(record.hash)
                    break
            _logger.info("batch: the answers of %s cannot be read so far: %s", record.name, problem)
            if isinstance(matched, JobAnswers) and job is not None and not record.unread_since:
                now = self._clock.now().isoformat(timespec="seconds")
                record = replace(record, state=job.state, unread_since=now)
                self._folder.save(record)
            if not run.waits:
                return {}
            reads += 1
            await self._pause(min(reads * FIRST_POLL_S, LONGEST_POLL_S))  # other jobs go on
            job = await run.ended(record)  # its files may be other ones now
        if not matched.again:
            self._ended_parts.add(record.hash)
        self._report(record, service, job, matched)
        if pause_s and run.waits:
            await self._pause(pause_s)
        decisions = {key: "" for key in matched.calls if key not in matched.replies and key not in matched.again}
        fails = service.settings.otherwise == "fail"
        return {**decisions, **(dict.fromkeys(matched.unanswered, _NOT_ANSWERED) if fails else {})}

    def _unanswered(self, part: str) -> Sequence[PendingCall]:
        """The calls of a part; none if the ledger has answers to some of them."""
        calls = self._folder.calls(part)
        return () if self._answered(calls) else calls

    def _answered(self, calls: Iterable[PendingCall]) -> list[str]:
        return [entry.key for entry in self._ledger.find({call.key: None for call in calls})]

    def _make_room(self, service: BatchedService, job: ServiceJob | None, matched: JobAnswers) -> float:
        """Leave calls of a job that was over the service's limit to smaller or later jobs; returns the time to wait."""
        queue, now = self._queues[service.name], self._clock.monotonic()
        if job is None or not job.is_over_limit:
            queue.refused_calls, queue.full_since = 0, None
            return 0.0
        queue.full_since = now if queue.full_since is None else queue.full_since
        waited_s = now - queue.full_since
        if (left_s := service.settings.deadline_s - waited_s) > 0:
            queue.refused_calls = len(matched.calls)
            matched.leave_to_another_job()
        return min(max(LONGEST_POLL_S, waited_s), max(0.0, left_s))

    async def _match_answers(
        self, run: JobRun, record: BatchJobRecord, job: ServiceJob | None, calls: Sequence[PendingCall]
    ) -> JobAnswers | CallError:
        """The answers of a job, or the error that ended this attempt to read them."""
        try:
            return await run.match_answers(job, calls)
        except CallError as error:
            if not error.kind.is_transient:
                raise unreadable(record, error) from None
            return error

    def _lack(self, record: BatchJobRecord, job: ServiceJob | None, matched: JobAnswers) -> str:
        """The answers that a job's files lack, as a message; "" if the files are taken as they are."""
        lacked_s = 0.0
        if record.unread_since:
            lacked_s = (self._clock.now() - datetime.fromisoformat(record.unread_since)).total_seconds()
        if job is None or matched.rows >= job.answers or lacked_s >= _COMPLETE_S:
            return ""
        counts = f"its files have {matched.rows:,} of the {pluralize(job.answers, 'answer')} that the service counts"
        return f"{counts}; after {_COMPLETE_S / 60:.0f} minutes, they are taken as they are"

    def _report(
        self, record: BatchJobRecord, service: BatchedService, job: ServiceJob | None, matched: JobAnswers
    ) -> None:
        state = job.state if job is not None else "not made" if record.job is None else "given up"
        another = f"; another job makes {len(matched.again):,} of them" if matched.again else ""
        message = "batch: %s of %s (%s): %s; %s of %s calls are answered, with %s input and %s output tokens%s"
        counts = map("{:,}".format, (len(matched.replies), record.calls, matched.usage.input, matched.usage.output))
        _logger.info(message, record.name, service.name, record.step, state, *counts, another)
        about, reasons = f"batch job {record.name} of {service.name}, {record.step}", ", ".join(matched.summary())
        if matched.is_mixed_up:
            mixed = "too many of its answers belong to other requests, so none is used"
            self.warnings.append(f"{about}: {mixed} ({reasons}); its calls are made online")
        elif matched.refused:
            treatment = "fail" if service.settings.otherwise == "fail" else "are called online"
            unanswered = f"; calls without an answer {treatment}" if matched.unanswered else ""
            self.warnings.append(f"{about}: {reasons}{unanswered}")
        if matched.unproved:
            by_key = "answers were matched by the service's key alone (batch.answers)"
            self.warnings.append(f"{about}: {matched.unproved:,} {by_key}")

    async def _pause(self, seconds: float) -> None:
        if await is_set_within(self._stopped, seconds):
            raise LaneStopped


async def _run_all(works: Sequence[Coroutine[Any, Any, dict[str, str]]]) -> list[dict[str, str]]:
    """Run works concurrently; the first error ends all of them."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _go_on() -> bool:
    return True
