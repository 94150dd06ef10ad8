"""The source of a question: spans of documents, and the kind of question to ask about them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

Profile = tuple[tuple[str, str], ...]
"""Dimensions with the value that is assigned."""

_DIGITS = 12


@dataclass(frozen=True)
class SourceSpan:
    """A part of a document."""

    doc_id: str
    start: int
    end: int
    text: str
    title: str = ""

    @property
    def id(self) -> str:
        """Its name, which is split at the last `#`.

        >>> SourceSpan("a#b", 0, 4, "text").id
        'a#b#0-4'
        """
        return f"{self.doc_id}#{self.start}-{self.end}"


@dataclass(frozen=True)
class Candidate:
    """A question that is to be written."""

    item_id: str
    type: str
    profile: Profile
    topic: int
    number: int  # among the questions of one type from the same spans, from 0
    round: int


@dataclass(frozen=True)
class WritingTask:
    """The task of writing: linked spans, and all that is to be asked about them in one round."""

    spans: tuple[SourceSpan, ...]
    candidates: tuple[Candidate, ...]
    context: tuple[SourceSpan, ...] = ()

    @property
    def name(self) -> str:
        """A hash of the spans: questions about the same ones share their facts."""
        return _hashed([part for span in self.spans for part in (span.id, span.text)])


def item_id(spans: Sequence[SourceSpan], kind: str, profile: Profile, number: int) -> str:
    """The id of a question: equal plans have equal ids, on any machine.

    >>> item_id([SourceSpan("d", 0, 4, "text")], "lookup", (("persona", "owner"),), 0)
    'g71f474b808ca'
    """
    parts = [part for span in spans for part in (span.id, span.text)]
    return "g" + _hashed([*parts, kind, *(word for pair in profile for word in pair), str(number)])


def _hashed(parts: Sequence[str]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
