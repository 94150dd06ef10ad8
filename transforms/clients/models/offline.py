"""Models that count words without understanding them: `lexical` judges, `extractive` answers, `hashed` embeds.

They fill every table, run in tests and cost nothing. The judge never says "contradicted", and considers a claim
supported if half of its words are in the evidence. Its numbers say nothing about the quality of answers.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rankbeam.transforms.clients.models import cloze, rewriting
from rankbeam.transforms.clients.models.base import STOP, Stored, embedded_text
from rankbeam.transforms.clients.models.local import LocalModel, share, stems
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.stages import HIGHEST_RATING, RERANK


class Lexical(LocalModel):
    """Judges by shares of stems that texts have in common; a share of the question's for grades and kinds."""

    offline: ClassVar[str | None] = "word overlap, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """The reply that a step defines for offline judges.

        >>> import rankbeam.transforms.judge.steps
        >>> values = {"query": "?", "claims": {"0": "Owners pay.", "1": "It snows."}, "evidence": "The owner pays."}
        >>> [one["verdict"] for one in json.loads(Lexical().answer(Prompt("support", values)).text)["verdicts"]]
        ['supported', 'not_stated']
        """
        reply: Mapping[str, Any] | None = self._rating(prompt) or cloze.check(prompt, self.language)
        if reply is None and (step := step_of(prompt.step)) is not None:
            reply = step.offline(prompt.values, self._share)
        if reply is None:
            raise CallError(FailureKind.INVALID, f"lexical is a judge, and cannot do the step {prompt.step!r}")
        return Stored(json.dumps(reply, ensure_ascii=False), STOP, model_version=self.model)

    def _rating(self, prompt: Prompt) -> Mapping[str, int] | None:
        """The share of the query's words that are in a document, as a rating; None for other steps."""
        if prompt.step != RERANK:
            return None
        return {"score": round(HIGHEST_RATING * self._share(prompt.values["query"], prompt.values["document"]))}

    def _share(self, part: str, whole: str) -> float:
        return share(stems(part, self.language), stems(whole, self.language))


NO_ANSWER = "The contexts do not say."
_ENDS = ".!?…。！？"


class Extractive(LocalModel):
    """Answers with the fewest sentences that hold the most words of the question, each with the number of its context.

    As the writer of a benchmark it takes sentences as facts, and makes questions of them that are cloze-like.

    Attributes:
        most_sentences: maximum number of sentences in an answer.
    """

    most_sentences: Annotated[int, Field(ge=1, le=20)] = 2

    offline: ClassVar[str | None] = "word overlap, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """Sentences of `contexts` for `query`.

        >>> values = {"query": "Who pays invoices?", "contexts": ["It rains. Owners pay invoices."]}
        >>> Extractive().answer(Prompt("answer", values)).text
        'Owners pay invoices [1].'
        """
        rewritten = rewriting.offline(prompt, self.language)
        written = cloze.write(prompt, self.language) if rewritten is None else rewritten
        if written is not None:
            return Stored(written, STOP, model_version=self.model)
        query, contexts = prompt.values.get("query"), prompt.values.get("contexts")
        if not isinstance(query, str) or not isinstance(contexts, list):
            raise CallError(FailureKind.INVALID, f"extractive answers a query from contexts, not step {prompt.step!r}")
        uncovered, chosen = stems(query, self.language), list[str]()
        candidates = [(number, text, stems(text, self.language)) for number, text in _sentences(contexts)]
        while candidates and uncovered and len(chosen) < self.most_sentences:
            number, text, words = max(candidates, key=lambda one: (len(one[2] & uncovered), -one[0], -len(one[1])))
            if not words & uncovered:
                break
            chosen.append(_add_citation(text, number))
            uncovered -= words
        return Stored(" ".join(chosen) or NO_ANSWER, STOP, model_version=self.model)


def _add_citation(text: str, number: int) -> str:
    """Put the number of its context before a sentence's final punctuation, so that it starts no new sentence."""
    words = text.rstrip(_ENDS)
    return f"{words} [{number}]{text[len(words) :]}"


def _sentences(contexts: list[Any]) -> Iterator[tuple[int, str]]:
    for number, context in enumerate(contexts, start=1):
        text = context["text"] if isinstance(context, dict) else str(context)
        yield from ((number, text[start:end]) for start, end in sentences(text))


class Hashed(LocalModel):
    """Feature hashing with signs (Weinberger et al., ICML 2009) over the set of stems.

    Attributes:
        dimensions: embedding dimensions.
    """

    dimensions: Annotated[int, Field(ge=2, le=4096)] = 256

    embeds_only: ClassVar[bool] = True
    offline: ClassVar[str | None] = "hashed words, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """The embedding of the prompt's `text`.

        >>> Hashed(dimensions=2).answer(Prompt("embed", {"text": "owners pay"})).vector
        (0.0, 0.0)
        """
        if prompt.step != EMBED:
            raise CallError(FailureKind.INVALID, f"hashed only embeds texts, and cannot do the step {prompt.step!r}")
        vector = [0.0] * self.dimensions
        for stem in stems(embedded_text(prompt), self.language):
            digest = hashlib.blake2b(stem.encode(), digest_size=8).digest()
            position = int.from_bytes(digest[:7], "big") % self.dimensions
            vector[position] += 1.0 if digest[7] & 1 else -1.0
        return Stored(None, STOP, None, self.model, tuple(vector))
