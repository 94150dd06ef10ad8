"""Prompts that ask a model to answer a query from the contexts of a configuration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.transforms.clients.models.base import Completion
from rankbeam.transforms.judge.judge import Model, ModelReply
from rankbeam.transforms.records.calls.prompt import Prompt, split_template, variables_of
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import Answer, AnswerStatus, fitting_count
from rankbeam.transforms.records.judging.items import Item, System
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import Generation

STEP = "answer"
_STATUSES = {FailureKind.BLOCKED: AnswerStatus.BLOCKED, FailureKind.TRUNCATED: AnswerStatus.TRUNCATED}


@dataclass(frozen=True)
class Answerer:
    """The model or application that answers for a configuration."""

    model: Model | None = None  # None if answers were given to rankbeam
    prompt_hash: str | None = None
    quota: Quota | None = None  # with the prices of calls and tokens

    def cost(self, answer: Answer) -> float | None:
        """The cost of an answer; None without a price, or if it is by tokens that an application does not say."""
        if self.quota is None:
            return None
        tokens, prices = answer.tokens, self.quota.prices
        if self.model is None and answer.attempts and prices is not None:
            counts = (prices.input, tokens.input), (prices.output, tokens.output)
            if any(price and not count for price, count in counts):
                return None
        return self.quota.cost(answer.attempts, tokens)


@dataclass(frozen=True)
class AnswerGenerator:
    """A configuration's generator of answers."""

    model: Model
    generation: Generation
    day: str | None = None  # the date, where each day asks anew

    def begun(self, item: Item, system: System) -> Answer:
        """The answer as known before the model is called, with the reason if it will not be; `OK` means: call it."""
        if system.failed:
            return Answer(AnswerStatus.FAILED, message="not asked: the retriever gave no answer")
        retrieved = item.contexts(system)[: self.generation.contexts]
        lacking = next((passage.doc_id for passage in retrieved if passage.text is None), None)
        if lacking is not None:
            problem = f"not asked: there is no text of document {lacking!r}; give the documents as dataset.corpus"
            return Answer(AnswerStatus.FAILED, contexts=tuple(retrieved), message=problem)
        fits = fitting_count(retrieved, self.generation.max_context_tokens)
        answer = Answer(AnswerStatus.OK, contexts=tuple(retrieved[:fits]), left_out=len(retrieved) - fits)
        if not answer.contexts and not self.generation.without_contexts:
            return replace(answer, status=AnswerStatus.NO_CONTEXT, message="not asked: there is no context")
        return answer

    def call(self, item: Item, contexts: Sequence[Passage], sample: int) -> Call:
        generation = self.generation
        known: dict[str, Any] = {**item.attributes, "query": item.text}
        known["contexts"] = [{"id": passage.doc_id, "text": passage.text} for passage in contexts]
        system, user = split_template(generation.template)
        prompt = Prompt(
            STEP,
            {name: known[name] for name in sorted(variables_of(generation.template)) if name in known},
            system,
            user,
            max_output_tokens=generation.max_output_tokens,
            temperature=generation.temperature,
            seed=generation.seed,
            thinking=generation.thinking,
            sample=sample,
        )
        call = self.model.call(prompt)
        if self.day is None or call.key is None:
            return call
        return replace(call, key=content_key({"answer": call.key, "day": self.day}))

    def is_asked_by(self, call: Call) -> bool:
        return call.service == self.model.name and Prompt.parse(call.payload).step == STEP

    def read(self, reply: Reply) -> ModelReply:
        completion = self.model.read(reply.answer)
        if not isinstance(completion, Completion):
            raise CallError(FailureKind.INVALID, f"{self.model.name} embeds texts and cannot answer queries")
        return ModelReply(completion.text, completion.model_version, reply.tokens, reply.attempts)


def finish_answer(begun: Answer, outcome: Any) -> Answer:
    if isinstance(outcome, CallError):
        status = _STATUSES.get(outcome.kind, AnswerStatus.FAILED)
        answer = replace(begun, status=status, message=outcome.message, error=outcome)
    else:
        answer = replace(begun, text=outcome.value, model_version=outcome.model_version)
    return replace(answer, tokens=outcome.tokens, attempts=outcome.attempts)
