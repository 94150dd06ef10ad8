"""Models, which give texts or embeddings, and how to add one.

A model is a subclass of `ModelParameters` with `connect`; an experiment's YAML fills it in under `services:`, and its
calls carry a `Prompt`. One line in the entry point group `rankbeam.models` registers it.
"""

import json
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, FiniteFloat, TypeAdapter, model_validator

from rankbeam.transforms.clients.calls.answers import parse_answer
from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.parameters import Kind, Parameters, is_alias
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Tokens

STOP, MAX_TOKENS = "stop", "max_tokens"  # normalized ends of answers; other ends are stored in the service's own words

_BYTES_OF_A_TOKEN = 4
_FIRST_WORD = re.compile(r"[a-z]+")


class Role(StrEnum):
    """The role of an embedded text: many models embed queries differently from documents."""

    QUERY = "query"
    DOCUMENT = "document"
    SIMILARITY = "similarity"  # to compare texts of the same kind


@dataclass(frozen=True)
class Completion:
    """A model's answer; the version is the model's name as reported by the service, "" if it reports none."""

    text: str
    model_version: str


@dataclass(frozen=True)
class Embedding:
    """The embedding of a text, with a version as in `Completion`."""

    vector: tuple[float, ...]
    model_version: str


@dataclass(frozen=True)
class Stored:
    """An answer as it is stored in the ledger."""

    text: str | None  # None for an embedding
    finish: str = STOP
    block: str | None = None  # the reason for a refusal; None if the model answered
    model_version: str = ""
    vector: tuple[FiniteFloat, ...] | None = None  # None for a text

    def written(self) -> str:
        values = {name: value for name, value in vars(self).items() if name != "vector" or value is not None}
        written = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        # Half a surrogate pair cannot be stored.
        return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_STORED = TypeAdapter(Stored)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


def read_answer(answer: str) -> Completion | Embedding:
    """The content of an answer, without a model's thoughts before it: not all services take these out.

    Raises:
        CallError: the model refused to answer (`BLOCKED`), was cut short (`TRUNCATED`), or gave nothing usable
            (`MALFORMED`).

    >>> read_answer(Stored("yes", "stop", None, "m-001").written())
    Completion(text='yes', model_version='m-001')
    """
    stored = parse_answer(_STORED, answer)
    if stored.block is not None:
        raise CallError(FailureKind.BLOCKED, f"the model refused to answer: {stored.block}")
    if stored.vector is not None:
        if not stored.vector:
            raise CallError(FailureKind.MALFORMED, "the embedding has no components")
        return Embedding(stored.vector, stored.model_version)
    if stored.finish == MAX_TOKENS:
        cut = "before it began" if not stored.text else "in the middle"
        raise CallError(FailureKind.TRUNCATED, f"the answer reached its limit of tokens {cut}")
    if stored.finish != STOP:
        raise CallError(FailureKind.MALFORMED, f"the answer ended early: {stored.finish}")
    text = _THOUGHTS.sub("", stored.text or "")
    if not text.strip():
        raise CallError(FailureKind.MALFORMED, "the answer is empty")
    return Completion(text, stored.model_version)


