"""How documents are cut into chunks."""

from dataclasses import dataclass

from rankbeam.transforms.kernels.chunks import By, Span, chunk_spans

_COUNTED = {"tokens": "tokens", "characters": "characters"}


@dataclass(frozen=True)
class Chunking:
    """How documents are cut into chunks; see `chunk_spans`."""

    by: By
    size: int
    overlap: int

    def spans(self, text: str) -> list[Span]:
        """Where the chunks of a text stand."""
        return chunk_spans(text, self.by, self.size, self.overlap)

    def __str__(self) -> str:
        """For people.

        >>> str(Chunking("words", 256, 64)), str(Chunking("sentences", 128, 0))
        ('chunks of at most 256 words, 64 of them shared', 'chunks of whole sentences, at most 128 words')
        """
        whole = "" if self.by in ("words", *_COUNTED) else f"whole {self.by}, "
        shared = f", {self.overlap:,} of them shared" if self.overlap else ""
        return f"chunks of {whole}at most {self.size:,} {_COUNTED.get(self.by, 'words')}{shared}"
