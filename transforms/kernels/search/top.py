"""The best of many scores."""

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import IntArray


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
    candidates = np.flatnonzero(scores != baseline)
    if len(candidates) > count:
        candidate_scores = scores[candidates]
        threshold = np.partition(candidate_scores, len(candidates) - count)[len(candidates) - count]
        above, equal = candidates[candidate_scores > threshold], candidates[candidate_scores == threshold]
        candidates = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    return candidates[np.argsort(-scores[candidates], kind="stable")]
