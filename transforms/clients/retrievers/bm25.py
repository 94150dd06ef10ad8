"""The `bm25` retriever: an index of the dataset's corpus, or of chunks of it, in process."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from rankbeam.transforms.clients.retrievers.index.units import Indexed
from rankbeam.transforms.clients.retrievers.lexical import LexicalParameters
from rankbeam.transforms.kernels.search.pruned import best
from rankbeam.transforms.kernels.search.weights import Bm25Formula, Bm25Scorer
from rankbeam.transforms.records.documents import Documents
from rankbeam.transforms.records.queries import Query, Ranking


class Bm25(LexicalParameters):
    """Okapi BM25 and its variants (Robertson and Zaragoza, 2009; Kamphuis et al., ECIR 2020).

    Attributes:
        k1: term-frequency saturation.
        b: document-length normalisation, from 0 (none) to 1 (full).
        delta: bonus per matching term in bm25l and bm25+; other methods ignore it.
        method: variant of the formula.
    """

    k1: Annotated[float, Field(ge=0.0, le=100.0)] = 1.2
    b: Annotated[float, Field(ge=0.0, le=1.0)] = 0.75
    delta: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5
    method: Literal["lucene", "robertson", "atire", "bm25l", "bm25+"] = "lucene"

    def search(self, documents: Documents) -> "Bm25Index":
        """The index of documents or chunks; one that is open already is used again."""
        return _opened(Bm25Formula(self.method, self.k1, self.b, self.delta), self.index(documents))


@dataclass(frozen=True)
class Bm25Index:
    """An index that answers queries."""

    indexed: Indexed
    scorer: Bm25Scorer

    @property
    def warnings(self) -> tuple[str, ...]:
        """About documents without text."""
        return self.indexed.warnings

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The first `top_k` documents or chunks that match, by score, then by id (descending).

        What has no word of the query does not match. With robertson and atire, neither does what has only words of the
        query that everything has.
        """
        terms = self.indexed.known(query.text)
        if not terms:
            return Ranking((), ())
        return self.indexed.units.ranking(*best(self.scorer, terms, top_k))

    def close(self) -> None:
        """Do nothing: the next bundle of this process uses the index again."""


@lru_cache(2)
def _opened(formula: Bm25Formula, indexed: Indexed) -> Bm25Index:
    return Bm25Index(indexed, Bm25Scorer.of(formula, indexed.postings))
