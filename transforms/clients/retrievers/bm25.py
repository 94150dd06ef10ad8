"""The `bm25` retriever: an index of the dataset's corpus, in process, by the bm25s library."""

import functools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import bm25s
import numpy as np
import Stemmer
from pydantic import Field, field_validator

from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.formats.places import Place, repeated_at
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.records.documents import Documents
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Query, Ranking
from rankbeam.transforms.records.suggestions import did_you_mean

logging.getLogger("bm25s").setLevel(logging.WARNING)  # the library sets itself to DEBUG

STOP_WORDS = (
    "chinese", "danish", "dutch", "english", "english_plus", "french", "german", "italian",
    "korean", "norwegian", "portuguese", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip


class Bm25(RetrieverParameters):
    """Okapi BM25 and its variants (Robertson and Zaragoza, 2009; Kamphuis et al., ECIR 2020).

    Attributes:
        k1: saturation of term frequency.
        b: normalisation by document length, from 0 (none) to 1 (full).
        delta: the bonus of bm25l and bm25+; other methods ignore it.
        method: the variant of the formula.
        stemming: a Snowball algorithm such as "english", or "none".
        stop_words: a language whose stop words are dropped, "none", or a list of words.
        fields: the parts of a document that are indexed.
    """

    k1: Annotated[float, Field(ge=0.0, le=100.0)] = 1.2
    b: Annotated[float, Field(ge=0.0, le=1.0)] = 0.75
    delta: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5
    method: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = "lucene"
    stemming: str = "english"
    stop_words: str | tuple[str, ...] = "english"
    fields: tuple[Literal["title", "text"], ...] = ("title", "text")

    needs: ClassVar[tuple[str, ...]] = ("queries", "corpus")
    searches: ClassVar[frozenset[str]] = frozenset({"chunks"})

    @field_validator("stemming")
    @classmethod
    def _known_stemmer(cls, value: str) -> str:
        if value != "none" and value not in Stemmer.algorithms():
            raise ValueError(f"unknown stemming; {did_you_mean(value, [*Stemmer.algorithms(), 'none'])}")
        return value

    @field_validator("stop_words")
    @classmethod
    def _known_stop_words(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str) and value not in (*STOP_WORDS, "none"):
            raise ValueError(f"unknown stop words; {did_you_mean(value, [*STOP_WORDS, 'none'])}")
        return value

    @field_validator("fields")
    @classmethod
    def _some_fields(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one of title, text")
        return value

    def open(self, corpus: str | None) -> "Bm25Index":
        """The index of a corpus; built once per process, however many bundles need it."""
        return self.search(Documents(corpus))

    def search(self, documents: Documents) -> "Bm25Index":
        """As `open`, over documents or chunks of them."""
        if documents.path is None:
            raise InputError("a bm25 retriever needs dataset.corpus")
        return _index(self, documents, sources.version(documents.path))


@dataclass(frozen=True)
class Bm25Index:
    """An index that answers queries.

    Documents are indexed in descending byte order of their ids. So the first of several documents with equal scores is
    the one that trec_eval ranks first, and no result depends on the order of the corpus file.

    Attributes:
        doc_ids: ids of the documents, or of those that chunks are of.
        texts: of the chunks, where rankings carry them; else empty.
        index: of their words.
        analyse: splits texts into words.
        warnings: about documents without text.
    """

    doc_ids: tuple[str, ...]
    texts: tuple[str, ...]
    index: bm25s.BM25
    analyse: Callable[[list[str]], list[list[str]]]
    warnings: tuple[str, ...]

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The first `top_k` documents that match, by score, then by id (descending).

        A document without any word of the query does not match. With robertson and atire, neither does a document whose
        only words of the query are in every document.
        """
        words = self.analyse([query.text])[0]
        tokens = self.index.get_tokens_ids(words)
        if not tokens:
            return Ranking((), ())
        scores = self.index.get_scores_from_ids(tokens)
        # Documents without any of the words all have the same score: 0, or the score of bm25l and bm25+ for absence.
        absent = self.index.nonoccurrence_array
        baseline = scores.dtype.type(0 if absent is None else absent[np.asarray(tokens)].sum())
        best = top(scores, top_k, baseline)
        positions, doc_ids, texts = best.tolist(), self.doc_ids, self.texts
        return Ranking(
            tuple(doc_ids[position] for position in positions),
            tuple(scores[best].astype(float).tolist()),
            tuple(texts[position] for position in positions) if texts else (),
        )

    def close(self) -> None:
        """Do nothing: the next bundle of this process uses the index again."""


def top(scores: FloatArray, count: int, baseline: float = 0.0) -> IntArray:
    """The positions of the highest scores, highest first; of equal scores the earlier position first.

    Args:
        scores: float[n].
        count: number of positions, at most.
        baseline: positions with this score are left out.

    Returns:
        int64[≤ count].

    >>> top(np.array([1.0, 3.0, 0.0, 3.0, 1.0]), 3).tolist()
    [1, 3, 0]
    """
    candidates = np.flatnonzero(scores != baseline)
    if len(candidates) > count:
        candidate_scores = scores[candidates]
        threshold = np.partition(candidate_scores, len(candidates) - count)[len(candidates) - count]
        above, equal = candidates[candidate_scores > threshold], candidates[candidate_scores == threshold]
        candidates = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


Version = tuple[tuple[str, int, float], ...]
_T = TypeVar("_T")


def _once(size: int) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """Like lru_cache, but when two threads request the same value, the second waits instead of making it again."""

    def decorate(make: Callable[..., _T]) -> Callable[..., _T]:
        cached, lock = functools.lru_cache(size)(make), threading.Lock()

        @functools.wraps(make)
        def call(*arguments: Any) -> _T:
            with lock:
                return cached(*arguments)

        return call

    return decorate


@_once(size=2)
def _index(parameters: Bm25, documents: Documents, version: Version) -> Bm25Index:
    words = (parameters.fields, parameters.stemming, parameters.stop_words)
    doc_ids, chunk_texts, tokens, warnings = _tokens(documents, version, *words)
    index = bm25s.BM25(k1=parameters.k1, b=parameters.b, delta=parameters.delta, method=parameters.method)
    index.index(tokens, show_progress=False)
    return Bm25Index(doc_ids, chunk_texts, index, _analyser(parameters.stemming, parameters.stop_words), warnings)


@_once(size=1)
def _tokens(
    documents: Documents,
    version: Version,
    fields: tuple[str, ...],
    stemming: str,
    stop_words: str | tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...], list[list[str]], tuple[str, ...]]:
    """Ids, texts, words and warnings of all documents or chunks; cached: a sweep over k1 and b indexes them again."""
    del version
    corpus = documents.path or ""
    entries: dict[str, tuple[texts.Entry, Place]] = {}
    for path in sources.expand(corpus):
        for entry in texts.read_entries(path, "corpus"):
            if entry.id in entries:
                places = [entries[entry.id][1], (path, entry.line)]
                raise repeated_at(f"document {entry.id!r} is given twice", places, "ids must differ")
            entries[entry.id] = (entry, (path, entry.line))
    names = sorted(entries, key=str.encode, reverse=True)
    pieces = [piece for name in names for piece in _pieces(documents, entries[name][0])]
    words = _analyser(stemming, stop_words)([piece.indexed(fields) for piece in pieces])
    if not any(words):
        raise InputError("no document of the corpus has a word to index", path=corpus)
    whole = {name: _Piece(name, entry.title, entry.text).indexed(fields) for name, (entry, _) in entries.items()}
    empty = [name for name in reversed(names) if not whole[name].strip()]
    examples = ", ".join(map(repr, empty[:3]))
    warnings = (f"{len(empty):,} of {len(names):,} documents without text, such as {examples}",) if empty else ()
    kept = tuple(piece.text for piece in pieces) if documents.with_texts and documents.chunking else ()
    return tuple(piece.name for piece in pieces), kept, words, warnings


class _Piece(NamedTuple):
    """A document, or a chunk of one with its document's title."""

    name: str
    title: str
    text: str

    def indexed(self, fields: tuple[str, ...]) -> str:
        return " ".join(part for part in (getattr(self, field) for field in fields) if part)


def _pieces(documents: Documents, entry: texts.Entry) -> Iterator[_Piece]:
    if documents.chunking is None:
        yield _Piece(entry.id, entry.title, entry.text)
        return
    for start, end in documents.chunking.spans(entry.text):
        yield _Piece(documents.name(entry.id, start, end), entry.title, entry.text[start:end])


def _analyser(stemming: str, stop_words: str | tuple[str, ...]) -> Callable[[list[str]], list[list[str]]]:
    stemmer = None if stemming == "none" else Stemmer.Stemmer(stemming)
    dropped: Any = [] if stop_words == "none" else stop_words if isinstance(stop_words, str) else list(stop_words)

    def analyse(documents: list[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(
            documents, stopwords=dropped, stemmer=stemmer, return_ids=False, show_progress=False
        )
        return words

    return analyse
