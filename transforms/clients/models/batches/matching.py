"""Answers of a batch job to the calls that they answer: matched by key, then proved by what they repeat.

row ─► key of a call? ─► once? ─► answered? ─► repeats the item of its request? ─► read by its step ─► recorded
         │ foreign        │ duplicate │ failed   │ wrong                             │ unusable
         └────────────────┴───────────┴──────────┴───────────────────────────────────┴─► counted; called online
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from rankbeam.transforms.clients.models.attempts import ModelAttempts, ModelRequest
from rankbeam.transforms.clients.models.base import Completion, Stored, prompt_of, read_answer
from rankbeam.transforms.clients.models.batch_settings import ITEM, can_prove, with_item
from rankbeam.transforms.clients.models.batches.service import BatchRow, BatchService, object_in
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_MOST_WRONG = 0.005  # of a job's calls
_DIGITS = 8


class Refused(StrEnum):
    """The reason why an answer of a job is not used."""

    WRONG = "another request's answer"
    FOREIGN = "no request of this job"
    DUPLICATE = "several answers to one request"
    FAILED = "the request failed"
    UNUSABLE = "the answer cannot be used"
    UNREADABLE = "a row that cannot be read"
    MISSING = "no answer"


@dataclass(frozen=True)
class BatchRequest:
    """A call as a batch job makes it: with an item that its answer has to repeat, where it can."""

    prompt: Prompt
    request: ModelRequest
    item: str | None  # None where the answer has no fields

    @classmethod
    def of(cls, payload: str, parameters: RemoteModel) -> "BatchRequest":
        """The request of a call."""
        prompt = prompt_of(payload)
        request = ModelAttempts().ask(payload, parameters.sampled(prompt), 1)
        if not can_prove(prompt):
            return cls(prompt, request, None)
        texts = request.texts
        item = hashlib.sha256(f"{texts.system}\0{texts.user}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        marked = replace(request, texts=replace(texts, user=f"{texts.user}\n\n{ITEM}: {item}"))
        return cls(replace(prompt, schema=with_item(prompt.schema or {})), marked, item)

    @property
    def step(self) -> str:
        """The step of the call."""
        return self.prompt.step


@dataclass
class Matched:
    """The answers of a job.

    Attributes:
        calls: payloads by key.
        parameters: parameters of the service.
        replies: the answers that can be recorded, by key.
        refused: number of rows whose answers are not used, by reason.
        tokens: tokens of all answers that have a key, recorded or not.
        unproved: number of answers that nothing but their key matches to their call.
    """

    calls: Mapping[str, str]
    parameters: RemoteModel
    replies: dict[str, Reply] = field(default_factory=dict)
    refused: Counter[Refused] = field(default_factory=Counter)
    tokens: dict[str, Tokens] = field(default_factory=dict)
    unproved: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def add(self, row: BatchRow, service: BatchService) -> None:
        """Take a row of the output."""
        if row.key is None:
            self.refused[Refused.UNREADABLE] += 1
            return
        if row.key not in self.calls:
            self.refused[Refused.FOREIGN] += 1
            return
        self._seen[row.key] += 1
        reason = Refused.FAILED if row.body is None else self._read(row.key, row, service)
        if self._seen[row.key] > 1:
            self.refused[Refused.DUPLICATE] += 1 + (self.replies.pop(row.key, None) is not None)
        elif reason is not None:
            self.refused[reason] += 1

    def end(self) -> None:
        """Count what is missing, and use no answer where too many are another request's."""
        self.refused[Refused.MISSING] += len(self.calls) - len(self._seen)
        self.refused = +self.refused
        if self.is_mixed_up:
            self.replies.clear()

    @property
    def is_mixed_up(self) -> bool:
        """True if so many answers are another request's that none is used."""
        return self.refused[Refused.WRONG] + self.refused[Refused.FOREIGN] > _MOST_WRONG * len(self.calls)

    @property
    def without_row(self) -> list[str]:
        """The keys of calls to which the output has no row."""
        return [key for key in self.calls if key not in self._seen]

    def summary(self) -> Iterator[str]:
        """Counts of refused rows, for people."""
        for reason, number in sorted(self.refused.items()):
            yield f"{number:,} × {reason}"

    def _read(self, key: str, row: BatchRow, service: BatchService) -> Refused | None:
        """Read an answer; returns the reason why it cannot be used, None for one that can."""
        marked = BatchRequest.of(self.calls[key], self.parameters)
        try:
            reply = service.reply(row.body or {}, marked.request, marked.prompt)
            self._charge(key, reply.tokens)
            content = read_answer(reply.answer)
        except CallError as error:
            self._charge(key, error.tokens)
            return Refused.UNUSABLE
        text = content.text if isinstance(content, Completion) else None
        if marked.item is not None:
            answer = object_in((text or "").encode("utf-8", "replace"))
            if answer is None or ITEM not in answer:
                return Refused.UNUSABLE
            if answer.pop(ITEM) != marked.item:
                return Refused.WRONG
            text = json.dumps(answer, ensure_ascii=False)
            if not _is_read(marked, text):
                return Refused.UNUSABLE
            assert isinstance(content, Completion)  # noqa: S101  an embedding has no item
            reply = Reply(Stored(text, model_version=content.model_version).written(), reply.tokens)
        if self._seen[key] == 1:
            self.unproved += marked.item is None
            self.replies[key] = replace(reply, tokens=reply.tokens.in_batch())
        return None

    def _charge(self, key: str, tokens: Tokens) -> None:
        if tokens.is_possible:
            self.tokens[key] = self.tokens.get(key, NO_TOKENS) + tokens.in_batch()


def _is_read(marked: BatchRequest, text: str) -> bool:
    """Return whether the step of a question can read an answer: its ids, verdicts and quotes are of the question."""
    if (step := step_of(marked.step)) is None:
        return True
    try:
        step.read(marked.prompt.values, text)
    except CallError:
        return False
    return True
