"""Pruned rankings, against the scores of all units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbeam.transforms.kernels.search.postings import Postings, build
from rankbeam.transforms.kernels.search.top import best, top
from rankbeam.transforms.kernels.search.weights import Bm25Formula, Bm25Scorer

TERMS = 400
METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")


@pytest.fixture(scope="module", params=[False, True], ids=["lengths differ", "many equal scores"])
def postings(request: pytest.FixtureRequest) -> Postings:
    draw = np.random.default_rng(3)
    length = draw.integers(0, 3 if request.param else 20, 20_000)
    ends = np.concatenate([[0], np.cumsum(length)])
    stream = draw.zipf(1.2, ends[-1]) % TERMS
    return build(TERMS, length, lambda first, last: stream[ends[first] : ends[last]])


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, TERMS - 1) | st.integers(0, 3), min_size=1, max_size=12),
    st.sampled_from(METHODS),
    st.sampled_from([0.0, 0.4, 1.2]),
    st.sampled_from([0.0, 0.75, 1.0]),
    st.sampled_from([1, 10, 100, 1024, 5000]),
)
def test_they_are_the_first_of_all_scores_to_the_last_bit(
    postings: Postings, terms: list[int], method: str, k1: float, b: float, count: int
) -> None:
    terms = [term for term in terms if len(postings.of(term)[0])]
    if not terms:
        return
    scorer = Bm25Scorer.of(Bm25Formula(method, k1, b, 0.7), postings)
    scores, baseline = scorer.scores(terms)
    assert np.isfinite(scores).all()
    candidates = np.flatnonzero(scores != baseline)
    expected = candidates[np.argsort(-scores[candidates], kind="stable")][:count]

    assert top(scores, count, float(baseline)).tolist() == expected.tolist()
    units, own = best(scorer, terms, count)
    assert units.tolist() == expected.tolist()
    assert own.tolist() == scores[expected].tolist()
