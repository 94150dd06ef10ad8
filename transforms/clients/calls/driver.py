"""The driver of tasks: collects the calls of their generators, and sends outcomes back, without quota or ledger."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.calls.unexpected import UnexpectedError
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask, Steps, Task, Work
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind, RankbeamError
from rankbeam.transforms.records.reply import Reply

Outcome = CallAnswer | FailedTask
Emit = Callable[[Outcome, int], None]
"""Takes the outcome of a task, and about how many bytes it holds."""

_BYTES_OF_A_TASK, _BYTES_OF_A_CALL = 1200, 800  # besides its texts, or its payload; measured


class Waiting(CallError):
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
    bytes_of_task: int = 0  # bytes of the task, as it travelled
    bytes: int = 0


@dataclass(eq=False)
class OpenCall:
    """A requested call, made once however many tasks request it."""

    call: Call
    requested_by: list[tuple[OpenTask, int]]
    named_positions: frozenset[int] | None = None  # configurations that these calls name; None if they name none

    def positions(self) -> frozenset[int]:
        """Positions of the sources or configurations that need the call: those it names, else those of its tasks."""
        if self.named_positions is not None:
            return self.named_positions
        subjects = (subject for opened, _ in self.requested_by for subject in opened.task.subjects)
        return frozenset(position for subject in subjects for position in subject.positions)

    def read(self, reply: Reply, skip: int = 0) -> list[Any]:
        """A reply as each of the tasks reads it: a value, or the CallError that its work's `read` raised."""
        return [_read(opened.work, self.call, reply) for opened, _ in self.requested_by[skip:]]

    def parts_of(self, reply: Reply, outcomes: Sequence[Any]) -> Iterable[tuple["OpenCall", Reply, Sequence[Any]]]:
        """The calls of the request, with their replies and outcomes: this one, where it is made alone."""
        return [(self, reply, outcomes)]


class Driver:
    """Drives tasks: starts their generators, joins equal calls, delivers outcomes."""

    def __init__(self, stage: str, works: Mapping[str, Work[Any]], ask: Callable[[OpenCall], None], emit: Emit) -> None:
        self._stage, self._works, self._ask, self._emit = stage, works, ask, emit
        self._open_calls: dict[str, OpenCall] = {}
        self._new: list[OpenCall] = []
        self.open = self.held_bytes = 0

    def start(self, tasks: Sequence[Task], size: int) -> None:
        """Start tasks; equal calls of their first steps are one."""
        for task in tasks:
            work = self._works[task.work]
            opened = OpenTask(task, work, work.steps(task.item), bytes_of_task=size // len(tasks))
            self.open += 1
            self._advance(opened, None)
        self._ask_new()

    def settle(self, open_call: OpenCall, outcomes: Sequence[Any]) -> None:
        key = open_call.call.key
        if key is not None and self._open_calls.get(key) is open_call:
            del self._open_calls[key]
        for (opened, place), outcome in zip(open_call.requested_by, outcomes, strict=True):
            opened.outcomes[place] = outcome
            opened.missing -= 1
            if not opened.missing:
                self._go_on(opened)
        self._ask_new()

    def _go_on(self, opened: OpenTask) -> None:
        """Advance a task whose calls have ended; one that needs a call of a batch job ends here."""
        waiting = next((outcome for outcome in opened.outcomes if isinstance(outcome, Waiting)), None)
        if waiting is None:
            self._advance(opened, opened.outcomes)
            return
        opened.steps.close()
        self.held_bytes -= opened.bytes
        self.open -= 1
        self._fail(opened.task, waiting)

    def _advance(self, opened: OpenTask, sent: Sequence[Any] | None) -> None:
        """Send a generator its outcomes, until it requests further calls or ends."""
        self.held_bytes -= opened.bytes
        in_memory = max(
            _BYTES_OF_A_TASK + opened.bytes_of_task, opened.bytes
        )  # a value may refer to all texts of the last step
        try:
            calls = next(opened.steps) if sent is None else opened.steps.send(sent)
            while not calls:
                calls = opened.steps.send(())
        except StopIteration as end:
            self.open -= 1
            task = opened.task
            self._emit(CallAnswer(task.work, task.name, task.subjects, end.value), in_memory)
        except CallError as error:
            self.open -= 1
            self._fail(opened.task, error)
        else:
            opened.outcomes, opened.missing = [None] * len(calls), len(calls)
            # One wide character anywhere, of a template say, makes two or four bytes of every other one.
            payloads = sum(sys.getsizeof(call.payload) for call in calls)
            texts = max(opened.bytes_of_task, payloads)  # that they are made of: of the item, or read by the generator
            opened.bytes = _BYTES_OF_A_TASK + texts + payloads + _BYTES_OF_A_CALL * len(calls)
            self.held_bytes += opened.bytes
            for place, call in enumerate(calls):
                self._want(call, opened, place)

    def _want(self, call: Call, opened: OpenTask, place: int) -> None:
        open_call = None if call.key is None else self._open_calls.get(call.key)
        if open_call is not None and _serves(open_call.call, call):
            open_call.requested_by.append((opened, place))
            if call.positions is not None:
                open_call.named_positions = (open_call.named_positions or frozenset()) | call.positions
            return
        open_call = OpenCall(call, [(opened, place)], call.positions)
        if call.key is not None:
            self._open_calls[call.key] = open_call
        self._new.append(open_call)

    def _ask_new(self) -> None:
        while self._new:
            new, self._new = self._new, []
            for open_call in new:
                self._ask(open_call)

    def _fail(self, task: Task, error: CallError) -> None:
        for subject in task.subjects:
            failure = Failure(self._stage, error.kind, subject.query_id, error.attempts, error.message)
            self._emit(FailedTask(task.work, subject, failure), _BYTES_OF_A_TASK)


def _serves(call: Call, needed: Call) -> bool:
    """Return whether the answer to a call also answers another call of the same key."""
    if call.depth is None or needed.depth is None:
        return call.depth == needed.depth
    return call.depth.covers(needed.depth)


def _read(work: Work[Any], call: Call, reply: Reply) -> Any:
    try:
        return work.read(call, reply)
    except CallError as error:
        return error
    except RankbeamError:
        raise
    except Exception as error:
        return UnexpectedError(error)
