"""Mean gain of the documents that a modelled user looks at: the C/W/L framework (Moffat et al., TOIS 35(3), 2017).

A user who has looked at a document goes on to the next one with a probability, the *continuation* of its rank. The
weight of a rank is the probability of reaching it, and the value is the mean gain by these weights. The gain of a
document is (grade - min_rel) / (max_rel - min_rel), between 0 and 1. As in cwl_eval, whose values these are, a ranking
has 1,000 ranks: those after its last document gain nothing, and documents after rank 1,000 do not count.
"""

# ruff: noqa: N803  T is the name of the papers and of ir_measures
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, offsets_of
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.rankings import Assessment

_DEPTH = 1000
_AT_ONCE = 1 << 9


class _Ranks(NamedTuple):
    """The ranks of some rankings."""

    rank: FloatArray  # float64[d], 1, 2, 3, …
    gain: FloatArray  # float64[n, d], of the document at each rank
    total: FloatArray  # float64[n, d], the gain down to each rank


_Continuation = Callable[[_Ranks], FloatArray]


def insq(a: Assessment, *, T: float = 1.0, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """Continuation ((rank + 2T - 1) / (rank + 2T))², for users who want the gain T (Moffat et al., ADCS 2012).

    >>> insq(hits.EXAMPLE, max_rel=2).round(4).tolist()
    [0.4193]
    """
    return _mean_gain(a, min_rel, max_rel, None, lambda at: _going_on(at.rank + 2.0 * T))


def inst(a: Assessment, *, T: float = 1.0, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """INSQ for users who adapt: T is reduced by what they have gained (Bailey et al., SIGIR 2015).

    >>> inst(hits.EXAMPLE, max_rel=2).round(4).tolist()
    [0.6392]
    """
    return _mean_gain(a, min_rel, max_rel, None, lambda at: _going_on(at.rank + 2.0 * T - at.total))


def bejeweled_player(
    a: Assessment, *, cutoff: int, T: float = 1.0, min_rel: float = 0.0, max_rel: float = 4.0
) -> FloatArray:
    """Mean gain down to the rank at which users have gained T, or to `cutoff` (BPM; Zhang et al., SIGIR 2017).

    >>> bejeweled_player(hits.EXAMPLE, cutoff=4, T=1.5, max_rel=2).tolist()
    [0.375]
    """
    return _mean_gain(a, min_rel, max_rel, cutoff, lambda at: (at.total < T).astype(np.float64))


def scaled_dcg(a: Assessment, *, cutoff: int, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """DCG over that of `cutoff` documents with the grade `max_rel` (ir_measures' SDCG).

    >>> scaled_dcg(hits.EXAMPLE, cutoff=4, max_rel=2).round(4).tolist()
    [0.4744]
    """
    return _mean_gain(a, min_rel, max_rel, cutoff, lambda at: np.log2(at.rank + 1.0) / np.log2(at.rank + 2.0))


def nearly_err_8(a: Assessment, *, cutoff: int, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """Continuation 1 - gain (NERR8; Azzopardi et al., ICTIR 2021, equation 8).

    >>> nearly_err_8(hits.EXAMPLE, cutoff=4, max_rel=4).round(4).tolist()
    [0.25]
    """
    return _mean_gain(a, min_rel, max_rel, cutoff, lambda at: 1.0 - at.gain)


def nearly_err_9(a: Assessment, *, cutoff: int, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """Continuation rank / (rank + 1) · (1 - gain) (NERR9; Azzopardi et al., ICTIR 2021, equation 9).

    >>> nearly_err_9(hits.EXAMPLE, cutoff=4, max_rel=4).round(4).tolist()
    [0.3446]
    """
    return _mean_gain(a, min_rel, max_rel, cutoff, lambda at: at.rank / (at.rank + 1.0) * (1.0 - at.gain))


def nearly_err_10(a: Assessment, *, p: float = 0.9, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """Continuation p · (1 - gain) (NERR10; Azzopardi et al., ICTIR 2021, equation 10).

    >>> nearly_err_10(hits.EXAMPLE).round(4).tolist()
    [0.1263]
    """
    return _mean_gain(a, min_rel, max_rel, None, lambda at: p * (1.0 - at.gain))


def nearly_err_11(a: Assessment, *, T: float = 1.0, min_rel: float = 0.0, max_rel: float = 4.0) -> FloatArray:
    """Continuation of `insq` times 1 - gain (NERR11; Azzopardi et al., ICTIR 2021, equation 11).

    >>> nearly_err_11(hits.EXAMPLE).round(4).tolist()
    [0.3063]
    """
    return _mean_gain(a, min_rel, max_rel, None, lambda at: _going_on(at.rank + 2.0 * T) * (1.0 - at.gain))


def _going_on(patience: FloatArray) -> FloatArray:
    return ((patience - 1.0) / patience) ** 2


def _mean_gain(
    a: Assessment, min_rel: float, max_rel: float, cutoff: int | None, continuation: _Continuation
) -> FloatArray:
    depth = _DEPTH if cutoff is None else min(cutoff, _DEPTH)
    within = np.flatnonzero(hits.upto(a.hit_rank, depth))
    query, place = a.hit_query[within], a.hit_rank[within] - 1
    gain = (np.clip(a.hit_grade[within], min_rel, max_rel) - min_rel) / (max_rel - min_rel)
    rank, ends = np.arange(1.0, depth + 1.0), offsets_of(query, a.queries)
    values = np.empty(a.queries)
    for begin in range(0, a.queries, _AT_ONCE):
        end = min(begin + _AT_ONCE, a.queries)
        rows = slice(ends[begin], ends[end])
        gains = np.zeros((end - begin, depth))
        gains[query[rows] - begin, place[rows]] = gain[rows]
        weights: FloatArray = np.ones_like(gains)
        weights[:, 1:] = continuation(_Ranks(rank, gains, np.cumsum(gains, axis=1)))[..., :-1]
        weights = np.multiply.accumulate(weights, axis=1)
        values[begin:end] = _sum(weights * gains) / _sum(weights)
    return values


def _sum(rows: FloatArray) -> FloatArray:
    total: FloatArray = np.add.accumulate(rows, axis=1)[:, -1]  # the same bits for any number of rows
    return total
