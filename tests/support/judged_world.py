"""A small world of answers, and what every judged metric is in it: plain Python over what the stand-in would say."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from support.standins.faults import fraction
from support.standins.models import embedding

from rankbeam.transforms.kernels import overlap

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]")
_SUPPORT, _NUGGET = ("supported", "not_stated", "contradicted"), ("support", "partial", "none")
_KINDS = ("answered", "partial", "refused", "off_topic")


@dataclass(frozen=True)
class World:
    """One query, with all that is judged of it."""

    query: str
    answer: str
    contexts: tuple[str, ...]
    reference: str
    answerable: bool
    nuggets: tuple[tuple[str, bool], ...]
    cited: frozenset[int]

    def holds(self, claim: str, evidence: str) -> bool:
        """Return whether the stand-in considers a claim supported."""
        return _SUPPORT[int(fraction(claim, self.query, evidence, "verdict") * 3)] == "supported"

    @cached_property
    def claims(self) -> list[str]:
        return parts(self.answer)

    @cached_property
    def reference_claims(self) -> list[str]:
        return parts(self.reference)

    @cached_property
    def right(self) -> list[bool]:
        return [self.holds(claim, self.reference) for claim in self.claims]

    @cached_property
    def covered(self) -> list[bool]:
        return [self.holds(claim, self.answer) for claim in self.reference_claims]

    @cached_property
    def useful(self) -> list[bool]:
        """True for each context that supports a claim of the reference."""
        return [any(self.holds(claim, context) for claim in self.reference_claims) for context in self.contexts]

    def by(self, claim: str) -> set[int]:
        """The contexts that support a claim."""
        return {place for place, context in enumerate(self.contexts) if self.holds(claim, context)}

    @cached_property
    def grades(self) -> list[int]:
        return [int(fraction(self.query, context, "grade") * 4) for context in self.contexts]

    @cached_property
    def kind(self) -> str:
        return _KINDS[int(fraction(self.query, self.answer, "kind") * 4)]

    def nugget(self, *, vital: bool, strict: bool) -> float | None:
        worth = {"support": 1.0, "partial": 0.0 if strict else 0.5, "none": 0.0}
        statements = [
            worth[_NUGGET[int(fraction(text, self.query, self.answer, "verdict") * 3)]]
            for text, is_vital in self.nuggets
            if is_vital or not vital
        ]
        return mean(statements)


def parts(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in _SENTENCE.findall(text)]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def likeness(a: str, b: str) -> float:
    """The cosine of two texts' embeddings."""
    x, y = embedding(a), embedding(b)
    return math.fsum(p * q for p, q in zip(x, y, strict=True)) / math.hypot(*x) / math.hypot(*y)


def _ap(useful: Sequence[bool]) -> float:
    at = [sum(useful[: place + 1]) / (place + 1) for place, is_useful in enumerate(useful) if is_useful]
    return mean(at) or 0.0


def _noise(w: World, *, relevant: bool) -> float | None:
    good = {place for place, is_useful in enumerate(w.useful) if is_useful}
    wrong = [w.by(claim) for claim, is_right in zip(w.claims, w.right, strict=True) if not is_right]
    return sum(bool(by & good) if relevant else bool(by) and not by & good for by in wrong) / len(w.claims)


def _f1(w: World) -> float:
    precision, recall = mean(w.right) or 0.0, mean(w.covered) or 0.0
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def _correctness(w: World) -> float:
    right, wrong = sum(w.right), w.right.count(False) + w.covered.count(False)
    return 0.75 * right / (right + wrong / 2) + 0.25 * likeness(w.answer, w.reference)


def _utilization(w: World) -> float | None:
    return mean([has for claim, has in zip(w.reference_claims, w.covered, strict=True) if w.by(claim)])


def _joint(w: World, claims: Sequence[str]) -> float | None:
    return mean([w.holds(claim, "\n\n".join(w.contexts)) for claim in claims])


def _of_contexts(w: World) -> list[str]:
    return [part for context in w.contexts for part in parts(context)]


