"""How a judge is asked: a question becomes a call, and a reply what was said, checked against what was asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbeam.transforms.clients.models.base import Embedding, Role
from rankbeam.transforms.judge.models import Model
from rankbeam.transforms.judge.questions import Question
from rankbeam.transforms.records import judgements
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.reply import NO_TOKENS, Reply, Tokens
from rankbeam.transforms.records.calls.template import Template

REPEATED = frozenset({"support", "grade", "answer_kind", "nugget_assign"})
"""The steps that judge: those whose verdicts are compared when they are asked several times."""


@dataclass(frozen=True)
class Reading:
    """What the judge said to one question, as it was read."""

    value: Any
    model_version: str | None = None
    tokens: Tokens = NO_TOKENS


@dataclass(frozen=True)
class Asking:
    """How a judge is asked."""

    model: Model
    templates: Mapping[str, Template]
    embedder: Model | None = None  # the model that embeds texts; None if no metric needs it
    max_output_tokens: int = 4096

    def call(self, question: Question, query: str, sample: int) -> Call:
        """The call that asks a question: of texts, for no configuration more than for another."""
        if question.step == EMBED:
            assert self.embedder is not None  # noqa: S101  an experiment with such a metric names one
            text = question.values(query)["text"]
            prompt = self.embedder.parameters.embedding(text, Role.SIMILARITY)
            return replace(self.embedder.call(prompt), positions=frozenset())
        template = self.templates[question.step]
        settings = {"max_output_tokens": self.max_output_tokens, "sample": sample}
        return replace(self.model.call(template.prompt(question.values(query), **settings)), positions=frozenset())

    def read(self, call: Call, reply: Reply) -> Reading:
        """What was said, checked against what was asked."""
        prompt = Prompt.parse(call.payload)
        model = self.model if prompt.step != EMBED or self.embedder is None else self.embedder
        given = model.read(reply.answer)
        if isinstance(given, Embedding):
            return Reading(np.array(given.vector), given.model_version, reply.tokens)
        value = judgements.read(prompt.step, prompt.values, given.text)
        return Reading(value, given.model_version, reply.tokens)