class ModelParameters(Parameters):
    """The parameters that all models have; a subclass adds its own.

    Attributes:
        model: the service's name for the model; may be "" if the service has only one.
        allow_alias: if true, accept a name that may refer to a different model later, such as one that ends in
            `-latest`.
        of_roles: parameters that decide how texts are embedded in their roles; their effect is part of each call.
        embeds_only: True if the model embeds texts but does not write any.
        default_quota: the quota if `quotas:` gives none.
        offline: description of a model that needs no service, shown with its numbers; None for other models.
        only_scores: True for a judge that gives criteria scores, but writes no text.
    """

    model: str = ""
    allow_alias: bool = False

    operational: ClassVar[frozenset[str]] = frozenset({"allow_alias", "api_key"})
    of_roles: ClassVar[frozenset[str]] = frozenset()
    embeds_only: ClassVar[bool] = False
    # Newer models have no fixed quota on Vertex AI: five calls a second, and slower if the service asks for it.
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=300, timeout_s=120.0)
    offline: ClassVar[str | None] = None
    only_scores: ClassVar[bool] = False

    @model_validator(mode="after")
    def _no_alias(self) -> "ModelParameters":
        if not self.allow_alias and is_alias(self.model):
            raise ValueError(
                f"model {self.model!r} may refer to another model tomorrow, and answers would mix; name a version, "
                "or set allow_alias: true"
            )
        return self

    @property
    def is_free(self) -> bool:
        """True if its calls cost nothing, because it runs in this process."""
        return self.offline is not None

    @property
    def family(self) -> str:
        """The model's family, from the first word of its name: judges favour answers of their own family.

        >>> class Any(ModelParameters): ...
        >>> [Any(model=name).family for name in ("gemini-x-001", "meta-llama/Llama-3.1-8B", "models/gpt-4o")]
        ['gemini', 'llama', 'gpt']
        """
        match = _FIRST_WORD.search(self.model.rpartition("/")[2].lower())
        return match[0] if match else self.model

    def scope(self) -> str:
        """Scope of a quota at the service: a project, region and model, or a host and model."""
        return self.model

    def warnings(self) -> list[str]:
        """Warnings about the configuration, before any call."""
        return []

    def embedding(self, text: str, role: Role) -> Prompt:  # noqa: ARG002  for models that know roles
        """The prompt to embed a text in a role."""
        return Prompt(EMBED, {"text": text})

    def identity(self, kind: str) -> dict[str, Any]:
        """Everything about the service that affects answers, besides the prompt, as JSON values."""
        return {
            "type": kind,
            **self.model_dump(mode="json", exclude=set(self.operational | self.of_roles), exclude_defaults=True),
        }

    def key(self, kind: str, prompt: Prompt) -> str:
        return content_key(prompt.identity(self.identity(kind)))

    async def connect(self) -> Connection:
        """Connect to the service; see `services.Service.connect`."""
        raise NotImplementedError(f"{type(self).__name__} has no connect()")

    def read(self, answer: str) -> Completion | Embedding:
        """The content of an answer; see `read_answer`."""
        return read_answer(answer)

    def most_tokens(self, payload: str) -> Tokens:
        """Tokens to reserve for a prompt: one for every four bytes, and those of the longest answer.

        >>> class Any(ModelParameters): ...
        >>> Any(model="m").most_tokens(Prompt("answer", {}, user="x" * 400, max_output_tokens=50).payload())
        Tokens(input=136, cached=0, output=50)
        """
        prompt = prompts_of(payload)[0]
        input_tokens = math.ceil(len(payload.encode()) / _BYTES_OF_A_TOKEN)
        return Tokens(input_tokens, 0, 0 if prompt.step == EMBED else prompt.max_output_tokens)


class PrefixedModel(ModelParameters):
    """The parameters of models that embed queries and documents with different prefixes.

    Attributes:
        query_prefix: text prepended to queries before embedding, such as "query: " or an instruction.
        document_prefix: text prepended to documents before embedding, such as "passage: ".
    """

    query_prefix: Annotated[str, Field(max_length=4000)] = ""
    document_prefix: Annotated[str, Field(max_length=4000)] = ""

    added: ClassVar[frozenset[str]] = frozenset({"query_prefix", "document_prefix"})
    of_roles: ClassVar[frozenset[str]] = frozenset({"query_prefix", "document_prefix"})

    def embedding(self, text: str, role: Role) -> Prompt:
        """The prompt to embed a text in a role.

        >>> class Any(PrefixedModel): ...
        >>> Any(query_prefix="query: ").embedding("who?", Role.QUERY).values
        {'text': 'query: who?'}
        """
        prefix = {Role.QUERY: self.query_prefix, Role.DOCUMENT: self.document_prefix}.get(role, "")
        return super().embedding(f"{prefix}{text}", role)


MODELS = Kind("model", "rankbeam.models", ModelParameters, methods=("connect",))  # the types of models


def prompt_of(payload: str) -> Prompt:
    """The prompt of a call; raises a CallError (`INVALID`) for another payload."""
    try:
        return Prompt.parse(payload)
    except (ValueError, TypeError) as error:
        raise CallError(FailureKind.INVALID, f"the payload is not a prompt: {error}") from error


def prompts_of(payload: str) -> list[Prompt]:
    """The prompts of a request: one call's, or those of several calls that are made together."""
    payloads = json.loads(payload) if payload.startswith("[") else [payload]
    if not payloads:
        raise CallError(FailureKind.INVALID, "there is no prompt")
    return [prompt_of(call_payload) for call_payload in payloads]


def embedded_text(prompt: Prompt) -> str:
    """The text to embed; raises a CallError (`INVALID`) if there is none."""
    text = prompt.values.get("text")
    if not isinstance(text, str) or not text.strip():
        raise CallError(FailureKind.INVALID, "there is no text to embed")
    return text
