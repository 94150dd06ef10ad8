"""The driver of tasks: collects the calls of their generators and sends back the outcomes, without quota or ledger."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedError
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask, Steps, Subject, Task, Work
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind, RankbeamError
from rankbeam.transforms.records.reply import Reply

Outcome = CallAnswer | FailedTask
Emit = Callable[[Outcome, int], None]  # takes the outcome of a task, and its approximate bytes in memory

_BYTES_OF_A_TASK, _BYTES_OF_A_CALL = 1200, 800  # without texts and payloads; measured
_GROWTH = 5  # how much larger a task is at its largest step than at its first one, until a task has ended


class BatchPending(CallError):
    """The outcome of a call that waits for a batch job."""

    def __init__(self) -> None:
        super().__init__(FailureKind.UNAVAILABLE, "waits for a batch job", 0)


@dataclass(eq=False)
class OpenTask:
    """A task between its first call and its value."""

    task: Task
    work: Work[Any]
    steps: Steps[Any]
    outcomes: list[Any] = field(default_factory=list)
    missing: int = 0
    bytes_of_task: int = 0  # serialized
    bytes: int = 0
    step: int = 0  # from 1
    first_bytes: int = 0  # at its first step
    most_bytes: int = 0  # at its largest step so far


@dataclass(eq=False)
class OpenCall:
    """A requested call, made once no matter how many tasks request it."""

    call: Call
    requested_by: list[tuple[OpenTask, int]]
    named_positions: frozenset[int] | None = None  # positions that the calls name; None if they name none

    def positions(self) -> frozenset[int]:
        """Positions of the sources or configurations that need the call: those it names, else those of its tasks."""
        if self.named_positions is not None:
            return self.named_positions
        return positions_of(subject for open_task, _ in self.requested_by for subject in open_task.task.subjects)

    def read(self, reply: Reply, skip: int = 0) -> list[Any]:
        """The reply as read by each task: a value, or the CallError that its work's `read` raised."""
        return [_read_reply(open_task.work, self.call, reply) for open_task, _ in self.requested_by[skip:]]

    def parts_of(self, reply: Reply, outcomes: Sequence[Any]) -> Iterable[tuple["OpenCall", Reply, Sequence[Any]]]:
        """The calls of the request, with their replies and outcomes; just this call if it is made alone."""
        return [(self, reply, outcomes)]


def positions_of(subjects: Iterable[Subject]) -> frozenset[int]:
    return frozenset(position for subject in subjects for position in subject.positions)


