"""Metrics in plain Python, one ranking at a time, written from the papers: slow, obvious, and not shared with us.

Keyword arguments are named as the kernels name theirs.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log2

Grades = Sequence[float | None]


@dataclass(frozen=True)
class Judged:
    """One ranking: the grade of each result, best rank first, None where it is not judged, and all grades there are."""

    grades: Grades
    pool: Sequence[float]


def capped_recall(query: Judged, *, cutoff: int, rel: float) -> float:
    relevant = sum(grade >= rel for grade in query.pool)
    return _hits(query.grades[:cutoff], rel) / min(cutoff, relevant) if relevant else 0.0


def f1(query: Judged, *, cutoff: int, rel: float) -> float:
    hits = _hits(query.grades[:cutoff], rel)
    if hits == 0:
        return 0.0
    precision, recall = hits / cutoff, hits / sum(grade >= rel for grade in query.pool)
    return 2.0 / (1.0 / precision + 1.0 / recall)


def reciprocal_rank(query: Judged, *, cutoff: int | None, rel: float) -> float:
    for rank, grade in enumerate(query.grades[:cutoff], start=1):
        if grade is not None and grade >= rel:
            return 1.0 / rank
    return 0.0


def judged(query: Judged, *, cutoff: int | None) -> float:
    seen = query.grades[:cutoff]
    return sum(grade is not None and grade >= 0 for grade in seen) / len(seen) if seen else 0.0


def rank_biased_precision(query: Judged, *, cutoff: int | None, rel: float, p: float, graded: bool) -> float:
    """Moffat and Zobel, TOIS 2008, equation 4: a reader goes on to the next result with probability p.

    Graded, as in trec_eval's m_rbp.c: gains that exceed 1 are divided by the highest of the query.
    """
    seen = enumerate(query.grades[:cutoff])
    if graded:
        highest = max([1.0, *query.pool])
        return (1.0 - p) * sum(p**above * max(grade or 0.0, 0.0) / highest for above, grade in seen)
    return (1.0 - p) * sum(p**above for above, grade in seen if grade is not None and grade >= rel)


def expected_reciprocal_rank(query: Judged, *, cutoff: int | None, max_rel: float) -> float:
    """Chapelle, Metzler, Zhang and Grinspan, CIKM 2009, algorithm 2."""
    go_on, expected = 1.0, 0.0
    for rank, grade in enumerate(query.grades[:cutoff], start=1):
        satisfied = (2.0 ** min(max(grade or 0.0, 0.0), max_rel) - 1.0) / 2.0**max_rel
        expected += go_on * satisfied / rank
        go_on *= 1.0 - satisfied
    return expected


def ndcg(query: Judged, *, cutoff: int | None, gain: str) -> float:
    """Järvelin and Kekäläinen, TOIS 2002; with gain "exp" Burges et al., ICML 2005."""
    ideal = _dcg(sorted(query.pool, reverse=True)[:cutoff], gain)
    return _dcg(query.grades[:cutoff], gain) / ideal if ideal else 0.0


def dcg(query: Judged, *, cutoff: int | None, gain: str) -> float:
    return _dcg(query.grades[:cutoff], gain)


def interpolated_precision(query: Judged, *, recall: float, rel: float) -> float:
    """The highest precision at a rank with at least recall · R relevant documents, rounded as C's lround does."""
    threshold = floor(recall * sum(grade >= rel for grade in query.pool) + 0.5)
    hits = [_hits(query.grades[:rank], rel) for rank in range(1, len(query.grades) + 1)]
    return max((count / rank for rank, count in enumerate(hits, start=1) if count >= threshold), default=0.0)


def mean_interpolated_precision(query: Judged, *, rel: float) -> float:
    return sum(interpolated_precision(query, recall=tenth / 10, rel=rel) for tenth in range(11)) / 11


def r_precision(query: Judged, *, rel: float, multiple: float) -> float:
    cutoff = floor(multiple * sum(grade >= rel for grade in query.pool) + 0.9)
    return _hits(query.grades[:cutoff], rel) / cutoff if cutoff else 0.0


def unjudged(query: Judged, *, cutoff: int) -> float:
    return sum(grade is None or grade < 0 for grade in query.grades[:cutoff]) / cutoff


def num_non_relevant_retrieved(query: Judged, *, rel: float) -> float:
    return sum(grade is not None and 0 <= grade < rel for grade in query.grades)


