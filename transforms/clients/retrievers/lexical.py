"""Retrievers by words, in process: the parameters and the index that they share, `bm25`, and `tfidf`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar, Literal

import Stemmer
from pydantic import Field, field_validator

from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
from rankbeam.transforms.clients.search.analysis import STOP_WORDS, WORDS, Analysis, Tokenizer
from rankbeam.transforms.clients.search.units import IndexedUnits, index_documents
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, SingleArray
from rankbeam.transforms.kernels.search.top import best, top
from rankbeam.transforms.kernels.search.weights import Bm25Formula, Bm25Scorer, TfIdfScorer
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.queries import Documents, Query, Ranking


class LexicalParameters(RetrieverParameters):
    """The parameters of retrievers by words.

    Attributes:
        stemming: Snowball algorithm such as "english", or "none".
        stop_words: language whose stop words are removed, "none", or a list of words.
        tokenizer: way to split a text. "words" extracts runs of two or more letters, digits and underscores and keeps
            accents; "bigrams" extracts pairs of adjacent characters in Chinese, Japanese, Korean, Thai, Lao, Khmer and
            Burmese.
        fields: parts of a document that are indexed; chunks are indexed with their document's title.
    """

    stemming: str = "english"
    stop_words: str | tuple[str, ...] = "english"
    fields: tuple[Literal["title", "text"], ...] = ("title", "text")
    tokenizer: Tokenizer = WORDS

    added: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    needs: ClassVar[tuple[str, ...]] = ("queries", "corpus")
    searches: ClassVar[frozenset[str]] = frozenset({"chunks"})
    appends_passages: ClassVar[bool] = True

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

    def open(self, corpus: str | None) -> Retriever:
        return self.search(Documents(corpus))

    def prepare(self, documents: Documents) -> None:
        self.search(documents).close()

    def index(self, documents: Documents) -> IndexedUnits:
        if documents.path is None:
            raise InputError("a retriever by words needs dataset.corpus")
        return index_documents(documents, Analysis(self.stemming, self.stop_words, self.tokenizer), self.fields)


@dataclass(frozen=True)
class LexicalIndex:
    """An index of words."""

    indexed: IndexedUnits

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.indexed.warnings

    def close(self) -> None:
        """Do nothing: the next bundle of this process uses the index again."""


@dataclass(frozen=True)
class TermIndex(LexicalIndex):
    """An index that answers queries by their terms; `best` finds units with their scores."""

    best: Callable[[list[int], int], tuple[IntArray, FloatArray | SingleArray]]

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The first `top_k` documents or chunks that match, by score, then by id (descending)."""
        terms = self.indexed.known(query.text)
        return self.indexed.units.ranking(*self.best(terms, top_k)) if terms else Ranking((), ())


class Bm25(LexicalParameters):
    """Okapi BM25 and its variants (Robertson and Zaragoza, 2009; Kamphuis et al., ECIR 2020).

    Attributes:
        k1: term-frequency saturation.
        b: document-length normalisation, from 0 (none) to 1 (full).
        delta: bonus of terms in bm25l and bm25+; other methods ignore it. As in the bm25s library, texts without a term
            get the bonus as well, so it does not affect rankings in bm25+.
        method: variant of the formula.
    """

    k1: Annotated[float, Field(ge=0.0, le=100.0)] = 1.2
    b: Annotated[float, Field(ge=0.0, le=1.0)] = 0.75
    delta: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5
    method: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = "lucene"

    def search(self, documents: Documents) -> TermIndex:
        return _opened_bm25(Bm25Formula(self.method, self.k1, self.b, self.delta), self.index(documents))


@lru_cache(2)
def _opened_bm25(formula: Bm25Formula, indexed: IndexedUnits) -> TermIndex:
    """The index; with robertson and atire, a term that every unit has matches nothing."""
    return TermIndex(indexed, partial(best, Bm25Scorer.of(formula, indexed.postings)))


class TfIdf(LexicalParameters):
    """Cosine of tf-idf vectors, with 1 + ln(tf) and a smooth idf: scikit-learn's, with sublinear_tf."""

    def search(self, documents: Documents) -> TermIndex:
        return _opened_tfidf(self.index(documents))


@lru_cache(2)
def _opened_tfidf(indexed: IndexedUnits) -> TermIndex:
    return TermIndex(indexed, partial(_nearest, TfIdfScorer.of(indexed.postings)))


def _nearest(scorer: TfIdfScorer, terms: list[int], top_k: int) -> tuple[IntArray, FloatArray]:
    scores = scorer.scores(terms)
    places = top(scores, top_k)
    return places, scores[places]
