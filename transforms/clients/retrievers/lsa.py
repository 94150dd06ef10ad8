"""The `lsa` retriever: latent semantic analysis, an embedding that the documents themselves give, in process."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from rankbeam.transforms.clients.retrievers.lexical import LexicalIndex, LexicalParameters
from rankbeam.transforms.clients.search.units import IndexedUnits
from rankbeam.transforms.kernels.arrays import SingleArray
from rankbeam.transforms.kernels.search.nearest import nearest, unit_length
from rankbeam.transforms.kernels.search.svd import OVERSAMPLES, POWER_ITERATIONS, ROUNDING, SEED, SparseRows, decompose
from rankbeam.transforms.kernels.search.weights import TfIdfScorer, sublinear_tf
from rankbeam.transforms.records.queries import Documents, Query, Ranking

_POSTINGS_AT_ONCE = 1 << 20
_NOISE = 1e-5  # a vector of length 1 before the projection, and shorter than this after it, has only rounding errors


class Lsa(LexicalParameters):
    """Latent semantic analysis (Deerwester et al., JASIS 1990): a truncated decomposition of the tf-idf vectors.

    Attributes:
        dimension: number of dimensions of word, document and query vectors.
    """

    dimension: Annotated[int, Field(ge=1, le=4096)] = 100

    def search(self, documents: Documents) -> "LsaIndex":
        return _open_index(self.index(documents), self.dimension)


@dataclass(frozen=True)
class LsaIndex(LexicalIndex):
    """An index that answers queries."""

    scorer: TfIdfScorer
    vectors: SingleArray  # float32[u, k], of documents or chunks, of length 1
    terms: SingleArray

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The first `top_k` documents or chunks, by the cosine of their vectors with that of the query."""
        return self.retrieve_all([query], top_k)[0]

    def retrieve_all(self, queries: Sequence[Query], top_k: int) -> list[Ranking]:
        vectors = unit_length(np.stack([self._vector(query.text) for query in queries]))
        neighbours = nearest(self.vectors, vectors, top_k)
        known = (bool(self.indexed.known(query.text)) for query in queries)
        nothing = Ranking((), ())
        return [
            self.indexed.units.ranking(places, scores) if is_known else nothing
            for (places, scores), is_known in zip(neighbours, known, strict=True)
        ]

    def _vector(self, text: str) -> SingleArray:
        known = self.indexed.known(text)
        if not known:
            return np.zeros(self.terms.shape[1], np.float32)
        term, weight = self.scorer.query(known)
        vector: SingleArray = (weight[:, None] * self.terms[term]).sum(axis=0).astype(np.float32)
        return vector


@lru_cache(1)
def _open_index(indexed: IndexedUnits, dimension: int) -> LsaIndex:
    scorer = TfIdfScorer.of(indexed.postings)
    parameters = [indexed.parameters, dimension, OVERSAMPLES, POWER_ITERATIONS, SEED, ROUNDING]
    indexes = indexed.units.collection.indexes
    folder = indexes.get("lsa", parameters, lambda into: _decompose(scorer, dimension, into))
    vectors, terms = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("vectors", "terms"))
    return LsaIndex(indexed, scorer, np.asarray(vectors), np.asarray(terms))


def _decompose(scorer: TfIdfScorer, dimension: int, folder: Path) -> None:
    postings = scorer.postings
    value = np.empty(len(postings.unit), np.float32)
    for rows, term in postings.blocks(_POSTINGS_AT_ONCE):
        value[rows] = sublinear_tf(postings.count[rows]) * scorer.idf[term] / scorer.norm[postings.unit[rows]]
    matrix = SparseRows(postings.offsets, postings.unit, value)
    decomposition = decompose(matrix, len(postings.length), dimension)
    np.save(folder / "vectors.npy", unit_length(decomposition.rows, _NOISE))
    np.save(folder / "terms.npy", decomposition.columns)
