"""Fuse several rankings of the same queries into one: each document scores the sum of its votes.

A *vote* is the number that one ranking (a *part*) gives to a document, from its rank or from its normalised score.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, StringArray
from rankbeam.transforms.kernels.ranking.orders import order_by_score


@dataclass(frozen=True)
class FusedRankings:
    """u documents in rank order, query by query."""

    query: IntArray  # int64[u], position of each document's query, ascending
    score: FloatArray  # float64[u], the sum of the votes; descending inside each query, ties by document id descending
    rows: IntArray  # int64[p, u], the row that each of the p parts has for the document; -1 for none


def fuse(
    query: IntArray,
    doc_id: StringArray,
    part: IntArray,
    vote: FloatArray,
    absent: FloatArray,
    *,
    multiplied: bool = False,
) -> FusedRankings:
    """Sum the votes for every document of every query.

    The votes for a document are summed from the lowest to the highest. So a sum depends neither on the order of the
    parts nor on other documents: documents with the same votes, from whichever parts, tie to the last bit.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m]; no part names a document twice for one query.
        part: int64[m], from 0.
        vote: float64[m].
        absent: float64[p, n], the vote of each of the p parts, by query, for a document that it lacks.
        multiplied: multiply each sum by the number of parts that have the document (CombMNZ; Fox and Shaw, TREC-2).

    Returns:
        Every document that at least one part has.

    >>> fused = fuse(np.array([0, 0, 0]), pa.array(["a", "b", "b"]), np.array([0, 0, 1]), np.ones(3), np.zeros((2, 1)))
    >>> fused.score.tolist(), fused.rows.tolist()
    ([2.0, 1.0], [[1, 0], [2, -1]])
    """
    document = _documents(query, doc_id)
    count = int(document.max(initial=-1)) + 1
    rows = np.full((len(absent), count), -1)
    rows[part, document] = np.arange(len(query))
    one_row = rows.max(axis=0, initial=-1)
    query = query[one_row]
    votes = np.concatenate([vote, [0.0]])[rows]  # index -1 takes the appended 0, which `absent` replaces
    votes = np.sort(np.where(rows >= 0, votes, absent[:, query]), axis=0)
    score = np.zeros(count)
    for part_votes in votes:  # sum(axis=0) adds in a different order if there is only one document
        score += part_votes
    if multiplied:
        score *= (rows >= 0).sum(axis=0)
    order = order_by_score(query, score, doc_id.take(pa.array(one_row)))
    return FusedRankings(query[order], score[order], rows[:, order])


def _documents(query: IntArray, doc_id: StringArray) -> IntArray:
    """int64[m]: number the pairs of query and document from 0, ascending by query; rows of one pair share a number."""
    names = doc_id.dictionary_encode()
    pair = query * len(names.dictionary) + names.indices.to_numpy()
    document: IntArray = np.unique(pair, return_inverse=True)[1]
    return document


def reciprocal_ranks(rank: IntArray, c: float, weight: float = 1.0) -> FloatArray:
    """Votes of reciprocal rank fusion, weight / (c + rank) (Cormack, Clarke and Büttcher, SIGIR 2009, who set c to 60).

    Args:
        rank: int64[m], from 1.
        c: the larger, the less the first ranks differ from the next.
        weight: the part's weight.

    Returns:
        float64[m].

    >>> reciprocal_ranks(np.array([1, 4]), 1.0).tolist()
    [0.5, 0.2]
    """
    return weight / (c + rank.astype(np.float64))


def min_max(query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    """Scores from 0 for the lowest of a query to 1 for its highest; 1 for all if all are equal.

    The "standard" normalisation of Montague and Aslam (CIKM 2001).

    Args:
        query: int64[m], position of each row's query.
        score: float64[m], finite.
        queries: n.

    Returns:
        float64[m].

    >>> min_max(np.array([0, 0, 0, 1]), np.array([8.0, 5.0, 4.0, 7.0]), 2).tolist()
    [1.0, 0.25, 0.0, 1.0]
    """
    low, high = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.minimum.at(low, query, score)
    np.maximum.at(high, query, score)
    spread = high[query] - low[query]
    flat = spread == 0
    return np.where(flat, 1.0, (score - low[query]) / np.where(flat, 1.0, spread))


def sum_to_one(query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    """Scores from 0 for the lowest of a query, with a sum of 1; the same for all if all are equal.

    The "sum" normalisation of Montague and Aslam (CIKM 2001). Arguments and result are those of `min_max`.

    >>> sum_to_one(np.array([0, 0, 0, 1, 1]), np.array([8.0, 6.0, 5.0, 7.0, 7.0]), 2).tolist()
    [0.75, 0.25, 0.0, 0.5, 0.5]
    """
    scaled = min_max(query, score, queries)
    return scaled / _sums(query, scaled, queries)[query]


def z_scores(query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    """Scores as standard deviations (of the population) above the mean of a query; 0 for all if all are equal.

    The "ZMUV" normalisation of Montague and Aslam (CIKM 2001). Arguments and result are those of `min_max`.

    >>> z_scores(np.array([0, 0, 0, 0, 1]), np.array([6.0, 6.0, 4.0, 4.0, 7.0]), 2).tolist()
    [1.0, 1.0, -1.0, -1.0, 0.0]
    """
    scaled = min_max(query, score, queries)  # changes no z-score, and no square of it overflows
    count = np.maximum(np.bincount(query, minlength=queries), 1)
    above = scaled - (_sums(query, scaled, queries) / count)[query]
    deviation = np.sqrt(_sums(query, above * above, queries) / count)
    return above / np.where(deviation > 0, deviation, 1.0)[query]


def votes_for_absent(query: IntArray, vote: FloatArray, queries: int) -> FloatArray:
    """The vote of one part, by query, for a document that it lacks; never more than for a document that it has.

    The vote is 0, as with CombSUM (Fox and Shaw, TREC-2, 1994), or the lowest vote of the query if that is below 0.
    Z-scores and negated distances can be: with a vote of 0 a document would gain by not being retrieved.

    Args:
        query: int64[m], position of each row's query.
        vote: float64[m].
        queries: n.

    Returns:
        float64[n].

    >>> votes_for_absent(np.array([0, 0, 1]), np.array([1.0, -0.5, 0.25]), 3).tolist()
    [-0.5, 0.0, 0.0]
    """
    lowest = np.zeros(queries)
    np.minimum.at(lowest, query, vote)
    return lowest


def _sums(query: IntArray, values: FloatArray, queries: int) -> FloatArray:
    """Sums by query, added in the order of the rows, so that no sum depends on other queries."""
    return np.bincount(query, weights=values, minlength=queries).astype(np.float64, copy=False)
