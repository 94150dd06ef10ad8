"""What a judge is asked about one query: every distinct question once, whichever configurations it serves.

A question is a tuple that names the judge's step and the texts that it is about. Its first round needs nothing but
texts; its second round needs what the first one brought, such as the claims of an answer.

    round 1   claims of answers and of the reference, grades, kinds of answers, statements, …
    round 2   which text supports which claims, embeddings of generated questions, …
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankbeam.transforms.kernels.sentences import sentences as spans
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.items import Gold
from rankbeam.transforms.records.judgements import Claim

Texts = tuple[str, ...]


class Question(NamedTuple):
    """One question to a judge."""

    step: str
    texts: Texts
    items: Texts = ()

    def values(self, query: str) -> dict[str, Any]:
        """The values of its prompt."""
        numbered = {str(number): item for number, item in enumerate(self.items)}
        match self.step:
            case "claims":
                return {"query": query, "text": self.texts[0]}
            case "support":
                return {"query": query, "claims": numbered, "evidence": self.texts[0]}
            case "grade":
                return {"query": query, "context": self.texts[0]}
            case "answer_kind" | "statements":
                return {"query": query, "answer": self.texts[0]}
            case "nugget_assign":
                return {"query": query, "nuggets": numbered, "answer": self.texts[0]}
            case "questions":
                return {"answer": self.texts[0]}
            case "sentences":
                return {"query": query, "sentences": list(self.items)}
            case _:
                return {"text": self.texts[0]}


@dataclass(frozen=True)
class Judged:
    """What is judged of one query under one configuration."""

    contexts: Texts
    answer: str | None = None  # the text; None if there is none to be judged
    cited: tuple[int, ...] = ()
    invented: int = 0


def sentences(text: str) -> Texts:
    """The sentences of a text."""
    return tuple(text[start:end] for start, end in spans(text))


def joint(contexts: Iterable[str]) -> str:
    """All contexts as one text."""
    return "\n\n".join(contexts)


def first_round(query: str, inputs: frozenset[str], judged: Judged, gold: Gold) -> Iterator[Question]:
    """The questions that need nothing but texts; one may come several times."""
    reference = gold.reference
    if reference is not None and inputs & {"gc", "ga"}:
        yield Question("claims", (reference,))
    if "cosines" in inputs:
        yield Question("embed", (query,))
    if "similarity" in inputs and reference is not None:
        yield Question("embed", (reference,))
    if "grades" in inputs:
        yield from (Question("grade", (context,)) for context in judged.contexts)
    if "extracted" in inputs and (parts := _sentences_of(judged)):
        yield Question("sentences", (), parts)
    if "attributed" in inputs and judged.contexts and (parts := sentences(reference or "")):
        yield Question("support", (joint(judged.contexts),), parts)
    if judged.answer is not None:
        yield from _about_answer(judged.answer, inputs, gold)


def _about_answer(answer: str, inputs: frozenset[str], gold: Gold) -> Iterator[Question]:
    if inputs & {"ac", "ag"}:
        yield Question("claims", (answer,))
    if inputs & {"kind", "relevance"}:
        yield Question("answer_kind", (answer,))
    if "statements" in inputs:
        yield Question("statements", (answer,))
    if inputs & {"cosines", "noncommittal"}:
        yield Question("questions", (answer,))
    if "similarity" in inputs and gold.reference is not None:
        yield Question("embed", (answer,))
    if "assigned" in inputs and gold.nuggets:
        yield Question("nugget_assign", (answer,), tuple(text for text, _ in gold.nuggets))


def second_round(
    inputs: frozenset[str], further: frozenset[str], judged: Judged, gold: Gold, said: Mapping[Question, Any]
) -> Iterator[Question]:
    """The questions that need what the first round brought; what needs a failed one is not asked."""
    answer, reference = judged.answer, gold.reference
    reference_claims = () if reference is None else claims(said, reference)
    if reference_claims and "gc" in inputs:
        yield from (Question("support", (context,), reference_claims) for context in judged.contexts)
    if answer is None:
        return
    if reference_claims and "ga" in inputs:
        yield Question("support", (answer,), reference_claims)
    answer_claims = claims(said, answer)
    if answer_claims and "ac" in inputs:
        yield from (Question("support", (context,), answer_claims) for context in judged.contexts)
    if answer_claims and "ag" in inputs and reference is not None:
        yield Question("support", (reference,), answer_claims)
    is_refusable = "kind" in further and gold.answerable is False
    if is_refusable and not answer_claims and _succeeded(said, "claims", answer) is not None:
        yield Question("answer_kind", (answer,))
    if "statements" in inputs and judged.contexts and (statements := _succeeded(said, "statements", answer)):
        yield Question("support", (joint(judged.contexts),), tuple(statements))
    if "cosines" in inputs:
        made = _succeeded(said, "questions", answer) or ()
        yield from (Question("embed", (question.text,)) for question in made)


def claims(said: Mapping[Question, Any], text: str) -> Texts:
    """The claims of a text; none where the judge found none, or failed."""
    given = said.get(Question("claims", (text,)), ())
    return () if isinstance(given, CallError) else tuple(claim.text for claim in given if isinstance(claim, Claim))


def _succeeded(said: Mapping[Question, Any], step: str, text: str) -> Any:
    """What was said; None where the call failed."""
    given = said.get(Question(step, (text,)))
    return None if isinstance(given, CallError) else given


def _sentences_of(judged: Judged) -> Texts:
    return tuple(sentence for context in judged.contexts for sentence in sentences(context))
