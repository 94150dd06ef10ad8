"""The best of many scores."""

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import IntArray

_COLUMNS = 4096


def top(scores: npt.NDArray[np.floating], count: int, baseline: float = 0.0) -> IntArray:
    """The positions of the highest scores, highest first; of equal scores the earlier position first.

    Args:
        scores: float[n].
        count: number of positions, at most.
        baseline: positions with this score are left out.

    Returns:
        int64[≤ count].

    >>> top(np.array([1.0, 3.0, 0.0, 3.0, 1.0]), 3).tolist()
    [1, 3, 0]
    """
    bound = reached(scores, count)
    candidates = np.flatnonzero(scores >= bound if bound > baseline else scores != baseline)
    if len(candidates) > count:
        candidate_scores = scores[candidates]
        threshold = np.partition(candidate_scores, len(candidates) - count)[len(candidates) - count]
        above, equal = candidates[candidate_scores > threshold], candidates[candidate_scores == threshold]
        candidates = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def reached(scores: npt.NDArray[np.floating], count: int) -> float:
    """A score that at least `count` positions reach, and few others; minus infinity if there is no such bound.

    Scores are laid out in rows, and `count` of the columns have a maximum that reaches the bound. That takes a tenth of
    the time of a partition of all scores.

    >>> reached(np.arange(8192.0), 3)
    8189.0
    """
    rows = len(scores) // _COLUMNS
    if count > _COLUMNS // 4 or rows < 2:
        return -np.inf
    maxima = scores[: rows * _COLUMNS].reshape(rows, _COLUMNS).max(axis=0)
    return float(np.partition(maxima, _COLUMNS - count)[_COLUMNS - count])
