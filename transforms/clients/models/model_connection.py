"""An open connection to a remote model: the part of a call that is the same for every protocol."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rankbeam.transforms.clients.models.attempts import ModelAttempts, ModelRequest
from rankbeam.transforms.clients.models.base import embedded_text, prompts_of
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.models.refusals import Refusals, RequestPart, without_bounds
from rankbeam.transforms.clients.models.replies import Charges, Vectors
from rankbeam.transforms.clients.secrets import Secrets
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.reply import Reply


@dataclass(frozen=True)
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
        model, charges = self.parameters, Charges(self.parameters.scope())
        object.__setattr__(self, "charges", charges)
        object.__setattr__(self, "refusals", Refusals(model.scope(), charges.warnings))
        object.__setattr__(self, "vectors", Vectors(model.scope(), model.dimensions, model.most_texts))

    @property
    def warnings(self) -> list[str]:
        """Warnings for users."""
        return self.charges.warnings

    @property
    def texts_per_request(self) -> int:
        """Texts that one request embeds, at most."""
        return self.vectors.texts_per_request

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt; see `services.Connection.call`."""
        prompt, *others = prompts_of(payload)
        if prompt.step == EMBED:
            return await self.embed([prompt, *others], timeout_s)
        request = self.attempts.ask(payload, self.parameters.sampled(prompt), attempt)
        reply = await self.answer(request, prompt, timeout_s)
        self.attempts.answered(payload, prompt, reply.answer)
        return reply

    @abstractmethod
    async def answer(self, request: ModelRequest, prompt: Prompt, timeout_s: float) -> Reply:
        """Ask for an answer."""

    @abstractmethod
    async def embed(self, prompts: list[Prompt], timeout_s: float) -> Reply:
        """Embed the texts of prompts in one request."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    def parts(self, request: ModelRequest, prompt: Prompt) -> frozenset[RequestPart]:
        """The parts of a request that the model might refuse, and has not refused so far."""
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


def texts_of(prompts: list[Prompt]) -> list[str]:
    """The texts that prompts want embedded."""
    return [embedded_text(prompt) for prompt in prompts]
