"""The `chunks` corpus: the dataset's documents, cut on this machine, for retrievers that answer in process.

Chunks may be measured in a model's own tokens, with the file `tokenizer.json` of models on Hugging Face.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.clients.extras import LOCAL, missing_extra
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.blocks import Span, kept_whole
from rankbeam.transforms.kernels.chunks import By, windows, words
from rankbeam.transforms.records.chunking import Chunker, Chunking
from rankbeam.transforms.records.errors import InputError

_MARGIN = 2  # additional tokens that a word may have at the beginning of a text


@dataclass(frozen=True)
class ModelTokens(Chunker):
    """Chunks of at most `size` tokens; cuts are between words, or inside a word that is longer than a chunk."""

    path: str
    size: int
    overlap: int

    def spans(self, text: str) -> list[Span]:
        """See `Chunker`; a chunk's tokens are counted on their own, since its first word may have other tokens then."""
        ends = [end for _, end in self._encode(text).offsets]
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
        return len(self._encode(text).ids)

    @property
    def identity(self) -> Sequence[object]:
        return ["tokenizer", _load_tokenizer(self.path)[0], self.size, self.overlap]

    def __str__(self) -> str:
        shared = f", {self.overlap:,} of them shared" if self.overlap else ""
        return f"chunks of at most {self.size:,} tokens of {self.path}{shared}"

    def _units(self, text: str, word: Span, ends: Sequence[int]) -> list[Span]:
        start, end = word
        tokens = bisect_right(ends, end) - bisect_right(ends, start)
        if tokens + _MARGIN <= self.size or self.count(text[start:end]) <= self.size:
            return [word]
        return kept_whole(text, [(at, at + 1) for at in range(start, end)], lambda *_: False)

    def _encode(self, text: str) -> Any:
        return _load_tokenizer(self.path)[1].encode(text, add_special_tokens=False)


@lru_cache(maxsize=4)
def _load_tokenizer(path: str) -> tuple[str, Any]:
    """The hash of a tokenizer's file, and the tokenizer, without the limit of length that many files have."""
    from tokenizers import Tokenizer

    content = files.read_raw(path)
    try:
        tokenizer = Tokenizer.from_buffer(content)
    except ValueError as error:
        raise InputError(f"is not a tokenizer.json of Hugging Face: {error}", path=path) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return hashlib.sha256(content).hexdigest()[:16], tokenizer


class Chunks(CorpusParameters):
    """Chunks of the text of documents; a title belongs to no chunk.

    Attributes:
        by: unit of size and overlap: "words", "tokens" (four characters each) or "characters". With "sentences",
            "paragraphs" or "headings" (Markdown sections), whole units are packed into chunks of up to `chunk_size`
            words; a longer unit becomes a chunk of its own. With "recursive", sizes are tokens, and a chunk ends with
            the largest unit that fits: paragraph, line, sentence, word or character.
        longer: "split" cuts sentences, paragraphs and headings with more than `chunk_size` words, at the boundaries of
            smaller units; no effect on other values of `by`.
        intact: if true, a Markdown table or code block that fits into one chunk is never cut, and a larger one is cut
            between lines.
        tokenizer: with `by: tokens`, the `tokenizer.json` of a Hugging Face model: sizes then count its tokens, without
            special ones, instead of four characters each. Needs `pip install 'rankbeam[local]'`. The file's name is
            part of a configuration's identity, and its content is part of the index's.
    """

    by: By = "words"
    longer: Literal["keep", "split"] = "keep"
    intact: bool = False
    tokenizer: Annotated[str, Field(min_length=1)] | None = None

    added: ClassVar[frozenset[str]] = frozenset({"longer", "intact", "tokenizer"})

    @model_validator(mode="after")
    def _tokenizer_of_tokens(self) -> "Chunks":
        if self.tokenizer is not None:
            if self.by != "tokens":
                raise ValueError(f"tokenizer counts tokens, but by is {self.by}; write by: tokens")
            if self.intact:
                raise ValueError(
                    "intact cannot be combined with a tokenizer, which keeps graphemes anyway; remove one of the two"
                )
            if (problem := missing_extra("tokenizers", LOCAL, "tokenizers")) is not None:
                raise ValueError(problem)
        return self

    def resolved(self, folder: str) -> "Chunks":
        path = self.tokenizer
        return self if path is None else self.model_copy(update={"tokenizer": files.below(folder, path)})

    def specification(self) -> dict[str, Any]:
        """See `CorpusParameters`; of a tokenizer's path, only the file's name counts."""
        values = super().specification()
        return values if self.tokenizer is None else {**values, "tokenizer": PurePosixPath(self.tokenizer).name}

    @property
    def chunking(self) -> Chunker:
        if self.tokenizer is not None:
            return ModelTokens(self.tokenizer, self.chunk_size, self.chunk_overlap)
        return Chunking(self.by, self.chunk_size, self.chunk_overlap, self.longer, self.intact)

    def described(self) -> str:
        return str(self.chunking)
