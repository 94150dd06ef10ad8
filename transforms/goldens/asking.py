"""Calls of the writing and the checking model: a step becomes a call, and its reply a parsed form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rankbeam.transforms.clients.models.base import Embedding
from rankbeam.transforms.goldens.records import forms
from rankbeam.transforms.goldens.records.items import CallRecord
from rankbeam.transforms.judge.judge import Model
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt, Template, newest
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply


@cache
def templates() -> Mapping[str, Template]:
    return newest("rankbeam.transforms.goldens", forms.schema)


WRITTEN = frozenset({"profiles", "facts", "enlarge", "distill", "question", "unanswerable", "closed_book"})
"""The steps of the writing model; all others belong to the checking model."""
FINAL = frozenset({FailureKind.BLOCKED, FailureKind.TRUNCATED, FailureKind.INVALID, FailureKind.MALFORMED})
"""Failures that the same call would repeat; the ledger keeps malformed replies, too."""
JUDGED = ("support", "nugget_assign", "grade")  # the steps that use a judge's prompts
_JUDGED_VERSION = 1
"""The version of these prompts: making a benchmark may take weeks, and the keys of paid calls must not change."""
_MOST_OUTPUT_TOKENS = 4096


@dataclass(frozen=True)
class ParsedReply:
    """A model's reply, parsed."""

    value: Any
    call: CallRecord


@dataclass(frozen=True)
class WriterAndChecker:
    """The models that write and check."""

    writer: Model
    checker: Model

    @property
    def services(self) -> list[str]:
        return list(dict.fromkeys([self.writer.name, self.checker.name]))

    def model(self, step: str) -> Model:
        return self.writer if step in WRITTEN else self.checker

    def call(self, step: str, values: Mapping[str, Any], sample: int = 0) -> Call:
        prompt = _template(step).prompt(values, max_output_tokens=_MOST_OUTPUT_TOKENS, sample=sample)
        return replace(self.model(step).call(prompt), keeps_malformed=True)

    def read(self, call: Call, reply: Reply) -> ParsedReply:
        prompt = Prompt.parse(call.payload)
        completion = self.model(prompt.step).read(reply.answer)
        if isinstance(completion, Embedding):
            raise CallError(FailureKind.INVALID, f"{call.service} embeds texts and does not generate any")
        if prompt.step in JUDGED:
            value = step_named(prompt.step).read(prompt.values, completion.text)
        else:
            value = forms.parse_reply(prompt.step, prompt.values, completion.text)
        tokens = reply.tokens
        numbers = (tokens.input, tokens.cached, tokens.output, bool(tokens.batch_input))
        return ParsedReply(
            value, CallRecord(prompt.step, call.service, completion.model_version, call.key or "", *numbers)
        )


@dataclass(frozen=True)
class AskingWork:
    """A `Work` that calls these models."""

    asking: WriterAndChecker

    @property
    def services(self) -> Sequence[str]:
        return self.asking.services

    def read(self, call: Call, reply: Reply) -> ParsedReply:
        return self.asking.read(call, reply)


def _template(step: str) -> Template:
    return (built_in_templates(_JUDGED_VERSION) if step in JUDGED else templates())[step]


def prompt_names() -> dict[str, str]:
    known = {step: _template(step) for step in sorted((*templates(), *JUDGED))}
    return {step: f"{template.name} {template.hash}" for step, template in known.items()}
