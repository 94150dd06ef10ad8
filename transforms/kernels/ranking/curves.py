"""Interpolated precision at levels of recall: the points of a precision-recall curve, of many rankings at once."""

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, position_in_group
from rankbeam.transforms.kernels.ranking import metrics
from rankbeam.transforms.kernels.ranking.rankings import Assessment

LEVELS = tuple(level / 10 for level in range(11))  # the eleven levels of recall of trec_eval


def mean_interpolated_precision(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """The mean of `metrics.interpolated_precision` over eleven levels of recall (trec_eval's 11pt_avg).

    >>> from rankbeam.transforms.kernels.ranking import hits
    >>> mean_interpolated_precision(hits.EXAMPLE).round(4).tolist()
    [0.6364]
    """
    precisions = (metrics.interpolated_precision(a, recall=level, rel=rel) for level in LEVELS)
    return sum(precisions, np.zeros(a.queries)) / len(LEVELS)


def interpolated_precision(query: IntArray, is_relevant: BoolArray, relevant: IntArray) -> FloatArray:
    """The highest precision at any rank at which each level of recall is reached.

    This is `metrics.interpolated_precision` at eleven levels, trec_eval's iprec_at_recall: the level is reached with
    level · relevant documents, rounded to the nearest whole number as in trec_eval 10; 0 if the ranking has fewer.

    Args:
        query: int[m], for every document of n rankings the position of its ranking; best first within each.
        is_relevant: bool[m], of these documents.
        relevant: int[n], number of relevant documents of each query, retrieved or not.

    Returns:
        float64[n, 11], by level of recall.

    >>> interpolated_precision(np.zeros(4, int), np.array([True, False, False, True]), np.array([3]))[0, ::4].round(2)
    array([1. , 1. , 0.5])
    """
    rank = position_in_group(query, len(relevant)) + 1
    hit_query, hit_rank = query[is_relevant], rank[is_relevant]
    ordinal = position_in_group(hit_query, len(relevant))
    precision = np.zeros((len(relevant), int(ordinal.max(initial=0)) + 1))
    precision[hit_query, ordinal] = (ordinal + 1) / hit_rank
    highest = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    needed = np.floor(np.multiply.outer(relevant, LEVELS) + 0.5).astype(np.int64)
    place = np.maximum(needed, 1) - 1
    reached: FloatArray = np.take_along_axis(highest, np.minimum(place, highest.shape[1] - 1), axis=1)
    return np.where(place < highest.shape[1], reached, 0.0)
