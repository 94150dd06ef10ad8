"""One batch job at its service: find or create it, wait for it, and match its answers to their calls.

job of its name at the service? ─┬─ yes ─► poll ─► ended, or cancelled after its deadline ─► answers
             ▲                   └─ no ──► create ─┬─► poll
             └──── the reply was lost, or a limit ─┘
"""

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.clients.ledger.waiting import GIVEN_UP, BatchFolder, BatchJobRecord, PendingCall
from rankbeam.transforms.clients.models.base import Completion, Stored, prompt_of, read_answer
from rankbeam.transforms.clients.models.batches.service import (
    BatchedService,
    BatchRow,
    BatchService,
    KeyedLine,
    ServiceJob,
    object_in,
    spool_lines,
)
from rankbeam.transforms.clients.models.model_connection import ModelAttempts, ModelRequest, RequestPart
from rankbeam.transforms.clients.models.remote import ITEM, RemoteModel, can_prove, with_item
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_MOST_WRONG = 0.005  # share of a job's calls
_DIGITS = 8
_SHOWN = 200


class RefusalReason(StrEnum):
    """The reason why an answer is not used."""

    WRONG = "another request's answer"
    FOREIGN = "no request of this job"
    DUPLICATE = "several answers to one request"
    FAILED = "the request failed"
    UNUSABLE = "the answer cannot be used"
    UNREADABLE = "a row that cannot be read"
    MISSING = "no answer"


