"""Counts and sums of every query by itself, and the example of the documentation, which is what its text says."""

from dataclasses import asdict

import numpy as np
from support.assessments import assessment_of

from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.hits import EXAMPLE


def test_the_example_is_the_assessment_that_it_describes() -> None:
    run = [("q", doc, -float(rank)) for rank, doc in enumerate(["best", "new", "bad", "good", "other"], 1)]
    described = assessment_of({"q": {"best": 2.0, "bad": 0.0, "good": 1.0, "missed": 1.0}}, run)
    np.testing.assert_equal(asdict(EXAMPLE), asdict(described))


# Of four queries the first and the last have no hit in the pool; grades 2, 0 and 1 are found by the second, 1 and -1 by
# the third, each from the best rank on.
FOUR = assessment_of(
    {"none": {"x": 1.0}, "q": {"a": 2.0, "b": 0.0, "c": 1.0, "x": 0.5}, "r": {"a": 1.0, "b": -1.0}, "last": {}},
    [(query, doc, -float(rank)) for query, docs in {"q": "abc", "r": "ab", "last": "z"}.items()
     for rank, doc in enumerate(docs, 1)],
)  # fmt: skip
ALL = np.ones(5, np.bool_)


def test_every_query_is_counted_by_itself() -> None:
    assert FOUR.hit_grade.tolist() == [2.0, 0.0, 1.0, 1.0, -1.0]
    assert hits.relevant_count(FOUR, 1.0).tolist() == [1.0, 2.0, 1.0, 0.0]
    assert hits.relevant_count(FOUR, 0.5).tolist() == [1.0, 3.0, 1.0, 0.0]
    assert [hits.relevant_hits(FOUR, 1.0, cutoff).tolist() for cutoff in (None, 3, 2)] == [
        [0.0, 2.0, 1.0, 0.0], [0.0, 2.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0],
    ]  # fmt: skip
    assert hits.count(FOUR, FOUR.hit_query, ALL).tolist() == [0.0, 3.0, 2.0, 0.0]
    assert hits.total(FOUR, FOUR.hit_query, FOUR.hit_grade, ALL).tolist() == [0.0, 3.0, 0.0, 0.0]


def test_what_stands_above_is_of_the_same_query() -> None:
    assert hits.relevant_so_far(FOUR, 1.0).tolist() == [1, 1, 2, 1, 1]
    assert hits.non_relevant_so_far(FOUR, 2.0).tolist() == [0, 1, 2, 1, 1]
    assert hits.so_far(FOUR, ~ALL).tolist() == [0] * 5
    assert hits.total(FOUR, FOUR.hit_query, FOUR.hit_grade, ~ALL).dtype == np.float64
