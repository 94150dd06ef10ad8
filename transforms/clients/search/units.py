"""Units that a retriever ranks: documents or chunks, with tokens, which are computed once for all ways of chunking."""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankbeam.transforms.clients.search.analysis import WORDS, Analysis
from rankbeam.transforms.clients.search.collection import Collection, collection_of, lacking_documents
from rankbeam.transforms.kernels.arrays import IntArray, concatenated_ranges
from rankbeam.transforms.kernels.search.postings import Postings, build, within
from rankbeam.transforms.kernels.search.words import has_pairs
from rankbeam.transforms.records.chunking import Chunker
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Documents, Ranking

_TERMS, _STARTS, _COUNTS, _VOCABULARY = "terms.i32", "starts.i32", "counts.i32", "vocabulary.json"
_INDEXED_TERMS = "vocabulary.arrow"
Numbers = npt.NDArray[np.int32]
_SPANS = "spans.i32"
_TERMS_SAMPLED, _SHARE_OF_UNDIVIDED = 10_000, 0.1
_ROWS_AT_ONCE = 4000
_POSTINGS = ("unit", "count", "length")


@dataclass(frozen=True)
class TokenIndex:
    """The tokens of documents, in the order of their rows: for each document, the title's, then the text's."""

    vocabulary: list[str]  # all terms, sorted by their bytes
    term: Numbers  # int32[n], each token's position in the vocabulary
    start: Numbers  # int32[n], each token's beginning in its title or text, in code points
    title: IntArray  # int64[d], number of tokens in each title
    text: IntArray  # int64[d], number of tokens in each text


@lru_cache(1)
def tokens_of(collection: Collection, analysis: Analysis) -> TokenIndex:
    """The tokens of a collection, which are computed unless its indexes have them."""
    folder = collection.indexes.get("tokens", analysis.parameters, lambda into: _make(collection, analysis, into))
    counts = np.fromfile(folder / _COUNTS, np.int32).reshape(-1, 2).astype(np.int64)
    vocabulary = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
    return TokenIndex(vocabulary, map_file(folder / _TERMS), map_file(folder / _STARTS), counts[:, 0], counts[:, 1])


def map_file(path: Path) -> Numbers:
    return np.asarray(np.memmap(path, np.int32, "r")) if path.stat().st_size else np.empty(0, np.int32)


