"""Work of two steps, as a judge does it: the claims of an answer, and whether each context supports each of them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from rankbeam.transforms.judge.steps import STEPS
from rankbeam.transforms.records.calls.steps import Call, Steps, Subject, Task, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

TOKENS = Tokens(input=100, cached=10, output=20)
VARIABLES = {step.name: step.variables for step in STEPS if not step.embeds}

Behaviour = Callable[[str, int, int], str | None]
"""The reply to a text by the number of times it was sent and of the attempt; None for the usual reply."""


class Judged(NamedTuple):
    """An answer and its contexts."""

    answer: str
    contexts: tuple[str, ...]


@dataclass
class Model:
    """A model that finds the claims of "a. b." and supports what a context holds.

    Attributes:
        behave: the reply in place of the usual one; may raise CallError.
        call_log: the text and the number of every attempt.
    """

    behave: Behaviour = lambda _, __, ___: None
    call_log: list[tuple[str, int]] = field(default_factory=list)
    model: str = "m-1"

    async def connect(self) -> "Model":
        return self

    async def close(self) -> None:
        """Nothing is open."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        self.call_log.append((payload, attempt))
        times = sum(text == payload for text, _ in self.call_log)
        reply = self.behave(payload, times, attempt)
        return Reply(self._reply(**json.loads(payload)) if reply is None else reply, TOKENS)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return Tokens(120, 0, 80)

    def read(self, answer: str) -> Any:
        try:
            value = json.loads(answer)
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"no JSON: {answer}") from error
        if isinstance(value, dict) and "finish" in value:
            raise CallError(FailureKind(value["finish"]), f"the answer is {value['finish']}")
        return value

    def _reply(self, step: str, **values: Any) -> str:
        if step == "claims":
            return json.dumps([claim.strip() for claim in values["answer"].split(".") if claim.strip()])
        return json.dumps({claim: claim in values["context"] for claim in values["claims"]})


@dataclass(frozen=True)
class Support:
    """The share of claims that some context supports: one call for the claims, and one for each context.

    Attributes:
        model: the judge.
    """

    model: Model

    stage: ClassVar[str] = "judge"
    services: ClassVar[tuple[str, ...]] = ("extractor", "judge")

    def steps(self, item: Judged) -> Steps[float]:
        (claims,) = results_or_raise((yield [prompt("extractor", step="claims", answer=item.answer)]))
        if not claims:
            return 1.0
        prompts = [prompt("judge", step="support", context=context, claims=claims) for context in item.contexts]
        verdicts = results_or_raise((yield prompts))
        return sum(any(verdict[claim] for verdict in verdicts) for claim in claims) / len(claims)

    def read(self, call: Call, reply: Reply) -> Any:
        value = self.model.read(reply.answer)
        body = json.loads(call.payload)
        if body["step"] == "support" and set(value) != set(body["claims"]):
            raise CallError(FailureKind.MALFORMED, "not each claim has one verdict")
        return value


def prompt(service: str, **variables: Any) -> Call:
    """A call to a model."""
    return Call(service, content_key(variables), json.dumps(variables))


def task(query_id: str, answer: str, contexts: tuple[str, ...], panel: str = "Faithfulness") -> Task:
    """A task that is named by what it works on."""
    name = hashlib.sha256(json.dumps([answer, contexts]).encode()).hexdigest()
    return Task(name, "support", Judged(answer, contexts), (Subject(panel, query_id, 0, (0,)),))


def expected_calls(tasks: Mapping[str, Judged]) -> set[str]:
    """The payloads that judging these takes, each once."""
    payloads = set()
    for item in tasks.values():
        claims = [claim.strip() for claim in item.answer.split(".") if claim.strip()]
        payloads.add(prompt("", step="claims", answer=item.answer).payload)
        payloads |= {prompt("", step="support", context=context, claims=claims).payload for context in item.contexts}
    return payloads