def compatibility(query: Judged, *, p: float, normalize: bool) -> float:
    """Clarke, Vtyurina and Smucker, TOIS 2021: overlap of prefixes; documents of one grade in the ranking's order."""
    ranking = [(grade, place) for place, grade in enumerate(query.grades)]
    missed = Counter(query.pool) - Counter(grade for grade in query.grades if grade is not None)
    relevant = [(grade, place) for grade, place in ranking if grade is not None and grade > 0]
    relevant += [(grade, len(ranking)) for grade in missed.elements() if grade > 0]
    ideal = sorted(relevant, key=lambda pair: (-pair[0], pair[1]))
    depth = max(len(ranking), len(ideal))

    def overlap(other: Sequence[tuple[float | None, int]]) -> float:
        shared = [
            len(set(ideal[:d]) & set(other[:d])) if other is not ideal else min(d, len(ideal)) for d in _to(depth)
        ]
        return sum(p ** (d - 1) * count / d for d, count in zip(_to(depth), shared, strict=True))

    total = overlap(ideal) if normalize else sum(p ** (d - 1) for d in _to(depth))
    return overlap(ranking) / total if total else 0.0


def _to(depth: int) -> range:
    return range(1, depth + 1)


def _walk(
    query: Judged, go_on: Callable[[int, float, float], float], cutoff: int = 1000, *, min_rel: float, max_rel: float
) -> float:
    """Gain per document that a reader looks at, who goes on with a probability after each of at most 1,000 ranks."""
    reach, total, gained, looked = 1.0, 0.0, 0.0, 0.0
    for rank in _to(min(cutoff, 1000)):
        grade = query.grades[rank - 1] if rank <= len(query.grades) else None
        gain = (min(max(grade or 0.0, min_rel), max_rel) - min_rel) / (max_rel - min_rel)
        total, gained, looked = total + gain, gained + reach * gain, looked + reach
        reach *= go_on(rank, gain, total)
    return gained / looked


def _square(x: float) -> float:
    return ((x - 1.0) / x) ** 2


def insq(query: Judged, *, T: float, **scale: float) -> float:  # noqa: N803
    return _walk(query, lambda rank, _gain, _total: _square(rank + 2.0 * T), **scale)


def inst(query: Judged, *, T: float, **scale: float) -> float:  # noqa: N803
    return _walk(query, lambda rank, _gain, total: _square(rank + T + (T - total)), **scale)


def bejeweled_player(query: Judged, *, cutoff: int, T: float, **scale: float) -> float:  # noqa: N803
    return _walk(query, lambda _rank, _gain, total: float(total < T), cutoff, **scale)


def scaled_dcg(query: Judged, *, cutoff: int, min_rel: float, max_rel: float) -> float:
    gains = [min(max((grade or 0.0) - min_rel, 0.0), max_rel - min_rel) for grade in query.grades[:cutoff]]
    most = sum((max_rel - min_rel) / log2(rank + 1) for rank in _to(cutoff))
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1)) / most


def nearly_err_8(query: Judged, *, cutoff: int, **scale: float) -> float:
    return _walk(query, lambda _rank, gain, _total: 1.0 - gain, cutoff, **scale)


def nearly_err_9(query: Judged, *, cutoff: int, **scale: float) -> float:
    return _walk(query, lambda rank, gain, _total: (1.0 - gain) * rank / (rank + 1), cutoff, **scale)


def nearly_err_10(query: Judged, *, p: float, **scale: float) -> float:
    return _walk(query, lambda _rank, gain, _total: (1.0 - gain) * p, **scale)


def nearly_err_11(query: Judged, *, T: float, **scale: float) -> float:  # noqa: N803
    return _walk(query, lambda rank, gain, _total: (1.0 - gain) * _square(rank + 2.0 * T), **scale)


def chunk_precision(query: Judged, *, cutoff: int, rel: float) -> float:
    seen = query.grades[:cutoff]
    return _hits(seen, rel) / len(seen) if seen else 0.0


def _hits(grades: Grades, rel: float) -> int:
    return sum(grade is not None and grade >= rel for grade in grades)


def _dcg(grades: Grades, gain: str) -> float:
    total = 0.0
    for rank, grade in enumerate(grades, start=1):
        worth = max(grade or 0.0, 0.0)
        total += (worth if gain == "linear" else 2.0**worth - 1.0) / log2(rank + 1)
    return total
