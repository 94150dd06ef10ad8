"""Metrics in plain Python, one ranking at a time, written from the papers: slow, obvious, and not shared with us.

Keyword arguments are named as the kernels name theirs.
"""

from collections.abc import Sequence
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
