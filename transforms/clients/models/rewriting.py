"""Query rewriting by a model, as remote work: one call writes one text, or several queries."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

from pydantic import Field

from rankbeam.transforms.clients.models.base import STOP, Completion, ModelParameters
from rankbeam.transforms.clients.models.local import stems
from rankbeam.transforms.records.calls.prompt import Prompt, newest, split_template, variables_of
from rankbeam.transforms.records.calls.steps import Call, Steps, unless_blocked
from rankbeam.transforms.records.conversations import HISTORY, history_of
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.forms import TEXT, Form, list_of, object_of, parse_form
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import REWRITE, RewriteKind, Rewriting

QUERY, NUMBER = "query", "n"
STEP_PREFIX = "rewrite_"

Original = tuple[str, Mapping[str, str]]  # the text of a query, and its attributes


class Rewrites(Form):
    """The reply of a model that writes several queries."""

    queries: Annotated[list[str], Field(min_length=1)]


@cache
def default_template(kind: RewriteKind) -> str:
    return newest("rankbeam.transforms.clients.models", lambda _step, _values: {})[f"{STEP_PREFIX}{kind}"].text


@dataclass(frozen=True)
class Rewrite:
    """Asks a model to rewrite a query."""

    rewriting: Rewriting
    kind: str
    parameters: ModelParameters

    stage: ClassVar[str] = REWRITE

    @property
    def services(self) -> tuple[str]:
        return (self.rewriting.service,)

    @property
    def attributes(self) -> frozenset[str]:
        return variables_of(self.rewriting.template) - {QUERY, NUMBER}

    def call(self, item: Original) -> Call:
        query, attributes = item
        rewriting = self.rewriting
        conversation = "\n".join(f"{message['role']}: {message['text']}" for message in history_of(attributes))
        known = {**attributes, QUERY: query, NUMBER: str(rewriting.n), HISTORY: conversation}
        system, user = split_template(rewriting.template)
        is_list = rewriting.kind is RewriteKind.MULTI_QUERY
        prompt = Prompt(
            f"{STEP_PREFIX}{rewriting.kind}",
            {name: known[name] for name in sorted(variables_of(rewriting.template)) if name in known},
            system,
            user,
            object_of(queries=list_of(TEXT, rewriting.n)) if is_list else None,
            rewriting.max_output_tokens,
            rewriting.temperature,
            rewriting.seed,
            thinking=rewriting.thinking,
            sample=rewriting.sample,
        )
        return Call(rewriting.service, self.parameters.key(self.kind, prompt), prompt.payload(), step=prompt.step)

    def steps(self, item: Original) -> Steps[tuple[str, ...]]:
        """Ask once; if the model refuses, there are no texts."""
        (outcome,) = yield [self.call(item)]
        texts: tuple[str, ...] = unless_blocked(outcome) or ()
        return texts

    def read(self, call: Call, reply: Reply) -> tuple[str, ...]:  # noqa: ARG002  every answer is read alike
        """The texts in an answer, which may be empty."""
        if _is_empty(reply.answer):
            return ("",)
        answer = self.parameters.read(reply.answer)
        if not isinstance(answer, Completion):
            raise CallError(FailureKind.INVALID, f"{self.rewriting.service} embeds texts and cannot rewrite queries")
        if self.rewriting.kind is not RewriteKind.MULTI_QUERY:
            return (answer.text.strip(),)
        return tuple(text.strip() for text in parse_form(Rewrites, answer.text).queries[: self.rewriting.n])


def _is_empty(answer: str) -> bool:
    """Return whether a model ended its answer before it wrote anything."""
    stored = json.loads(answer)
    ended = stored.get("finish") == STOP and stored.get("block") is None and stored.get("vector") is None
    return ended and not (stored.get("text") or "").strip()


def offline(prompt: Prompt, language: str) -> str | None:
    """The reply of a model that only rearranges the words of the query; None for other steps.

    >>> offline(Prompt("rewrite_hyde", {"query": "Who has to pay invoices?"}), "english")
    'This is about has invoices pay who.'
    """
    if not prompt.step.startswith(STEP_PREFIX):
        return None
    words = _words(prompt.values.get(QUERY, ""), language)
    if prompt.step == f"{STEP_PREFIX}{RewriteKind.MULTI_QUERY}":
        number = (prompt.schema or {})["properties"]["queries"]["maxItems"]
        return json.dumps({"queries": [" ".join(_leave_out(words, position)) for position in range(number)]})
    if prompt.step == f"{STEP_PREFIX}{RewriteKind.STANDALONE}":
        users = [line for line in prompt.values.get(HISTORY, "").splitlines() if line.startswith("user: ")]
        history_words = _words(users[-1].partition(": ")[2], language) if users else []
        return " ".join(dict.fromkeys([*words, *history_words]))
    return f"This is about {' '.join(words)}."


def _words(text: str, language: str) -> list[str]:
    """The words of a text that are not stop words, in alphabetical order."""
    return sorted({word for word in text.lower().replace("?", " ").split() if stems(word, language)})


def _leave_out(words: Sequence[str], index: int) -> list[str]:
    """Leave out one word, unless there is only one."""
    return [word for number, word in enumerate(words) if number != index % len(words)] if len(words) > 1 else [*words]
