"""An open connection to a remote model: the part of a call that is the same for every protocol.

It learns from refusals which optional parts of requests the service refuses, and leaves them out from then on. A
content key never depends on them: it holds the configured values.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from rankbeam.transforms.clients.models.base import (
    MAX_TOKENS,
    Completion,
    Stored,
    embedded_text,
    prompts_of,
    read_answer,
)
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.models.replies import Charges, ReportedUsage, Vectors, reply_of
from rankbeam.transforms.clients.secrets import Secrets
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt, RenderedPrompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.reply import Reply

BOUNDS = ("minimum", "maximum", "minItems", "maxItems")
"""Keywords of JSON schemas that some services refuse; every answer is checked for them in any case."""

_NO = (
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|enabled|accepted|available)|not support|only the default|"
    r"unknown|unrecogni[sz]ed|unexpected|extra inputs|deprecated|too many states|must alternate"
)


class RequestPart(StrEnum):
    """A part of a request that some services refuse, in the order in which refusals are read."""

    LIMIT = "limit"
    TEMPERATURE = "temperature"
    SEED = "seed"
    SYSTEM = "system"
    BOUNDS = "bounds"
    SCHEMA = "schema"
    JSON = "json"


def _near(names: str) -> re.Pattern[str]:
    """A pattern for a name near words of a refusal: an error may quote the whole request."""
    name = rf"(?<![A-Za-z]){names}(?![A-Za-z])"
    return re.compile(rf"{name}.{{0,160}}?(?:{_NO})|(?:{_NO}).{{0,160}}?{name}", re.IGNORECASE | re.DOTALL)


_FORM = re.compile(
    r"response_?format|response_?schema|response_?mime_?type|json_?schema|json mode|structured|guided|grammar|"
    r"too many states",
    re.IGNORECASE,
)
_REFUSED: Mapping[RequestPart, re.Pattern[str]] = {
    RequestPart.LIMIT: _near("(?:max_tokens|max_completion_tokens)"),
    RequestPart.TEMPERATURE: _near("temperature"),
    RequestPart.SEED: _near("seed"),
    RequestPart.SYSTEM: _near(
        r"(?:(?:system|developer)[ _](?:role|message|prompt|instruction)s?|messages\[0\]\.role|conversation roles)"
    ),
    RequestPart.BOUNDS: _near(f"(?:{'|'.join(BOUNDS)}|min_items|max_items|item limits|too many states)"),
    RequestPart.SCHEMA: _FORM,
    RequestPart.JSON: _FORM,
}
_WARNINGS: Mapping[RequestPart, str] = {
    RequestPart.LIMIT: "refuses the name of the token limit: requests use the other one of max_tokens and "
    "max_completion_tokens",
    RequestPart.TEMPERATURE: "refuses temperature: it is left out of requests, and the model's own value applies",
    RequestPart.SEED: "refuses seed: it is left out of requests, so answers may vary more",
    RequestPart.SYSTEM: "refuses system messages: their text is at the beginning of the user's message",
    RequestPart.BOUNDS: f"refuses {', '.join(BOUNDS)} in JSON schemas: they are left out of requests; answers are "
    "checked as before",
    RequestPart.SCHEMA: "refuses JSON schemas: requests ask for a JSON object, with the schema in the prompt; "
    "answers are checked as before",
    RequestPart.JSON: "refuses requests for a JSON object: only the prompt asks for one; answers are checked as before",
}


@dataclass
class Refusals:
    """Request parts that a service refuses, learned by a connection; calls in flight learn it with another attempt."""

    service: str
    warnings: list[str]
    parts: frozenset[RequestPart] = field(default=frozenset())

    def learn(self, message: str, sent: Collection[RequestPart]) -> bool:
        """Note what a refusal is about; returns whether the next request differs from the refused one."""
        part = next((part for part in RequestPart if part in sent and _REFUSED[part].search(message)), None)
        if part is None:
            return False
        if part not in self.parts:
            self.parts |= {part}
            self.warnings.append(f"{self.service} {_WARNINGS[part]}")
        return True


def without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema without `BOUNDS`.

    >>> without_bounds({"type": "array", "maxItems": 2, "items": {"type": "integer", "minimum": 0}})
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    relaxed = {name: value for name, value in schema.items() if name not in BOUNDS}
    if "items" in relaxed:
        relaxed["items"] = without_bounds(relaxed["items"])
    if "properties" in relaxed:
        relaxed["properties"] = {name: without_bounds(child) for name, child in relaxed["properties"].items()}
    return relaxed


_LEAST_TEMPERATURE = 0.2
_SEEDS_OF_A_SAMPLE = 100
_MOST_KEPT = 10_000
_REPAIR = "Your last answer to this could not be used: {problem}. Answer again, in exactly the form that is asked for."
_UNKNOWN = "it did not have the form that is asked for"


@dataclass(frozen=True)
class ModelRequest:
    """One attempt at a prompt."""

    texts: RenderedPrompt
    max_output_tokens: int
    temperature: float
    seed: int | None  # None to send no seed

    @property
    def text(self) -> str:
        """The whole text, of which a service counts the tokens."""
        return self.texts.system + self.texts.user


class ModelAttempts:
    """Changes a prompt that is sent again: a larger limit if the answer was cut, a repair if its form was wrong.

    Without them, the same prompt to the same model at temperature 0 would fail in the same way, and cost as much each
    time. For a prompt that another process sent, both remedies apply.
    """

    def __init__(self) -> None:
        # By prompt: whether an answer was cut, and the problem of other answers, None if there was none.
        self._troubles: OrderedDict[str, tuple[bool, str | None]] = OrderedDict()

    def ask(self, payload: str, prompt: Prompt, attempt: int) -> ModelRequest:
        seed = None if prompt.seed is None else prompt.seed + _SEEDS_OF_A_SAMPLE * prompt.sample
        first = ModelRequest(prompt.rendered(), prompt.max_output_tokens, prompt.temperature, seed)
        if attempt == 1:
            return first
        was_cut, problem = self._troubles.get(_name(payload), (True, _UNKNOWN))
        longer = replace(first, max_output_tokens=first.max_output_tokens * (2 if was_cut else 1))
        if problem is None:
            return longer
        repair = _REPAIR.format(problem=problem)
        return replace(
            longer,
            texts=replace(first.texts, user=f"{first.texts.user}\n\n{repair}"),
            temperature=max(first.temperature, _LEAST_TEMPERATURE),
            seed=None if seed is None else seed + attempt - 1,
        )

    def answered(self, payload: str, prompt: Prompt, answer: str) -> None:
        """Record what is wrong with an answer, for the next attempt."""
        name = _name(payload)
        try:
            content = read_answer(answer)
            if isinstance(content, Completion) and (step := step_of(prompt.step)) is not None:
                step.read(prompt.values, content.text)
        except CallError as error:
            was_cut, problem = self._troubles.pop(name, (False, None))
            problem = error.message if error.kind is FailureKind.MALFORMED else problem
            self._troubles[name] = was_cut or error.kind is FailureKind.TRUNCATED, problem
            if len(self._troubles) > _MOST_KEPT:
                self._troubles.popitem(last=False)
        else:
            self._troubles.pop(name, None)


def _name(payload: str) -> str:
    return hashlib.sha256(payload.encode()).hexdigest()


@dataclass(eq=False)
class ModelConnection(ABC):
    """A connection that counts tokens, and learns which parts of requests its model refuses."""

    parameters: Gemini | OpenAi
    secrets: Secrets
    charges: Charges = field(init=False)
    refusals: Refusals = field(init=False)
    vectors: Vectors = field(init=False)
    attempts: ModelAttempts = field(default_factory=ModelAttempts, init=False)

    always: ClassVar[frozenset[RequestPart]] = frozenset({RequestPart.TEMPERATURE})
    """Parts that every request has, unless the model refused them."""

    def __post_init__(self) -> None:
        model, scope = self.parameters, self.parameters.scope()
        self.charges = Charges(scope)
        self.refusals = Refusals(scope, self.charges.warnings)
        self.vectors = Vectors(scope, model.dimensions, model.most_texts)

    @property
    def warnings(self) -> list[str]:
        return self.charges.warnings

    @property
    def texts_per_request(self) -> int:
        return self.vectors.texts_per_request

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        prompt, *others = prompts_of(payload)
        if prompt.step == EMBED:
            texts = [embedded_text(text_prompt) for text_prompt in (prompt, *others)]
            return await self.embed(texts, prompt.values.get("task_type"), timeout_s)
        request = self.attempts.ask(payload, self.parameters.sampled(prompt), attempt)
        reply = await self.answer(request, prompt, timeout_s)
        self.attempts.answered(payload, prompt, reply.answer)
        return reply

    @abstractmethod
    async def answer(self, request: ModelRequest, prompt: Prompt, timeout_s: float) -> Reply:
        """Ask for an answer."""

    @abstractmethod
    async def embed(self, texts: list[str], task_type: str | None, timeout_s: float) -> Reply:
        """Embed texts of one task type in one request."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    def reply_with(self, stored: Stored, usage: ReportedUsage, request: ModelRequest) -> Reply:
        """The reply with an answer; one that was cut short is charged with all tokens that it might have."""
        limit = request.max_output_tokens if stored.finish == MAX_TOKENS else None
        return Reply(stored.written(), self.charges.of(usage, request.text, stored.text or "", limit))

    def reply_with_vectors(self, rows: Any, texts: Sequence[str], usage: ReportedUsage, version: str) -> Reply:
        """The reply with embeddings; if there are several texts, with a part for each."""
        tokens = self.charges.of(usage, "".join(texts))
        return reply_of(self.vectors.read(rows, texts, tokens), texts, tokens, version)

    def parts(self, request: ModelRequest, prompt: Prompt) -> frozenset[RequestPart]:
        """The parts of a request that the model might refuse, but has not refused so far."""
        parts = set(self.always) | (set() if request.seed is None else {RequestPart.SEED})
        if prompt.schema is not None:
            has_schema = RequestPart.SCHEMA not in self.refusals.parts
            parts |= {RequestPart.SCHEMA} if has_schema else {RequestPart.JSON}
            parts |= {RequestPart.BOUNDS} if has_schema and without_bounds(prompt.schema) != prompt.schema else set()
        return frozenset(parts - self.refusals.parts)

    def system_and_schema(
        self, request: ModelRequest, prompt: Prompt, parts: frozenset[RequestPart]
    ) -> tuple[str, Mapping[str, Any] | None]:
        """The system prompt, and the schema to send; a schema that the model refuses is in the system prompt."""
        system = request.texts.system
        if prompt.schema is None:
            return system, None
        if RequestPart.SCHEMA in parts:
            is_plain = RequestPart.BOUNDS in self.refusals.parts
            return system, without_bounds(prompt.schema) if is_plain else prompt.schema
        return f"{system}\n\nThe answer is a JSON object of this schema:\n{json.dumps(prompt.schema)}".strip(), None
