"""The Pareto front: the choices that no other one beats in both cost and quality."""

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray


def pareto_front(cost: FloatArray, quality: FloatArray) -> BoolArray:
    """Return a mask of the choices for which no other is at least as cheap and as good, and one of both more so.

    >>> pareto_front(np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.5, 0.7, 0.6, 0.7])).tolist()
    [True, True, False, False]
    """
    order = np.lexsort((-quality, cost))
    by_cost, by_quality = cost[order], quality[order]
    first = np.searchsorted(by_cost, by_cost)  # the best of those that cost the same
    highest = np.concatenate([[-np.inf], np.maximum.accumulate(by_quality)])
    is_front = np.empty(len(order), np.bool_)
    is_front[order] = (by_quality == by_quality[first]) & (by_quality > highest[first])
    return is_front
