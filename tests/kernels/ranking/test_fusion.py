"""Votes and their sums, against plain Python written from the formulas."""

import statistics
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.ranking import fusion

QUERIES, PARTS = 3, 4
SCORES = st.sampled_from([-2.5, -0.1, 0.0, 0.1, 0.3, 7.0]) | st.floats(-1e6, 1e6).map(lambda score: round(score, 6))
SCORED = st.lists(st.tuples(st.integers(0, QUERIES - 1), SCORES)).map(sorted)
VOTES = st.dictionaries(
    st.tuples(
        st.integers(0, PARTS - 1), st.integers(0, QUERIES - 1), st.sampled_from(["a", "B", "é", "\uffee", "😀", ""])
    ),
    st.sampled_from([1 / 61, 1 / 62, 1 / 63, 0.1, 0.0, -0.7, 1e9]),
)


def by_min_max(scores: list[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [1.0 if low == high else (score - low) / (high - low) for score in scores]


def by_z_score(scores: list[float]) -> list[float]:
    deviation = statistics.pstdev(scores)
    return [0.0 if deviation == 0 else (score - statistics.fmean(scores)) / deviation for score in scores]


def by_sum(scores: list[float]) -> list[float]:
    total = sum(score - min(scores) for score in scores)
    return [1.0 / len(scores) if total == 0 else (score - min(scores)) / total for score in scores]


@pytest.mark.parametrize(
    ("kernel", "plain"),
    [(fusion.min_max, by_min_max), (fusion.z_scores, by_z_score), (fusion.sum_to_one, by_sum)],
)
@given(rows=SCORED)
@example(rows=[(0, 0.1)] * 3 + [(2, 5.0)])
def test_scores_are_normalised_inside_their_query(
    kernel: Callable[[IntArray, FloatArray, int], FloatArray],
    plain: Callable[[list[float]], list[float]],
    rows: list[tuple[int, float]],
) -> None:
    query, score = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)
    normalised = kernel(query, score, QUERIES)
    for place in {query for query, _ in rows}:
        expected = plain([score for query, score in rows if query == place])
        assert normalised[query == place].tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)
        alone = kernel(np.zeros(len(expected), np.int64), score[query == place], 1)
        np.testing.assert_array_equal(alone, normalised[query == place])  # whatever else is in the bucket


def test_reciprocal_ranks_are_those_of_the_paper() -> None:
    assert fusion.reciprocal_ranks(np.array([1, 2, 40]), 60.0, 3.0).tolist() == [3 / 61, 3 / 62, 3 / 100]


@given(votes=VOTES, order=st.permutations(range(PARTS)))
def test_votes_are_summed_in_any_order_of_the_parts(votes: dict[tuple[int, int, str], float], order: list[int]) -> None:
    ranking = fused(votes)
    assert ranking == fused({(order[part], query, doc): vote for (part, query, doc), vote in votes.items()})
    absent = {
        (part, query): min([0.0, *(vote for (p, q, _), vote in votes.items() if (p, q) == (part, query))])
        for part in range(PARTS)
        for query in range(QUERIES)
    }
    expected = []
    for query, doc in {(query, doc) for _, query, doc in votes}:
        total = 0.0
        for vote in sorted(votes.get((part, query, doc), absent[part, query]) for part in range(PARTS)):
            total += vote
        expected.append((query, doc, total))
    expected.sort(key=lambda row: row[1].encode(), reverse=True)
    assert ranking == sorted(expected, key=lambda row: (row[0], -row[2]))


def fused(votes: dict[tuple[int, int, str], float]) -> list[tuple[int, str, float]]:
    """Query, document and score of what the kernel makes of the votes of each part for each query's documents."""
    part, query = (np.array([key[i] for key in votes], np.int64) for i in (0, 1))
    vote, names = np.array(list(votes.values()), np.float64), [key[2] for key in votes]
    absent = np.stack([fusion.votes_for_absent(query[part == i], vote[part == i], QUERIES) for i in range(PARTS)])
    rankings = fusion.fuse(query, pa.array(names, pa.string()), part, vote, absent)
    for number, rows in enumerate(rankings.rows):
        for place, row in enumerate(rows.tolist()):
            key = (number, int(rankings.query[place]), names[rankings.rows[:, place].max()])
            assert row == (list(votes).index(key) if key in votes else -1)
    ids = [names[row] for row in rankings.rows.max(axis=0, initial=-1)]
    return list(zip(rankings.query.tolist(), ids, rankings.score.tolist(), strict=True))
