"""The `tfidf` retriever: the cosine of vectors of weighted words, in process."""

from dataclasses import dataclass
from functools import lru_cache

from rankbeam.transforms.clients.retrievers.lexical import LexicalIndex, LexicalParameters
from rankbeam.transforms.clients.search.units import Indexed
from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.search.top import top
from rankbeam.transforms.kernels.search.weights import TfIdfScorer
from rankbeam.transforms.records.documents import Documents


class TfIdf(LexicalParameters):
    """Cosine of tf-idf vectors, with 1 + ln(tf) and a smooth idf: scikit-learn's, with sublinear_tf."""

    def search(self, documents: Documents) -> "TfIdfIndex":
        return _opened(self.index(documents))


@dataclass(frozen=True)
class TfIdfIndex(LexicalIndex):
    """An index that answers queries."""

    scorer: TfIdfScorer

    def best(self, terms: list[int], top_k: int) -> tuple[IntArray, FloatArray]:
        scores = self.scorer.scores(terms)
        places = top(scores, top_k)
        return places, scores[places]


@lru_cache(2)
def _opened(indexed: Indexed) -> TfIdfIndex:
    return TfIdfIndex(indexed, TfIdfScorer.of(indexed.postings))