def batch_request(payload: str, parameters: RemoteModel) -> tuple[ModelRequest, Prompt, str | None]:
    """A call as a batch job makes it, and the item that its answer must repeat; None if the answer has no fields."""
    prompt = prompt_of(payload)
    request = ModelAttempts().ask(payload, parameters.sampled(prompt), 1)
    if not can_prove(prompt):
        return request, prompt, None
    texts = request.texts
    item = hashlib.sha256(f"{texts.system}\0{texts.user}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    marked = replace(request, texts=replace(texts, user=f"{texts.user}\n\n{ITEM}: {item}"))
    return marked, replace(prompt, schema=with_item(prompt.schema or {})), item


@dataclass
class JobAnswers:
    """The answers of a job: usable ones by key, and counts of the others by reason."""

    calls: Mapping[str, str]
    parameters: RemoteModel
    replies: dict[str, Reply] = field(default_factory=dict)
    refused: Counter[RefusalReason] = field(default_factory=Counter)
    tokens: dict[str, Tokens] = field(default_factory=dict)  # of all answers with a key, recorded or not
    rows: int = 0  # with a key
    unproved: int = 0  # answers that only their key matches to their call
    again: set[str] = field(default_factory=set)  # calls that another job makes
    failed: set[str] = field(default_factory=set)  # calls whose requests failed
    problem: str = ""  # the service's message about the first request that failed
    _learned: frozenset[RequestPart] = frozenset()  # parts of this job's requests that the service refuses
    _seen: Counter[str] = field(default_factory=Counter)

    def add(self, row: BatchRow, service: BatchService) -> None:
        if row.key is None:
            self.refused[RefusalReason.UNREADABLE] += 1
            return
        self.rows += 1
        if row.key not in self.calls:
            self.refused[RefusalReason.FOREIGN] += 1
            return
        self._seen[row.key] += 1
        reason = self._failed(row.key, row, service) if row.body is None else self._read_row(row.key, row, service)
        if self._seen[row.key] > 1:
            self.refused[RefusalReason.DUPLICATE] += 1 + (self.replies.pop(row.key, None) is not None)
        elif reason is not None:
            self.refused[reason] += 1

    def end(self) -> None:
        """Count missing answers; use no answer at all if too many belong to other requests."""
        self.refused[RefusalReason.MISSING] += len(self.calls) - len(self._seen)
        self.refused = +self.refused
        if self.is_mixed_up:
            self.replies.clear()

    def leave_to_another_job(self) -> None:
        self.again.update(self.calls)
        self.refused.clear()

    @property
    def is_mixed_up(self) -> bool:
        """True if too many answers belong to other requests for any of them to be used."""
        return self.refused[RefusalReason.WRONG] + self.refused[RefusalReason.FOREIGN] > _MOST_WRONG * len(self.calls)

    @property
    def unanswered(self) -> list[str]:
        """The keys of calls that failed, or have no row in the output, and that no other job makes."""
        others = self._seen.keys() | self.again
        return [key for key in self.calls if key in self.failed or key not in others]

    @property
    def usage(self) -> Tokens:
        return sum(self.tokens.values(), NO_TOKENS)

    def closed(self, record: BatchJobRecord, state: str) -> BatchJobRecord:
        refused = {str(reason): number for reason, number in self.refused.items()}
        closed = replace(record.closed(state), answered=len(self.replies), refused=refused)
        return replace(closed, input_tokens=self.usage.input, output_tokens=self.usage.output)

    def summary(self) -> Iterator[str]:
        for reason, number in sorted(self.refused.items()):
            cause = f" ({self.problem})" if reason is RefusalReason.FAILED and self.problem else ""
            yield f"{number:,} × {reason}{cause}"

    def _failed(self, key: str, row: BatchRow, service: BatchService) -> RefusalReason | None:
        """Note a failed request; if the service refused a part of it, another job makes the call without that part."""
        request, prompt, _ = batch_request(self.calls[key], self.parameters)
        refusals, known = service.connection.refusals, service.connection.refusals.parts
        if refusals.learn(row.problem, service.connection.parts(request, prompt) | self._learned):
            self._learned |= refusals.parts - known
            self.again.add(key)
            return None
        self.failed.add(key)
        self.problem = self.problem or row.problem[:_SHOWN]
        return RefusalReason.FAILED

    def _read_row(self, key: str, row: BatchRow, service: BatchService) -> RefusalReason | None:
        """Read an answer; returns the reason why it cannot be used, or None."""
        request, prompt, item = batch_request(self.calls[key], self.parameters)
        try:
            reply = service.reply(row.body or {}, request, prompt)
            self._charge(key, reply.tokens)
            content = read_answer(reply.answer)
        except CallError as error:
            self._charge(key, error.tokens)
            return RefusalReason.UNUSABLE
        text = content.text if isinstance(content, Completion) else None
        if item is not None:
            answer = object_in((text or "").encode("utf-8", "replace"))
            if answer is None or ITEM not in answer:
                return RefusalReason.UNUSABLE
            if answer.pop(ITEM) != item:
                return RefusalReason.WRONG
            text = json.dumps(answer, ensure_ascii=False)
            if not _is_readable(prompt, text):
                return RefusalReason.UNUSABLE
            assert isinstance(content, Completion)  # noqa: S101  an embedding has no item
            reply = Reply(Stored(text, model_version=content.model_version).written(), reply.tokens)
        if self._seen[key] == 1:
            self.unproved += item is None
            self.replies[key] = replace(reply, tokens=reply.tokens.in_batch())
        return None

    def _charge(self, key: str, tokens: Tokens) -> None:
        if tokens.is_possible:
            self.tokens[key] = self.tokens.get(key, NO_TOKENS) + tokens.in_batch()


def _is_readable(prompt: Prompt, text: str) -> bool:
    """Return whether the prompt's step can read an answer: ids, verdicts and quotes belong to the prompt."""
    if (step := step_of(prompt.step)) is None:
        return True
    try:
        step.read(prompt.values, text)
    except CallError:
        return False
    return True


FIRST_POLL_S, LONGEST_POLL_S = 60.0, 600.0
_ENDING_S = 3600.0  # time for a cancelled job to end
_REFUSALS = (FailureKind.PERMISSION, FailureKind.NOT_FOUND, FailureKind.INVALID)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobRun:
    """Runs one job to its end; if `waits` is False, does only what can be done at once."""

    service: BatchedService
    connection: BatchService
    folder: BatchFolder
    pause: Callable[[float], Awaitable[None]]
    clock: Clock
    waits: bool = True

    async def create(
        self, record: BatchJobRecord, calls: Callable[[], Sequence[PendingCall]], in_memory: asyncio.Lock
    ) -> BatchJobRecord:
        """Create the job, unless the service has it or no call is left; returns the record with the job's id."""
        pause_s = FIRST_POLL_S
        if record.job is None:  # the part may be that of an earlier run
            record = replace(record, created=self.clock.now().isoformat(timespec="seconds"))
        while record.job is None:
            try:
                if (job := await existing_job(self.connection, record)) is None:
                    if not self.waits:
                        return record
                    async with in_memory:
                        if not (part := await asyncio.to_thread(calls)):
                            return record
                        job = await self._create(record, part)
                record = self._save(replace(record, job=job, state="made"))
            except CallError as error:
                if error.kind in _REFUSALS or error.stops_pool:
                    raise _refusal(record, error) from None
                if self._seconds_left(record) <= 0 or not self.waits:
                    return self._save(replace(record, state=GIVEN_UP)) if self.waits else record
                _logger.info("batch: %s could not be made so far: %s", record.name, error.message)
                await self.pause(min(max(pause_s, error.retry_after_s or 0.0), LONGEST_POLL_S))
                pause_s = min(2 * pause_s, LONGEST_POLL_S)
        return record

    async def ended(self, record: BatchJobRecord) -> ServiceJob | None:
        """Wait until the job has ended; None if it is not waited for, or has not ended long after its deadline."""
        pause_s, cancelled = FIRST_POLL_S, False
        most_late_s = _ENDING_S - min(self._seconds_left(record), 0.0)
        while (job := await self._state(record)) is None or not job.has_ended:
            if not self.waits or self._seconds_left(record) <= -most_late_s:
                return None
            if self._seconds_left(record) <= 0 and not cancelled:
                cancelled = await self._try_cancel(record)
            left_s = self._seconds_left(record)
            await self.pause(min(pause_s, left_s) if left_s > 0 else pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)
        if job.message:
            _logger.warning("batch: %s: %s: %s", record.name, job.state, job.message)
        return job

    async def match_answers(self, job: ServiceJob | None, calls: Sequence[PendingCall]) -> JobAnswers:
        """The answers of a job; raises a CallError if they cannot be read now."""
        matched = JobAnswers({call.key: call.payload for call in calls}, self.service.parameters)
        if job is not None:
            async for row in self.connection.rows(job, partial(self._lines, calls)):
                matched.add(row, self.connection)
        matched.end()
        return matched

    async def _create(self, record: BatchJobRecord, calls: Sequence[PendingCall]) -> str:
        with spool_lines(line for _, line in self._lines(calls)) as file:
            return await self.connection.create(record.name, file, record.step)

    def _lines(self, calls: Sequence[PendingCall]) -> Iterator[KeyedLine]:
        for call in calls:
            request, prompt, _ = batch_request(call.payload, self.service.parameters)
            yield call.key, self.connection.line(call.key, request, prompt)

    async def _state(self, record: BatchJobRecord) -> ServiceJob | None:
        """The job as the service describes it; None if the service cannot be reached now."""
        try:
            job = await self.connection.job(record.job or "")
        except CallError as error:
            if error.kind is FailureKind.NOT_FOUND:
                raise _gone(record, error) from None
            if error.kind in _REFUSALS:
                raise _refusal(record, error) from None
            return None
        if job.state != record.state:
            self.folder.save(replace(record, state=job.state))
        return job

    async def _try_cancel(self, record: BatchJobRecord) -> bool:
        _logger.warning("batch: %s has not ended within its deadline; it is cancelled", record.name)
        try:
            await self.connection.cancel(record.job or "")
        except CallError:
            return False
        return True

    def _seconds_left(self, record: BatchJobRecord) -> float:
        """Seconds from now until the deadline, which counts from writing the part."""
        since = self.clock.now() - datetime.fromisoformat(record.created)
        return self.service.settings.deadline_s - since.total_seconds()

    def _save(self, record: BatchJobRecord) -> BatchJobRecord:
        self.folder.save(record)
        return record


async def existing_job(service: BatchService, record: BatchJobRecord) -> str | None:
    """The id of the job that the service has for a part; None if it has none that may still be of use."""
    for job in await service.find(record.name):
        if job.id not in record.ended and await may_answer(service, job):
            return job.id
    return None


async def may_answer(service: BatchService, job: ServiceJob) -> bool:
    """Return whether a job has rows, or may still have some."""
    if not job.has_ended:
        return True
    try:
        async for _ in service.rows(job, lambda: iter(())):
            return True
    except CallError as error:
        if error.kind is not FailureKind.NOT_FOUND:
            raise
    return False


def _refusal(record: BatchJobRecord, error: CallError) -> InputError:
    advice = "correct the service or its account, or take its batch: out"
    return InputError(f"{record.service}: the service refuses batch job {record.name}: {error.message}; {advice}")


def unreadable(record: BatchJobRecord, error: CallError) -> InputError:
    """The error of a job whose answers will never be read, or not with this key."""
    problem = f"{record.service}: the answers of batch job {record.name} cannot be read: {error.message}"
    if error.kind is FailureKind.NOT_FOUND:
        forget = f"`rankbeam batch cancel OUT {record.name}` forgets it, and the next run makes its calls again"
        return InputError(f"{problem}; {forget}")
    return InputError(f"{problem}; correct the service or its key, and the next run collects them")


def _gone(record: BatchJobRecord, error: CallError) -> InputError:
    problem = f"{record.service}: batch job {record.name} ({record.job}) is gone at the service: {error.message}"
    restore = "if the service or the account has changed, use the former one, and the next run collects the answers"
    advice = f"otherwise `rankbeam batch cancel OUT {record.name}` forgets it, and the next run makes its calls again"
    return InputError(f"{problem}; {restore}; {advice}")
