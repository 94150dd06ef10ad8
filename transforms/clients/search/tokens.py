"""The tokens and terms of all documents: made once, whatever the documents are cut into."""

import json
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankbeam.transforms.clients.search.analysis import Analysis
from rankbeam.transforms.clients.search.collection import Collection
from rankbeam.transforms.kernels.arrays import IntArray

_TERMS, _STARTS, _COUNTS, _VOCABULARY = "terms.i32", "starts.i32", "counts.i32", "vocabulary.json"
_INDEXED_TERMS = "vocabulary.arrow"
Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TokenIndex:
    """The tokens of documents, in the order of their rows: for each those of its title, then those of its text.

    Attributes:
        vocabulary: every term, in the order of their bytes.
        term: int32[n], of each token, its position in the vocabulary.
        start: int32[n], where it begins in the text, in code points; in the title for tokens of that.
        title: int64[d], tokens of each title.
        text: int64[d], tokens of each text.
    """

    vocabulary: list[str]
    term: Numbers
    start: Numbers
    title: IntArray
    text: IntArray


@lru_cache(1)
def tokens_of(collection: Collection, analysis: Analysis) -> TokenIndex:
    """The tokens of a collection, made or found on its indexes."""
    folder = collection.indexes.get("tokens", analysis.parameters, lambda into: _make(collection, analysis, into))
    counts = np.fromfile(folder / _COUNTS, np.int32).reshape(-1, 2).astype(np.int64)
    vocabulary = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
    return TokenIndex(vocabulary, mapped(folder / _TERMS), mapped(folder / _STARTS), counts[:, 0], counts[:, 1])


def mapped(path: Path) -> Numbers:
    """A file of numbers, mapped into memory."""
    return np.asarray(np.memmap(path, np.int32, "r")) if path.stat().st_size else np.empty(0, np.int32)


def _make(collection: Collection, analysis: Analysis, folder: Path) -> None:
    with (folder / "raw").open("wb") as terms, (folder / _STARTS).open("wb") as starts:
        numbers, counts = _write_raw(collection, analysis, terms, starts)
    vocabulary = sorted(numbers, key=str.encode)
    (folder / _VOCABULARY).write_text(json.dumps(vocabulary), encoding="utf-8")
    np.concatenate([np.empty((0, 2), np.int32), *counts]).tofile(folder / _COUNTS)
    place_of = np.empty(len(vocabulary), np.int32)
    place_of[[numbers[term] for term in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)
    with (folder / "raw").open("rb") as raw, (folder / _TERMS).open("wb") as file:
        while block := raw.read(1 << 22):
            place_of[np.frombuffer(block, np.int32)].tofile(file)
    (folder / "raw").unlink()


def _write_raw(
    collection: Collection, analysis: Analysis, terms: BinaryIO, starts: BinaryIO
) -> tuple[dict[str, int], list[Numbers]]:
    """Write tokens with the numbers that terms have by their first occurrence; return these, and counts of tokens."""
    numbers: dict[str, int] = {}
    of_word: dict[str, int] = {}
    counts = []
    for titles, texts in collection.batches():
        words = analysis.words([part for pair in zip(titles, texts, strict=True) for part in pair])
        known = list(map(of_word.get, words.vocabulary))
        new = [place for place, number in enumerate(known) if number is None]
        for place, term in zip(new, analysis.terms([words.vocabulary[place] for place in new]), strict=True):
            of_term = -1 if term is None else numbers.setdefault(term, len(numbers))
            known[place] = of_word[words.vocabulary[place]] = of_term
        number = np.array(known, np.int32)[words.word]
        is_kept = number >= 0
        number[is_kept].tofile(terms)
        words.start[is_kept].astype(np.int32).tofile(starts)
        counted = np.bincount(words.text[is_kept], minlength=2 * len(texts))
        counts.append(counted.astype(np.int32).reshape(-1, 2))
    return numbers, counts


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Every term, in the order of their bytes: mapped into memory, so that opening them takes no time."""

    terms: pa.LargeStringArray

    def __len__(self) -> int:
        """The number of terms."""
        return len(self.terms)

    def place(self, term: str) -> int | None:
        """The position of a term; None where no document has it."""
        encoded = term.encode()
        place = bisect_left(self._bytes, encoded, key=lambda entry: entry.as_py())
        return place if place < len(self) and self._bytes[place].as_py() == encoded else None

    def some(self, number: int) -> list[str]:
        """About `number` of the terms, evenly chosen."""
        terms: list[str] = self.terms[:: max(1, len(self) // number)].to_pylist()
        return terms

    @cached_property
    def _bytes(self) -> pa.LargeBinaryArray:
        return self.terms.view(pa.large_binary())


def vocabulary_of(collection: Collection, analysis: Analysis) -> Vocabulary:
    """The terms of a collection, made from its tokens or read from its indexes."""

    def make(into: Path) -> None:
        terms = pa.array(tokens_of(collection, analysis).vocabulary, pa.large_string())
        with pa.OSFile(str(into / _INDEXED_TERMS), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([terms], schema=schema))

    schema = pa.schema([("term", pa.large_string())])
    folder = collection.indexes.get("vocabulary", analysis.parameters, make)
    opened = pa.ipc.open_file(pa.memory_map(str(folder / _INDEXED_TERMS)))
    return Vocabulary(opened.get_batch(0)["term"])