class Driver:
    """Drives tasks: starts their generators, joins equal calls, delivers outcomes."""

    def __init__(self, stage: str, works: Mapping[str, Work[Any]], ask: Callable[[OpenCall], None], emit: Emit) -> None:
        self._stage, self._works, self._ask, self._emit = stage, works, ask, emit
        self._open_calls: dict[str, OpenCall] = {}
        self._new_calls: list[OpenCall] = []
        self.open = self.held_bytes = self._at_first_step = 0
        self._ended_first = self._ended_most = 0  # bytes of tasks that have ended

    @property
    def expected_bytes(self) -> float:
        """The bytes of open tasks once those at their first step have grown as earlier tasks did."""
        growth = self._ended_most / self._ended_first if self._ended_first else _GROWTH
        return self.held_bytes + self._at_first_step * (growth - 1)

    def start(self, tasks: Sequence[Task], size: int) -> int:
        """Start tasks, and return their number; equal calls of their first steps are made once."""
        for task in tasks:
            work = self._works[task.work]
            open_task = OpenTask(task, work, work.steps(task.item), bytes_of_task=size // len(tasks))
            self.open += 1
            self._advance(open_task, None)
        self._ask_new()
        return len(tasks)

    def settle(self, open_call: OpenCall, outcomes: Sequence[Any], reply: Reply | None = None) -> None:
        """Deliver the outcomes of a call; errors get the attempts and the tokens of the reply, if any."""
        key = open_call.call.key
        if key is not None and self._open_calls.get(key) is open_call:
            del self._open_calls[key]
        for (open_task, position), outcome in zip(open_call.requested_by, outcomes, strict=True):
            if reply is not None and isinstance(outcome, CallError):
                outcome = CallError(outcome.kind, outcome.message, reply.attempts, tokens=reply.tokens)
            open_task.outcomes[position] = outcome
            open_task.missing -= 1
            if not open_task.missing:
                self._continue(open_task)
        self._ask_new()

    def _continue(self, open_task: OpenTask) -> None:
        """Advance a task whose calls have ended; a task that waits for a batch job ends here."""
        waiting = next((outcome for outcome in open_task.outcomes if isinstance(outcome, BatchPending)), None)
        if waiting is None:
            self._advance(open_task, open_task.outcomes)
            return
        open_task.steps.close()
        self._leave_step(open_task)
        self._end(open_task)
        self._fail(open_task.task, waiting)

    def _advance(self, open_task: OpenTask, sent: Sequence[Any] | None) -> None:
        """Send a generator its outcomes, until it requests further calls or ends."""
        self._leave_step(open_task)
        # A value may refer to all texts of the last step.
        in_memory = max(_BYTES_OF_A_TASK + open_task.bytes_of_task, open_task.bytes)
        try:
            calls = next(open_task.steps) if sent is None else open_task.steps.send(sent)
            while not calls:
                calls = open_task.steps.send(())
        except StopIteration as end:
            self._end(open_task)
            task = open_task.task
            self._emit(CallAnswer(task.work, task.name, task.subjects, end.value), in_memory)
        except CallError as error:
            self._end(open_task)
            self._fail(open_task.task, error)
        else:
            open_task.outcomes, open_task.missing = [None] * len(calls), len(calls)
            # One wide character anywhere, for example in a template, makes every other one take two or four bytes.
            payloads = sum(sys.getsizeof(call.payload) for call in calls)
            texts = max(open_task.bytes_of_task, payloads)  # their sources: from the item, or read by the generator
            open_task.bytes = _BYTES_OF_A_TASK + texts + payloads + _BYTES_OF_A_CALL * len(calls)
            self.held_bytes += open_task.bytes
            open_task.most_bytes = max(open_task.most_bytes, open_task.bytes)
            open_task.step += 1
            if open_task.step == 1:
                open_task.first_bytes = open_task.bytes
                self._at_first_step += open_task.bytes
            for position, call in enumerate(calls):
                self._request(call, open_task, position)

    def _leave_step(self, open_task: OpenTask) -> None:
        self.held_bytes -= open_task.bytes
        if open_task.step == 1:
            self._at_first_step -= open_task.bytes

    def _end(self, open_task: OpenTask) -> None:
        self.open -= 1
        self._ended_first += open_task.first_bytes
        self._ended_most += open_task.most_bytes

    def _request(self, call: Call, open_task: OpenTask, position: int) -> None:
        open_call = None if call.key is None else self._open_calls.get(call.key)
        if open_call is not None and _serves(open_call.call, call):
            open_call.requested_by.append((open_task, position))
            if call.positions is not None:
                open_call.named_positions = (open_call.named_positions or frozenset()) | call.positions
            return
        open_call = OpenCall(call, [(open_task, position)], call.positions)
        if call.key is not None:
            self._open_calls[call.key] = open_call
        self._new_calls.append(open_call)

    def _ask_new(self) -> None:
        while self._new_calls:
            open_calls, self._new_calls = self._new_calls, []
            for open_call in open_calls:
                self._ask(open_call)

    def _fail(self, task: Task, error: CallError) -> None:
        for subject in task.subjects:
            failure = Failure(
                self._stage, error.kind, subject.query_id, error.attempts, error.message, tokens=error.tokens
            )
            self._emit(FailedTask(task.work, subject, failure), _BYTES_OF_A_TASK)


def _serves(call: Call, needed: Call) -> bool:
    """Return whether the answer to a call also answers another call of the same key."""
    if call.depth is None or needed.depth is None:
        return call.depth == needed.depth
    return call.depth.covers(needed.depth)


def _read_reply(work: Work[Any], call: Call, reply: Reply) -> Any:
    try:
        return work.read(call, reply)
    except CallError as error:
        return error
    except RankbeamError:
        raise
    except Exception as error:
        return UnexpectedError(error)
