"""Weights of terms in units: BM25 and its variants, and tf-idf.

BM25 is as in Kamphuis et al. (ECIR 2020), and computed as the bm25s library does: in double precision, then rounded to
single, so that scores are the same to the last bit.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, SingleArray
from rankbeam.transforms.kernels.search.postings import CountArray, Postings, UnitArray, common


@dataclass(frozen=True)
class Bm25Formula:
    """A variant of BM25."""

    method: str  # lucene, robertson, atire, bm25l or bm25+
    k1: float  # saturation of term frequency
    b: float  # normalisation by length
    delta: float  # the bonus of bm25l and bm25+

    def inverse_frequency(self, frequency: int, units: int) -> np.float32:
        """The weight of a term that `frequency` units contain."""
        return np.float32(_INVERSE_FREQUENCY[self.method](frequency, units))

    def saturation(self, count: npt.ArrayLike, relative_length: npt.ArrayLike) -> FloatArray:
        """The part of a score that depends on the unit.

        Args:
            count: occurrences of the term in each unit.
            relative_length: b · length / average length of each unit.
        """
        tf, k1, norm = np.asarray(count, np.float32), self.k1, (1 - self.b) + np.asarray(relative_length)
        if self.method in ("lucene", "robertson"):
            return tf / (k1 * norm + tf)
        if self.method == "atire":
            return (tf * (k1 + 1)) / (tf + k1 * norm)
        if self.method == "bm25l":
            c = tf / norm
            return ((k1 + 1) * (c + self.delta)) / (k1 + c + self.delta)
        return ((k1 + 1) * tf) / (k1 * norm + tf) + self.delta

    @property
    def limit(self) -> float:
        """The upper bound of the saturation for any number of occurrences."""
        if self.method in ("lucene", "robertson"):
            return 1.0
        return self.k1 + 1 + (self.delta if self.method == "bm25+" else 0.0)

    @property
    def absent(self) -> float:
        """The saturation of a unit of average length that lacks the term."""
        if self.method == "bm25+":
            return self.delta
        return (self.k1 + 1) * self.delta / (self.k1 + self.delta) if self.method == "bm25l" and self.delta else 0.0

    @property
    def counts_absence(self) -> bool:
        """True if a unit without a term gets a score for it."""
        return self.method in ("bm25l", "bm25+")


_INVERSE_FREQUENCY: Mapping[str, Callable[[int, int], float]] = {
    "lucene": lambda df, n: math.log(1 + (n - df + 0.5) / (df + 0.5)),
    "robertson": lambda df, n: math.log(max((n - df + 0.5) / (df + 0.5), 1)),
    "atire": lambda df, n: math.log(n / df),
    "bm25l": lambda df, n: math.log((n + 1) / (df + 0.5)),
    "bm25+": lambda df, n: math.log((n + 1) / df),
}


@dataclass(frozen=True)
class Bm25Scorer:
    """Scores units by BM25."""

    formula: Bm25Formula
    postings: Postings
    relative_length: FloatArray  # float64[u], b · length / average length

    @classmethod
    def of(cls, formula: Bm25Formula, postings: Postings) -> "Bm25Scorer":
        """The scorer of some units."""
        average = postings.length.mean(dtype=np.float64)
        return cls(formula, postings, formula.b * postings.length.astype(np.float64) / average)

    def scores(self, terms: list[int]) -> tuple[SingleArray, np.float32]:
        """The score of every unit for the terms of a query, and the score of a unit with none of them."""
        scores = np.zeros(len(self.postings.length), np.float32)
        for term in terms:
            unit, weight = self.weights(term)
            scores[unit] += weight
        baseline = self.baseline(terms)
        return scores + baseline, baseline

    def scores_of(self, units: IntArray, terms: list[int]) -> SingleArray:
        """The scores of some units, ascending: the same as `scores` gives, to the last bit."""
        scores = np.zeros(len(units), np.float32)
        for term in terms:
            self.add(term, units, scores)
        return scores + self.baseline(terms)

    def add(self, term: int, units: IntArray, scores: SingleArray) -> None:
        """Add the weights of a term to the scores of some units, ascending."""
        unit, count = self.postings.of(term)
        unit_rows, term_rows = common(units.astype(unit.dtype), unit)
        scores[unit_rows] += self._term_weights(term, unit[term_rows], count[term_rows])

    def weights(self, term: int) -> tuple[UnitArray, SingleArray]:
        """The units that have a term, and its contribution to the score of each."""
        unit, count = self.postings.of(term)
        return unit, self._term_weights(term, unit, count)

    def most(self, term: int) -> float:
        """The most that a term adds to a score."""
        inverse = self.formula.inverse_frequency(self.frequency(term), len(self.postings.length))
        return float(inverse) * self.formula.limit - float(self._absence(term))

    def baseline(self, terms: list[int]) -> np.float32:
        """The score of a unit that has none of these terms."""
        return np.float32(np.array([self._absence(term) for term in terms], np.float32).sum())

    def _term_weights(self, term: int, unit: npt.NDArray[np.integer], count: CountArray) -> SingleArray:
        idf = self.formula.inverse_frequency(self.frequency(term), len(self.postings.length))
        weight = idf * self.formula.saturation(count, self.relative_length[unit])
        result: SingleArray = (weight - self._absence(term) if self.formula.counts_absence else weight).astype(
            np.float32
        )
        return result

    def _absence(self, term: int) -> np.float32:
        if not self.formula.counts_absence:
            return np.float32(0)
        inverse = _INVERSE_FREQUENCY[self.formula.method](self.frequency(term), len(self.postings.length))
        return np.float32(inverse * self.formula.absent)

    def frequency(self, term: int) -> int:
        """The number of units that contain a term."""
        return int(self.postings.offsets[term + 1] - self.postings.offsets[term])


def inverse_frequencies(postings: Postings) -> FloatArray:
    """ln((1 + n) / (1 + df)) + 1 of each term: the smooth inverse document frequency of scikit-learn."""
    result: FloatArray = np.log((1 + len(postings.length)) / (1 + postings.frequency)) + 1
    return result


def sublinear_tf(count: npt.NDArray[np.int32]) -> FloatArray:
    """1 + ln(count): a word that occurs ten times in a text is not ten times as important."""
    result: FloatArray = 1 + np.log(count.astype(np.float64))
    return result


def norms(postings: Postings, idf: FloatArray, at_once: int = 1 << 20) -> FloatArray:
    """float64[u], the Euclidean length of each unit's tf-idf vector; 1 for a unit without terms."""
    squares = np.zeros(len(postings.length))
    for rows, term in postings.blocks(at_once):
        weight = sublinear_tf(postings.count[rows]) * idf[term]
        squares += np.bincount(postings.unit[rows], weight * weight, minlength=len(squares))
    return np.where(squares > 0, np.sqrt(squares), 1.0)


@dataclass(frozen=True)
class TfIdfScorer:
    """Scores units by the cosine of their tf-idf vectors with the query's."""

    postings: Postings
    idf: FloatArray  # float64[t]
    norm: FloatArray  # float64[u]

    @classmethod
    def of(cls, postings: Postings) -> "TfIdfScorer":
        """The scorer of some units."""
        idf = inverse_frequencies(postings)
        return cls(postings, idf, norms(postings, idf))

    def query(self, terms: list[int]) -> tuple[IntArray, FloatArray]:
        """The terms of a query, each once, and their weights in a vector of length 1."""
        term, count = np.unique(np.array(terms, np.int64), return_counts=True)
        weight = sublinear_tf(count.astype(np.int32)) * self.idf[term]
        return term, weight / np.sqrt((weight * weight).sum())

    def scores(self, terms: list[int]) -> FloatArray:
        """float64[u], the score of every unit for the terms of a query."""
        scores = np.zeros(len(self.postings.length))
        for term, weight in zip(*self.query(terms), strict=True):
            unit, count = self.postings.of(int(term))
            scores[unit] += weight * sublinear_tf(count) * self.idf[term]
        return scores / self.norm