def _questions(w: World) -> float | None:
    return mean([likeness(w.query, f"{number}: {w.answer[:40]}?") for number in range(3)])


def _uncited(w: World) -> str:
    return re.sub(r"\s*\[\d+\]", "", w.answer)


def _letters(text: str) -> list[str]:
    words = re.sub(r"\[\d+\]|[^\w\s]", "", text.lower()).split()
    return [word for word in words if word not in ("a", "an", "the")]


EXPECTED: Mapping[str, Callable[[World], float | None]] = {
    "Faithfulness": lambda w: mean([bool(w.by(claim)) for claim in w.claims]),
    "Faithfulness(ragas)": lambda w: _joint(w, w.claims),
    "Hallucination": lambda w: mean([not w.by(c) and not right for c, right in zip(w.claims, w.right, strict=True)]),
    "SelfKnowledge": lambda w: mean([not w.by(c) and right for c, right in zip(w.claims, w.right, strict=True)]),
    "NoiseSensitivity(relevant)": lambda w: _noise(w, relevant=True),
    "NoiseSensitivity(irrelevant)": lambda w: _noise(w, relevant=False),
    "ClaimPrecision": lambda w: mean(w.right),
    "ClaimRecall": lambda w: mean(w.covered),
    "ClaimF1": _f1,
    "ContextRecall": lambda w: mean([bool(w.by(claim)) for claim in w.reference_claims]),
    "ContextRecall(ragas)": lambda w: _joint(w, w.reference_claims),
    "ContextPrecision(claims)": lambda w: mean(w.useful),
    "ContextAP": lambda w: _ap(w.useful),
    "ContextRR": lambda w: next((1 / (place + 1) for place, is_useful in enumerate(w.useful) if is_useful), 0.0),
    "ContextAP(grade)": lambda w: _ap([grade >= 2 for grade in w.grades]),
    "ContextAP(answer)": lambda w: _ap([any(w.holds(claim, context) for claim in w.claims) for context in w.contexts]),
    "ContextUtilization": _utilization,
    "ContextRelevance": lambda w: mean([grade / 3 for grade in w.grades]),
    "ContextRelevance(ragas)": lambda w: mean([fraction(part, "needed") < 0.5 for part in _of_contexts(w)]),
    "AnswerRelevance": lambda w: int(fraction(w.query, w.answer, "relevance") * 4) / 3,
    "AnswerRelevance(ragas)": _questions,
    "AnswerCorrectness(ragas)": _correctness,
    "AnswerSimilarity": lambda w: likeness(w.answer, w.reference),
    "CitationPrecision": lambda w: mean([any(place in w.by(c) for c in w.claims) for place in sorted(w.cited)]),
    "CitationRecall": lambda w: mean([bool(w.by(claim) & w.cited) for claim in w.claims]),
    "NuggetVital": lambda w: w.nugget(vital=True, strict=False),
    "NuggetVital(strict)": lambda w: w.nugget(vital=True, strict=True),
    "NuggetAll": lambda w: w.nugget(vital=False, strict=False),
    "NuggetAll(strict)": lambda w: w.nugget(vital=False, strict=True),
    "ExactMatch": lambda w: float(_letters(w.answer) == _letters(w.reference)),
    "TokenF1": lambda w: overlap.token_f1(_uncited(w), w.reference),
    "ROUGE-L": lambda w: overlap.rouge_l(_uncited(w), w.reference),
    "BLEU": lambda w: overlap.bleu(_uncited(w), w.reference),
    "Consistency": lambda _: None,
    "Consistency(kind)": lambda _: None,
    "chrF": lambda w: overlap.chrf(_uncited(w), w.reference),
    "Refused": lambda w: float(w.kind == "refused"),
    "RefusalPrecision": lambda w: float(not w.answerable) if w.kind == "refused" else None,
    "RefusalRecall": lambda w: None if w.answerable else float(w.kind == "refused"),
}
"""By metric, its value for a query; None where it is undefined."""

METRICS_OF_ONE_ANSWER = [name for name in EXPECTED if not name.startswith("Consistency")]
"""The metrics that need no second sample of an answer."""
