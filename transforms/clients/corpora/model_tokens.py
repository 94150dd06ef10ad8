"""Chunks of a model's own tokens, by the file `tokenizer.json` that models on Hugging Face have."""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.blocks import Span, kept_whole
from rankbeam.transforms.kernels.chunks import windows, words
from rankbeam.transforms.records.chunking import Chunker
from rankbeam.transforms.records.errors import InputError

_MARGIN = 2  # tokens that a word may have more where it begins a text


@dataclass(frozen=True)
class ModelTokens(Chunker):
    """Chunks of at most `size` tokens; cuts are between words, or between characters of a word that is longer."""

    path: str
    size: int
    overlap: int

    def spans(self, text: str) -> list[Span]:
        """As `Chunker`; a chunk is counted as a text of its own, since its first word may have other tokens there."""
        ends = [end for _, end in self._encoded(text).offsets]
        units = [unit for word in words(text) for unit in self._units(text, word, ends)]
        begins, stops = [bisect_right(ends, start) for start, _ in units], [bisect_right(ends, end) for _, end in units]
        return [
            (units[first][0], units[last - 1][1])
            for first, last in windows(
                begins,
                stops,
                self.size,
                self.overlap,
                lambda first, last: self.count(text[units[first][0] : units[last - 1][1]]) <= self.size,
            )
        ]

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return len(self._encoded(text).ids)

    @property
    def identity(self) -> Sequence[object]:
        """The content of the file, size and overlap."""
        return ["tokenizer", _loaded(self.path)[0], self.size, self.overlap]

    def __str__(self) -> str:
        """For people."""
        shared = f", {self.overlap:,} of them shared" if self.overlap else ""
        return f"chunks of at most {self.size:,} tokens of {self.path}{shared}"

    def _units(self, text: str, word: Span, ends: Sequence[int]) -> list[Span]:
        start, end = word
        tokens = bisect_right(ends, end) - bisect_right(ends, start)
        if tokens + _MARGIN <= self.size or self.count(text[start:end]) <= self.size:
            return [word]
        return kept_whole(text, [(at, at + 1) for at in range(start, end)], lambda *_: False)

    def _encoded(self, text: str) -> Any:
        return _loaded(self.path)[1].encode(text, add_special_tokens=False)


@lru_cache(maxsize=4)
def _loaded(path: str) -> tuple[str, Any]:
    """Hash of a tokenizer's file, and the tokenizer, without the limits of length that many files have."""
    from tokenizers import Tokenizer

    with files.open_raw(path) as handle:
        content = handle.read()
    try:
        tokenizer = Tokenizer.from_buffer(content)
    except ValueError as error:
        raise InputError(f"is not a tokenizer.json of Hugging Face: {error}", path=path) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return hashlib.sha256(content).hexdigest()[:16], tokenizer
