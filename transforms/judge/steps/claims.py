"""`claims`: the claims of an answer or of a reference answer, each with the words of the text that make it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.judge.steps.reading import check_ids
from rankbeam.transforms.kernels.judged_refusals import has_words_of_refusal
from rankbeam.transforms.kernels.quoting import span_of
from rankbeam.transforms.kernels.sentences import parts_of, sentences
from rankbeam.transforms.records.forms import TEXT, Form, Text, list_of, object_of, parse_form
from rankbeam.transforms.records.judging.steps import Imagined, JudgeQuestion, JudgeStep, Share

_MOST_SENTENCES = 60  # in one call: a claim takes about 60 tokens, and a sentence makes about one
_CITATION = re.compile(r"^(?:\[\d+\]\s*)+$")


@dataclass(frozen=True)
class Claim:
    """A claim, and its position in the text: [start, end) in code points, None if its quote is not in the text."""

    text: str
    start: int | None
    end: int | None

    def moved(self, offset: int) -> "Claim":
        """The claim with its position in a longer text, in which its own text begins at `offset`."""
        if self.start is None or self.end is None:
            return self
        return Claim(self.text, self.start + offset, self.end + offset)


class _Claim(Form):
    id: int
    text: Text
    quote: Any = None  # no repair is paid for a quote: it decides no value


class _Claims(Form):
    claims: list[_Claim]


class ClaimsStep(JudgeStep):
    """Extract the claims of a text; a claim whose quote is not in the text has no position."""

    name = "claims"
    variables = ("query", "text")

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        claim = object_of(id={"type": "integer", "minimum": 0}, text=TEXT, quote=TEXT)
        return object_of(claims=list_of(claim))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[Claim, ...]:
        claims = sorted(parse_form(_Claims, text).claims, key=lambda claim: claim.id)
        check_ids([claim.id for claim in claims], len(claims), "claims")
        return tuple(_locate_claim(claim, values["text"]) for claim in claims)

    def parts(
        self, question: JudgeQuestion, most_letters: int | None = None, *, in_windows: bool = True
    ) -> list[list[JudgeQuestion]]:
        texts = parts_of(question.texts[0], _MOST_SENTENCES if in_windows else None, most_letters)
        return [[claims_question(text) for text in texts]] if len(texts) > 1 else [[question]]

    def joined(self, parts: Sequence[Sequence[JudgeQuestion]], replies: Sequence[Sequence[Any]]) -> tuple[Claim, ...]:
        claims, offset = list[Claim](), 0
        for part, reply in zip(parts[0], replies[0], strict=True):
            claims += (claim.moved(offset) for claim in reply)
            offset += len(part.texts[0])
        return tuple(claims)

    def imagined(self, imagined: Imagined) -> tuple[Claim, ...]:
        return tuple(Claim(part, 0, 1) for part in imagined.parts)

    def imagined_parts(self, items: int, claims: int) -> int:  # noqa: ARG002
        return claims

    def known_class(self, reply: Sequence[Claim]) -> str:
        return how_many(reply)

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:  # noqa: ARG002
        texts = statements_of(values["text"])
        return {"claims": [{"id": number, "text": text, "quote": text} for number, text in enumerate(texts)]}


def claims_question(text: str) -> JudgeQuestion:
    return JudgeQuestion(ClaimsStep.name, (text,))


def how_many(parts: Sequence[Any]) -> str:
    """Return "none", "one" or "several".

    >>> how_many(()), how_many(("one", "two"))
    ('none', 'several')
    """
    return ("none", "one", "several")[min(len(parts), 2)]


def statements_of(text: str) -> list[str]:
    """The sentences of a text, except refusals and sentences that are only citations."""
    parts = [text[start:end] for start, end in sentences(text)]
    return [part for part in parts if not has_words_of_refusal(part) and not _CITATION.match(part)]


def _locate_claim(claim: _Claim, text: str) -> Claim:
    place = span_of(claim.quote, text) if isinstance(claim.quote, str) else None
    return Claim(claim.text, *(place or (None, None)))
