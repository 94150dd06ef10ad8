"""The `extractive` model: sentences of the contexts that hold the most words of the question. No language model."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rankbeam.transforms.clients.models import cloze, rewriting
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.local import LocalModel, stems
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

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
            chosen.append(_cited(text, number))
            uncovered -= words
        return Stored(" ".join(chosen) or NO_ANSWER, STOP, model_version=self.model)


def _cited(text: str, number: int) -> str:
    """A sentence with the number of its context before its end, so that no further sentence begins with it."""
    words = text.rstrip(_ENDS)
    return f"{words} [{number}]{text[len(words) :]}"


def _sentences(contexts: list[Any]) -> Iterator[tuple[int, str]]:
    for number, context in enumerate(contexts, start=1):
        text = context["text"] if isinstance(context, dict) else str(context)
        yield from ((number, text[start:end]) for start, end in sentences(text))
