"""The `bm25` retriever: an index of the dataset's corpus, or of chunks of it, in process."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from rankbeam.transforms.clients.retrievers.lexical import LexicalIndex, LexicalParameters
from rankbeam.transforms.clients.search.units import Indexed
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.search.top import best
from rankbeam.transforms.kernels.search.weights import Bm25Formula, Bm25Scorer, SingleArray
from rankbeam.transforms.records.documents import Documents


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
        return _opened(Bm25Formula(self.method, self.k1, self.b, self.delta), self.index(documents))


@dataclass(frozen=True)
class Bm25Index(LexicalIndex):
    """An index that answers queries."""

    scorer: Bm25Scorer

    def best(self, terms: list[int], top_k: int) -> tuple[IntArray, SingleArray]:
        """The units that match; with robertson and atire, a term that every unit has matches nothing."""
        return best(self.scorer, terms, top_k)


@lru_cache(2)
def _opened(formula: Bm25Formula, indexed: Indexed) -> Bm25Index:
    return Bm25Index(indexed, Bm25Scorer.of(formula, indexed.postings))