def _make(collection: Collection, analysis: Analysis, folder: Path) -> None:
    with (folder / "raw").open("wb") as terms, (folder / _STARTS).open("wb") as starts:
        numbers, counts = _write_raw(collection, analysis, terms, starts)
    vocabulary = sorted(numbers, key=str.encode)
    (folder / _VOCABULARY).write_text(json.dumps(vocabulary), encoding="utf-8")
    np.concatenate([np.empty((0, 2), np.int32), *counts]).tofile(folder / _COUNTS)
    position_of = np.empty(len(vocabulary), np.int32)
    position_of[[numbers[term] for term in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)
    with (folder / "raw").open("rb") as raw, (folder / _TERMS).open("wb") as file:
        while block := raw.read(1 << 22):
            position_of[np.frombuffer(block, np.int32)].tofile(file)
    (folder / "raw").unlink()


def _write_raw(
    collection: Collection, analysis: Analysis, terms: BinaryIO, starts: BinaryIO
) -> tuple[dict[str, int], list[Numbers]]:
    """Write tokens, with terms numbered by first occurrence; returns the terms' numbers, and counts of tokens."""
    numbers: dict[str, int] = {}
    word_terms: dict[str, int] = {}
    counts = []
    for titles, texts in collection.batches():
        words = analysis.words([part for pair in zip(titles, texts, strict=True) for part in pair])
        known = list(map(word_terms.get, words.vocabulary))
        new = [position for position, number in enumerate(known) if number is None]
        for position, term in zip(new, analysis.terms([words.vocabulary[position] for position in new]), strict=True):
            term_number = -1 if term is None else numbers.setdefault(term, len(numbers))
            known[position] = word_terms[words.vocabulary[position]] = term_number
        number = np.array(known, np.int32)[words.word]
        is_kept = number >= 0
        number[is_kept].tofile(terms)
        words.start[is_kept].astype(np.int32).tofile(starts)
        counted = np.bincount(words.text[is_kept], minlength=2 * len(texts))
        counts.append(counted.astype(np.int32).reshape(-1, 2))
    return numbers, counts


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All terms, sorted by their bytes and mapped into memory, so that opening them takes no time."""

    terms: pa.LargeStringArray

    def __len__(self) -> int:
        return len(self.terms)

    def place(self, term: str) -> int | None:
        """The position of a term; None if no document contains it."""
        encoded = term.encode()
        position = bisect_left(self._bytes, encoded, key=lambda entry: entry.as_py())
        return position if position < len(self) and self._bytes[position].as_py() == encoded else None

    @cached_property
    def _bytes(self) -> pa.LargeBinaryArray:
        return self.terms.view(pa.large_binary())


def vocabulary_of(collection: Collection, analysis: Analysis) -> Vocabulary:
    def make(into: Path) -> None:
        terms = pa.array(tokens_of(collection, analysis).vocabulary, pa.large_string())
        with pa.OSFile(str(into / _INDEXED_TERMS), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([terms], schema=schema))

    schema = pa.schema([("term", pa.large_string())])
    folder = collection.indexes.get("vocabulary", analysis.parameters, make)
    opened = pa.ipc.open_file(pa.memory_map(str(folder / _INDEXED_TERMS)))
    return Vocabulary(opened.get_batch(0)["term"])


@dataclass(frozen=True, eq=False)
class Units:
    """Documents or chunks, by descending id of the document, then in the order of the text."""

    documents: Documents  # description of the documents to search
    collection: Collection  # the documents
    row: IntArray  # int64[u], each unit's document
    start: IntArray  # int64[u], each unit's beginning in the text, in code points
    end: IntArray  # int64[u], each unit's end in the text

    def __len__(self) -> int:
        return len(self.row)

    def texts(self, places: IntArray) -> tuple[str, ...]:
        spans = zip(self.row[places].tolist(), self.start[places].tolist(), self.end[places].tolist(), strict=True)
        return tuple(self.collection.text(row)[start:end] for row, start, end in spans)

    def ranking(self, places: IntArray, scores: np.ndarray) -> Ranking:
        doc_ids = self.collection.doc_ids.take(self.row[places]).to_pylist()
        is_cut = self.documents.chunking is not None
        if is_cut and not self.documents.as_documents:
            spans = zip(doc_ids, self.start[places].tolist(), self.end[places].tolist(), strict=True)
            doc_ids = [self.documents.name(*span) for span in spans]
        texts = self.texts(places) if is_cut and self.documents.with_texts else ()
        return Ranking(tuple(doc_ids), tuple(scores.astype(float).tolist()), texts)


@lru_cache(2)
def units_of(documents: Documents, collection: Collection) -> Units:
    chunking = documents.chunking
    if chunking is None:
        row = collection.order
        return Units(documents, collection, row, np.zeros(len(row), np.int64), np.zeros(len(row), np.int64))
    parameters = chunking.identity
    folder = collection.indexes.get("chunks", parameters, lambda into: _cut(collection, chunking, into / _SPANS))
    row, start, end = map_file(folder / _SPANS).reshape(-1, 3).T.astype(np.int64)
    rank = np.empty(len(collection.order), np.int64)
    rank[collection.order] = np.arange(len(rank))
    order = np.argsort(rank[row], kind="stable")
    return Units(documents, collection, row[order], start[order], end[order])


def _cut(collection: Collection, chunking: Chunker, file: Path) -> None:
    row = 0
    with file.open("wb") as spans:
        for _, texts in collection.batches():
            rows = [
                (row + number, start, end)
                for number, text in enumerate(texts)
                for start, end in chunking.checked_spans(text)
            ]
            np.array(rows, np.int32).reshape(-1, 3).tofile(spans)
            row += len(texts)


@dataclass(frozen=True, eq=False)
class IndexedUnits:
    """Units with their terms."""

    units: Units
    vocabulary: Vocabulary
    postings: Postings
    analysis: Analysis
    warnings: tuple[str, ...]
    parameters: Sequence[object]

    def known(self, text: str) -> list[int]:
        """The positions of a query's terms that some document contains, in order."""
        positions = map(self.vocabulary.place, self.analysis.of_text(text))
        return [position for position in positions if position is not None]


def index_documents(documents: Documents, analysis: Analysis, fields: tuple[str, ...]) -> IndexedUnits:
    """The units of documents, with the terms of these fields; cached as long as the documents are the same."""
    return _index_documents(documents, collection_of(documents), analysis, fields)


@lru_cache(2)
def _index_documents(
    documents: Documents, collection: Collection, analysis: Analysis, fields: tuple[str, ...]
) -> IndexedUnits:
    units = units_of(documents, collection)
    chunking = documents.chunking
    cut = None if chunking is None else chunking.identity
    parameters = [*analysis.parameters[:2], sorted(fields), cut, *analysis.parameters[2:]]
    folder = collection.indexes.get("postings", parameters, lambda into: _index(units, analysis, fields, into))
    vocabulary = vocabulary_of(collection, analysis)
    offsets = np.fromfile(folder / "offsets.i64", np.int64)
    if not offsets[-1]:
        raise InputError("no document of the corpus has a word to index", path=documents.path)
    arrays = (map_file(folder / f"{name}.i32") for name in _POSTINGS)
    seen = fields if chunking is None else ("text",)
    warnings = (
        *collection.warnings(seen),
        *lacking_documents(collection, documents.judgements),
        *_segmentation_warning(vocabulary, analysis),
    )
    return IndexedUnits(units, vocabulary, Postings(offsets, *arrays), analysis, warnings, parameters)


def _segmentation_warning(vocabulary: Vocabulary, analysis: Analysis) -> Iterator[str]:
    """A warning if words are whole sentences, because a script has no blanks between words."""
    sample = vocabulary.terms[:: max(1, len(vocabulary) // _TERMS_SAMPLED)].to_pylist()
    share = sum(map(has_pairs, sample)) / max(1, len(sample))
    if analysis.tokenizer == WORDS and share >= _SHARE_OF_UNDIVIDED:
        yield (
            f"{share:.0%} of the terms are in scripts without blanks between words (Chinese, Japanese, Korean, Thai "
            "…), where a term is a run of characters that queries rarely repeat; set tokenizer: bigrams"
        )


def _index(units: Units, analysis: Analysis, fields: tuple[str, ...], folder: Path) -> None:
    tokens = tokens_of(units.collection, analysis)
    starts, counts = _ranges(units, tokens, fields)

    def tokens_in(first: int, last: int) -> IntArray:
        places = concatenated_ranges(starts[first:last].ravel(), counts[first:last].ravel())
        return tokens.term[places].astype(np.int64)

    postings = build(len(tokens.vocabulary), counts.sum(axis=1), tokens_in)
    postings.offsets.tofile(folder / "offsets.i64")
    for name in _POSTINGS:
        getattr(postings, name).tofile(folder / f"{name}.i32")


def _ranges(units: Units, tokens: TokenIndex, fields: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """int64[u, 2], int64[u, 2]: the first token of each unit's title and text in the index, and their lengths."""
    ends = np.cumsum(tokens.title + tokens.text)
    text_starts = ends - tokens.text
    title, title_length = (text_starts - tokens.title)[units.row], tokens.title[units.row]
    text, text_length = text_starts[units.row], tokens.text[units.row]
    if units.documents.chunking is not None:
        text, text_length = _inside(units, tokens, text_starts)
    counts = np.stack([title_length * ("title" in fields), text_length * ("text" in fields)], axis=1)
    return np.stack([title, text], axis=1), counts


def _inside(units: Units, tokens: TokenIndex, text_starts: IntArray) -> tuple[IntArray, IntArray]:
    """The first token and the number of tokens of each chunk; a chunk's tokens are those that begin in its span."""
    begin, count = np.empty(len(units), np.int64), np.empty(len(units), np.int64)
    by_row = np.argsort(units.row, kind="stable")
    row = units.row[by_row]
    for first in range(0, len(text_starts), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        unit = by_row[slice(*np.searchsorted(row, [first, first + _ROWS_AT_ONCE]))]
        places = concatenated_ranges(text_starts[rows], tokens.text[rows])
        offsets = np.concatenate([[0], np.cumsum(tokens.text[rows])])
        inside, count[unit] = within(
            tokens.start[places].astype(np.int64), offsets, units.start[unit], units.end[unit], units.row[unit] - first
        )
        begin[unit] = np.append(places, 0)[inside]
    return begin, count
