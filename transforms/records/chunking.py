"""Ways to cut documents into chunks, and the ids of chunks: the document's id and the span, `doc#start-end`."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, is_dataclass
from typing import Literal

from rankbeam.transforms.kernels.blocks import Span
from rankbeam.transforms.kernels.chunks import By, chunk_spans
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.plug_ins import blame_component

_COUNTED = {"tokens": "tokens", "characters": "characters", "recursive": "tokens"}
# Positions have at most ten digits: a longer number is no place in a text, and arithmetic with it would overflow.
_CHUNK_ID = re.compile(r"(.+)#(0|[1-9][0-9]{0,9})-([1-9][0-9]{0,9})", re.DOTALL)


class Chunker(ABC):
    """Cuts documents into chunks; a subclass is a frozen dataclass, whose fields are its parameters."""

    @abstractmethod
    def spans(self, text: str) -> Iterable[Span]:
        """Cut a text.

        Args:
            text: the document, without its title.

        Returns:
            Each chunk's [start, end) in code points, by start; chunks may overlap. Empty for a text without chunks.
        """

    @property
    def identity(self) -> Sequence[object]:
        """The values that decide the chunks of a text, for JSON: by default the class and its fields."""
        kind = type(self)
        if not is_dataclass(self):
            raise InputError(f"{kind.__qualname__} is not a dataclass; its fields identify the chunks that it cuts")
        return [f"{kind.__module__}:{kind.__qualname__}", *astuple(self)]

    def checked_spans(self, text: str) -> Sequence[Span]:
        with blame_component(self, "spans"):
            spans, last = list(self.spans(text)), 0
        for start, end in spans:
            if not last <= start < end <= len(text):
                problem = f"a chunk from {start} to {end} of a text with {len(text):,} code points"
                after = f", after one that begins at {last}" if start < last else ""
                raise InputError(f"{type(self).__qualname__} cut {problem}{after}; spans are [start, end), by start")
            last = start
        return spans


@dataclass(frozen=True)
class Chunking(Chunker):
    """Chunks of a size and an overlap; see `chunk_spans`."""

    by: By
    size: int
    overlap: int
    longer: Literal["keep", "split"] = "keep"
    intact: bool = False

    def spans(self, text: str) -> list[Span]:
        return chunk_spans(text, self.by, self.size, self.overlap, splits=self.longer == "split", intact=self.intact)

    @property
    def identity(self) -> Sequence[object]:
        """Unit, size and overlap, whether longer units are cut, and whether tables and code are kept whole."""
        longer = [] if self.longer == "keep" else [self.longer]
        return [self.by, self.size, self.overlap, *longer, *(["intact"] if self.intact else [])]

    def __str__(self) -> str:
        """The chunking as text, for people.

        >>> str(Chunking("words", 256, 64)), str(Chunking("sentences", 128, 0))
        ('chunks of at most 256 words, 64 of them shared', 'chunks of whole sentences, at most 128 words')
        """
        whole = "" if self.by in ("words", *_COUNTED) else f"whole {self.by}, "
        shared = f", {self.overlap:,} of them shared" if self.overlap else ""
        whole = "paragraphs, lines or sentences, " if self.by == "recursive" else whole
        return f"chunks of {whole}at most {self.size:,} {_COUNTED.get(self.by, 'words')}{shared}"


def chunk_id(doc_id: str, start: int, end: int) -> str:
    """The id of a chunk.

    >>> chunk_id("manual", 0, 120)
    'manual#0-120'
    """
    return f"{doc_id}#{start}-{end}"


def parse_chunk_id(name: str) -> tuple[str, int, int] | None:
    """The document's id, start and end in a chunk's id; None for any other id.

    >>> parse_chunk_id("c#3#0-120"), parse_chunk_id("c#3")
    (('c#3', 0, 120), None)
    """
    match = _CHUNK_ID.fullmatch(name)
    if match is None or int(match[2]) >= int(match[3]):
        return None
    return match[1], int(match[2]), int(match[3])
