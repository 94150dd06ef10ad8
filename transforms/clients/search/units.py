"""Units that a retriever ranks: documents or chunks, with their tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from rankbeam.transforms.clients.search.analysis import WORDS, Analysis
from rankbeam.transforms.clients.search.collection import Collection, collection_of
from rankbeam.transforms.clients.search.tokens import TokenIndex, Vocabulary, mapped, tokens_of, vocabulary_of
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.search.bigrams import has_pairs
from rankbeam.transforms.kernels.search.postings import Pieces, Postings, build, within
from rankbeam.transforms.kernels.search.words import concatenated
from rankbeam.transforms.records.chunking import Chunker
from rankbeam.transforms.records.documents import Documents
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Ranking

_SPANS = "spans.i32"
_TERMS_LOOKED_AT, _SHARE_OF_UNDIVIDED = 10_000, 0.1
_ROWS_AT_ONCE = 4000
_POSTINGS = ("unit", "count", "length")


@dataclass(frozen=True, eq=False)
class Units:
    """Documents or chunks, by descending id of the document, then in the order of the text.

    Attributes:
        documents: description of the documents to search.
        collection: the documents.
        row: int64[u], document of each unit.
        start: int64[u], beginning in the text, in code points.
        end: int64[u], end in the text.
    """

    documents: Documents
    collection: Collection
    row: IntArray
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        """The number of units."""
        return len(self.row)

    def texts(self, places: IntArray) -> tuple[str, ...]:
        """The texts of some units."""
        spans = zip(self.row[places].tolist(), self.start[places].tolist(), self.end[places].tolist(), strict=True)
        return tuple(self.collection.text(row)[start:end] for row, start, end in spans)

    def ranking(self, places: IntArray, scores: np.ndarray) -> Ranking:
        """The ranking of some units."""
        doc_ids = self.collection.doc_ids.take(self.row[places]).to_pylist()
        is_cut = self.documents.chunking is not None
        if is_cut and not self.documents.as_documents:
            spans = zip(doc_ids, self.start[places].tolist(), self.end[places].tolist(), strict=True)
            doc_ids = [self.documents.name(*span) for span in spans]
        texts = self.texts(places) if is_cut and self.documents.with_texts else ()
        return Ranking(tuple(doc_ids), tuple(scores.astype(float).tolist()), texts)


@lru_cache(2)
def units_of(documents: Documents, collection: Collection) -> Units:
    """The units that a retriever ranks."""
    chunking = documents.chunking
    if chunking is None:
        row = collection.order
        return Units(documents, collection, row, np.zeros(len(row), np.int64), np.zeros(len(row), np.int64))
    parameters = chunking.identity
    folder = collection.indexes.get("chunks", parameters, lambda into: _cut(collection, chunking, into / _SPANS))
    row, start, end = mapped(folder / _SPANS).reshape(-1, 3).T.astype(np.int64)
    rank = np.empty(len(collection.order), np.int64)
    rank[collection.order] = np.arange(len(rank))
    order = np.argsort(rank[row], kind="stable")
    return Units(documents, collection, row[order], start[order], end[order])


def _cut(collection: Collection, chunking: Chunker, file: Path) -> None:
    """Write row, start and end of every chunk, in the order of the rows."""
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
class Indexed:
    """Units with their terms."""

    units: Units
    vocabulary: Vocabulary
    postings: Postings
    analysis: Analysis
    warnings: tuple[str, ...]
    parameters: Sequence[object]

    def known(self, text: str) -> list[int]:
        """The terms of a query that a unit may have, in order."""
        places = map(self.vocabulary.place, self.analysis.of_text(text))
        return [place for place in places if place is not None]


def indexed(documents: Documents, analysis: Analysis, fields: tuple[str, ...]) -> Indexed:
    """The units of documents, with the terms of these fields; read once, as long as the documents are the same."""
    return _indexed(documents, collection_of(documents), analysis, fields)


@lru_cache(2)
def _indexed(documents: Documents, collection: Collection, analysis: Analysis, fields: tuple[str, ...]) -> Indexed:
    units = units_of(documents, collection)
    chunking = documents.chunking
    cut = None if chunking is None else chunking.identity
    parameters = [*analysis.parameters[:2], sorted(fields), cut, *analysis.parameters[2:]]
    folder = collection.indexes.get("postings", parameters, lambda into: _index(units, analysis, fields, into))
    vocabulary = vocabulary_of(collection, analysis)
    offsets = np.fromfile(folder / "offsets.i64", np.int64)
    if not offsets[-1]:
        raise InputError("no document of the corpus has a word to index", path=documents.path)
    arrays = (mapped(folder / f"{name}.i32") for name in _POSTINGS)
    seen = fields if chunking is None else ("text",)
    warnings = (
        *collection.warnings(seen),
        *collection.lacking(documents.judgements),
        *_undivided(vocabulary, analysis),
    )
    return Indexed(units, vocabulary, Postings(offsets, *arrays), analysis, warnings, parameters)


def _undivided(vocabulary: Vocabulary, analysis: Analysis) -> Iterator[str]:
    """That words are whole sentences, where a script has no blanks between words."""
    some = vocabulary.some(_TERMS_LOOKED_AT)
    share = sum(map(has_pairs, some)) / max(1, len(some))
    if analysis.tokenizer == WORDS and share >= _SHARE_OF_UNDIVIDED:
        yield (
            f"{share:.0%} of the terms are in scripts without blanks between words (Chinese, Japanese, Korean, Thai "
            "…), where a term is a run of characters that queries rarely repeat; set tokenizer: bigrams"
        )


def _index(units: Units, analysis: Analysis, fields: tuple[str, ...], folder: Path) -> None:
    tokens = tokens_of(units.collection, analysis)
    pieces = _pieces(units, tokens, fields)

    def tokens_in(first: int, last: int) -> IntArray:
        return tokens.term[pieces.places(first, last)].astype(np.int64)

    postings = build(len(tokens.vocabulary), pieces.length, tokens_in)
    postings.offsets.tofile(folder / "offsets.i64")
    for name in _POSTINGS:
        getattr(postings, name).tofile(folder / f"{name}.i32")


def _pieces(units: Units, tokens: TokenIndex, fields: tuple[str, ...]) -> Pieces:
    """The ranges of tokens of each unit."""
    ends = np.cumsum(tokens.title + tokens.text)
    of_text = ends - tokens.text
    title, title_length = (of_text - tokens.title)[units.row], tokens.title[units.row]
    text, text_length = of_text[units.row], tokens.text[units.row]
    if units.documents.chunking is not None:
        text, text_length = _inside(units, tokens, of_text)
    nothing = np.zeros(len(units), np.int64)
    return Pieces(
        title, title_length if "title" in fields else nothing, text, text_length if "text" in fields else nothing
    )


def _inside(units: Units, tokens: TokenIndex, of_text: IntArray) -> tuple[IntArray, IntArray]:
    """The first token and the number of tokens of each chunk, which are those that begin inside its span."""
    begin, count = np.empty(len(units), np.int64), np.empty(len(units), np.int64)
    by_row = np.argsort(units.row, kind="stable")
    row = units.row[by_row]
    for first in range(0, len(of_text), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        some = by_row[slice(*np.searchsorted(row, [first, first + _ROWS_AT_ONCE]))]
        places = concatenated(of_text[rows], tokens.text[rows])
        offsets = np.concatenate([[0], np.cumsum(tokens.text[rows])])
        inside, count[some] = within(
            tokens.start[places].astype(np.int64), offsets, units.start[some], units.end[some], units.row[some] - first
        )
        begin[some] = np.append(places, 0)[inside]
    return begin, count
