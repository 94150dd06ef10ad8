"""The `tfidf` retriever: the cosine of vectors of weighted words, in process."""

from dataclasses import dataclass
from functools import lru_cache

from rankbeam.transforms.clients.retrievers.index.units import Indexed
from rankbeam.transforms.clients.retrievers.lexical import LexicalParameters
from rankbeam.transforms.kernels.search.top import top
from rankbeam.transforms.kernels.search.weights import TfIdfScorer
from rankbeam.transforms.records.documents import Documents
from rankbeam.transforms.records.queries import Query, Ranking


class TfIdf(LexicalParameters):
    """Cosine of tf-idf vectors, with 1 + ln(tf) and a smooth idf: scikit-learn's, with sublinear_tf."""

    def search(self, documents: Documents) -> "TfIdfIndex":
        """The index of documents or chunks; one that is open already is used again."""
        return _opened(self.index(documents))


@dataclass(frozen=True)
class TfIdfIndex:
    """An index that answers queries."""

    indexed: Indexed
    scorer: TfIdfScorer

    @property
    def warnings(self) -> tuple[str, ...]:
        """About documents without text."""
        return self.indexed.warnings

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The first `top_k` documents or chunks that share a word with the query, by score, then by id (descending)."""
        terms = self.indexed.known(query.text)
        if not terms:
            return Ranking((), ())
        scores = self.scorer.scores(terms)
        best = top(scores, top_k)
        return self.indexed.units.ranking(best, scores[best])

    def close(self) -> None:
        """Do nothing: the next bundle of this process uses the index again."""


@lru_cache(2)
def _opened(indexed: Indexed) -> TfIdfIndex:
    return TfIdfIndex(indexed, TfIdfScorer.of(indexed.postings))
