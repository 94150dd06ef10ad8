"""Bounds by assumptions about unjudged documents: against every assignment of grades, and by hand."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.ranking.rankings import Assessment, with_assumed_grades
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.metrics.values import unjudged_bounds

BOUNDED = ["P@3", "R@3", "RR@3", "Success@3", "RBP@3", "SetP", "SetR", "INSQ", "SDCG@3"]
"""Metrics that no assumption moves beyond the bounds."""
RANKING = st.lists(st.sampled_from([None, 0, 1, 2, -1]), max_size=5)
POOLED = st.lists(st.sampled_from([0, 1, 2]), max_size=3)


def assessment(rankings: list[list[int | None]], missed: list[list[int]]) -> Assessment:
    """Rankings of grades, None for documents outside the pool; and grades of documents that are not retrieved."""
    hits = [
        (query, rank, grade)
        for query, ranking in enumerate(rankings)
        for rank, grade in enumerate(ranking, start=1)
        if grade is not None
    ]
    pool = [(query, grade) for query, _, grade in hits]
    pool += [(query, grade) for query, grades in enumerate(missed) for grade in grades]
    pool.sort(key=lambda pair: (pair[0], -pair[1]))
    return Assessment(
        retrieved=np.array([len(ranking) for ranking in rankings], np.int64),
        hit_query=np.array([query for query, _, _ in hits], np.int64),
        hit_rank=np.array([rank for _, rank, _ in hits], np.int64),
        hit_grade=np.array([grade for _, _, grade in hits], np.float64),
        hit_repeated=np.zeros(len(hits), bool),
        pool_query=np.array([query for query, _ in pool], np.int64),
        pool_grade=np.array([grade for _, grade in pool], np.float64),
    )


@pytest.mark.parametrize("name", BOUNDED)
@given(st.lists(st.tuples(RANKING, POOLED), min_size=1, max_size=2))
def test_no_assumption_leads_beyond_the_bounds(name: str, queries: list[tuple[list[int | None], list[int]]]) -> None:
    metric, rankings, missed = parse_metric(name), [query[0] for query in queries], [query[1] for query in queries]
    (low, high) = unjudged_bounds([metric], assessment(rankings, missed), 2.0)[:, :, 0]
    for query, (ranking, pooled) in enumerate(zip(rankings, missed, strict=True)):
        places = [rank for rank, grade in enumerate(ranking) if _is_open(grade)]
        values = []
        for grades in product([0, 2], repeat=len(places)):
            assumed = list(ranking)
            for place, grade in zip(places, grades, strict=True):
                assumed[place] = grade if metric.cutoff is None or place < metric.cutoff else ranking[place]
            values.append(float(metric.values(assessment([assumed], [pooled]))[0]))
        assert (low[query], high[query]) == (pytest.approx(min(values)), pytest.approx(max(values)))


@given(st.lists(st.tuples(RANKING, POOLED), min_size=1, max_size=3), st.sampled_from([None, 1, 3]))
def test_assumed_rankings_are_those_of_so_many_judgements(
    queries: list[tuple[list[int | None], list[int]]], cutoff: int | None
) -> None:
    rankings, missed = [query[0] for query in queries], [query[1] for query in queries]
    filled = [
        [2 if _is_open(grade) and (cutoff is None or place < cutoff) else grade for place, grade in enumerate(ranking)]
        for ranking in rankings
    ]
    assumed, plain = with_assumed_grades(assessment(rankings, missed), 2.0, cutoff), assessment(filled, missed)
    for metric in map(parse_metric, ("nDCG@3", "AP", "P@2", "Rprec", "ERR@3")):
        assert metric.values(assumed).tolist() == pytest.approx(metric.values(plain).tolist())


def _is_open(grade: int | None) -> bool:
    return grade is None or grade < 0


def test_the_ideal_of_ndcg_is_computed_anew() -> None:
    """A judged document of grade 1 at rank 2, none judged at rank 1: 1/log₂(3), or (3 + 1/log₂3) over itself."""
    a = assessment([[None, 1]], [[]])
    low, high = unjudged_bounds([parse_metric("nDCG@10")], a, 3.0)[:, 0, 0]
    assert (low, high) == (pytest.approx(1 / np.log2(3)), pytest.approx(1.0))


def test_metrics_with_rules_of_their_own_have_no_bounds() -> None:
    a = assessment([[None, 1]], [[]])
    assert np.isnan(unjudged_bounds([parse_metric(name) for name in ("Judged@5", "Bpref", "infAP")], a, 1.0)).all()
