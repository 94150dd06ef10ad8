"""The `bm25` retriever: an index of the dataset's corpus, in process, by the bm25s library."""

import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import bm25s
import numpy as np
import Stemmer
from pydantic import Field, field_validator

from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.formats.places import Place, repeated_at
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
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
        if corpus is None:
            raise InputError("a bm25 retriever needs dataset.corpus")
        return _index(self, corpus, sources.version(corpus))


@dataclass(frozen=True)
class Bm25Index:
    """An index that answers queries.

    Documents are indexed in descending byte order of their ids. So the first of several documents with equal scores is
    the one that trec_eval ranks first, and no result depends on the order of the corpus file.

    Attributes:
        doc_ids: ids of the documents.
        index: of their words.
        analyse: splits texts into words.
        warnings: about documents without text.
    """

    doc_ids: tuple[str, ...]
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
        doc_ids = self.doc_ids
        return Ranking(
            tuple(doc_ids[position] for position in best.tolist()), tuple(scores[best].astype(float).tolist())
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
def _index(parameters: Bm25, corpus: str, version: Version) -> Bm25Index:
    words = (parameters.fields, parameters.stemming, parameters.stop_words)
    doc_ids, tokens, warnings = _tokens(corpus, version, *words)
    index = bm25s.BM25(k1=parameters.k1, b=parameters.b, delta=parameters.delta, method=parameters.method)
    index.index(tokens, show_progress=False)
    return Bm25Index(doc_ids, index, _analyser(parameters.stemming, parameters.stop_words), warnings)


@_once(size=1)
def _tokens(
    corpus: str, version: Version, fields: tuple[str, ...], stemming: str, stop_words: str | tuple[str, ...]
) -> tuple[tuple[str, ...], list[list[str]], tuple[str, ...]]:
    """Ids, words and warnings of all documents; cached, because a sweep over k1 and b indexes the same words again."""
    del version
    entries: dict[str, tuple[str, Place]] = {}
    for path in sources.expand(corpus):
        for entry in texts.read_entries(path, "corpus"):
            if entry.id in entries:
                places = [entries[entry.id][1], (path, entry.line)]
                raise repeated_at(f"document {entry.id!r} is given twice", places, "ids must differ")
            text = " ".join(part for part in (getattr(entry, field) for field in fields) if part)
            entries[entry.id] = (text, (path, entry.line))
    doc_ids = tuple(sorted(entries, key=str.encode, reverse=True))
    words = _analyser(stemming, stop_words)([entries[name][0] for name in doc_ids])
    if not any(words):
        raise InputError("no document of the corpus has a word to index", path=corpus)
    empty = [name for name in reversed(doc_ids) if not entries[name][0].strip()]
    examples = ", ".join(map(repr, empty[:3]))
    warnings = (f"{len(empty):,} of {len(doc_ids):,} documents without text, such as {examples}",) if empty else ()
    return doc_ids, words, warnings


def _analyser(stemming: str, stop_words: str | tuple[str, ...]) -> Callable[[list[str]], list[list[str]]]:
    stemmer = None if stemming == "none" else Stemmer.Stemmer(stemming)
    dropped: Any = [] if stop_words == "none" else stop_words if isinstance(stop_words, str) else list(stop_words)

    def analyse(documents: list[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(
            documents, stopwords=dropped, stemmer=stemmer, return_ids=False, show_progress=False
        )
        return words

    return analyse
