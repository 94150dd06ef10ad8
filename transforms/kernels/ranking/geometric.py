"""Geometric means of AP and Bpref, as means of logarithms: intervals, comparisons and gates then hold for them, too.

Robertson, "On GMAP: and other transformations", CIKM 2006. The reference is trec_eval v10.
"""

import math

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.incomplete import bpref
from rankbeam.transforms.kernels.ranking.metrics import average_precision
from rankbeam.transforms.kernels.ranking.rankings import Assessment

_LEAST = 0.00001  # trec_eval's MIN_GEO_MEAN: a 0 would make the mean of all queries 0


def log_average_precision(a: Assessment, *, cutoff: int | None = None, rel: float = 1.0) -> FloatArray:
    """AP on a logarithmic scale from 0, for an AP of 0.00001 or less, to 1: 1 - log(max(AP, ε)) / log(ε).

    >>> from rankbeam.transforms.kernels.ranking.hits import EXAMPLE
    >>> log_average_precision(EXAMPLE).round(4).tolist()
    [0.9398]
    """
    return _on_scale(average_precision(a, cutoff=cutoff, rel=rel))


def log_bpref(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Bpref on the scale of `log_average_precision`.

    >>> from rankbeam.transforms.kernels.ranking.hits import EXAMPLE
    >>> log_bpref(EXAMPLE).round(4).tolist()
    [0.9046]
    """
    return _on_scale(bpref(a, rel=rel))


def _on_scale(values: FloatArray) -> FloatArray:
    logarithms: FloatArray = np.log(np.maximum(values, _LEAST))
    return 1.0 - logarithms / math.log(_LEAST)


def geometric_mean(mean: float) -> float:
    """The geometric mean, from the mean on the logarithmic scale (trec_eval's gm_map and gm_bpref).

    >>> round(geometric_mean(0.939794), 4)
    0.5
    """
    return float(_LEAST ** (1.0 - mean))
