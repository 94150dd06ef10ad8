"""Coefficients of agreement: published digits, laws, and degenerate cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.statistics import raters

HUMAN = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 2, 3, 1])
JUDGE = np.array([0, 1, 2, 3, 1, 1, 3, 3, 0, 2, 2, 2])
BOTH = np.column_stack([HUMAN, JUDGE])
GAPS = np.array([[0, 1, 2, 3, 0, -1, 2, 3], [0, 1, 2, 2, 0, 1, 2, 3], [-1, 1, 3, 3, 1, 1, -1, 3]]).T


@pytest.mark.parametrize(("is_ordered", "expected"), [(False, 0.5555556), (True, 0.8571429)])
def test_cohen_equals_published_digits(is_ordered: bool, expected: float) -> None:
    assert raters.cohen(raters.confusion(HUMAN, JUDGE, 4), is_ordered=is_ordered) == pytest.approx(expected, abs=5e-8)


def test_kappa_of_a_table_worked_by_hand() -> None:
    # 20 both accept, 5 only the first, 10 only the second, 15 both reject: (0.7 - 0.5) / (1 - 0.5).
    assert raters.cohen(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)


def test_cohen_of_two_classes_equals_published_digits() -> None:
    counts = raters.confusion((HUMAN >= 2).astype(int), (JUDGE >= 2).astype(int), 2)
    assert raters.cohen(counts) == pytest.approx(0.8333333, abs=5e-8)


@pytest.mark.parametrize(("is_ordered", "ac"), [(False, 0.5562404), (True, 0.8682525)])
def test_gwet_equals_irrcac(is_ordered: bool, ac: float) -> None:
    assert raters.gwet(BOTH, 4, is_ordered=is_ordered) == pytest.approx(ac, abs=5e-8)


def test_gwet_with_gaps_equals_irrcac() -> None:
    assert raters.gwet(GAPS, 4) == pytest.approx(0.6671803, abs=5e-8)
    assert raters.gwet(GAPS, 4, is_ordered=True) == pytest.approx(0.9011894, abs=5e-8)


@pytest.mark.parametrize(
    ("ratings", "expected"),
    [(BOTH, (0.5720930, 0.8602987)), (GAPS, (0.6341463, 0.8869048))],
    ids=["complete", "gaps"],
)
def test_krippendorff_equals_published_digits(ratings: np.ndarray, expected: tuple[float, ...]) -> None:
    values = [raters.krippendorff(ratings, 4, is_ordered=is_ordered) for is_ordered in (False, True)]
    assert values == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize(
    ("counts", "kappa", "ac1"),
    [((96, 2, 2, 0), -0.020, 0.958), ((94, 2, 2, 2), 0.479, 0.957), ((50, 2, 2, 46), 0.920, 0.920)],
)
def test_kappa_and_ac1_differ_where_one_decision_is_rare(counts: tuple[int, ...], kappa: float, ac1: float) -> None:
    matrix = np.array(counts).reshape(2, 2)
    pairs = [pair for pair, times in np.ndenumerate(matrix) for _ in range(times)]
    assert raters.observed_agreement(matrix) == pytest.approx(0.96, abs=0.005)
    assert raters.cohen(matrix) == pytest.approx(kappa, abs=5e-4)
    assert raters.gwet(np.array(pairs), 2) == pytest.approx(ac1, abs=5e-4)


def test_kendall_and_tau_ap_equal_published_digits() -> None:
    human, judge = [0.61, 0.55, 0.70, 0.42, 0.40], [0.5, 0.52, 0.66, 0.40, 0.31]
    assert raters.kendall_tau_b(human, judge) == pytest.approx(0.8)
    assert raters.tau_ap(human, judge) == pytest.approx(0.75)
    assert raters.tau_ap(human, [0.5, 0.52, 0.51, 0.40, 0.31]) == pytest.approx(0.25)


@pytest.mark.parametrize("categories", [1, 2])
def test_one_category_only_is_undefined_except_for_ac1(categories: int) -> None:
    alike = np.zeros((5, 2), np.int64)
    counts = raters.confusion(alike[:, 0], alike[:, 1], categories)
    assert (raters.cohen(counts), raters.gwet_of(counts)) == (None, 1.0)
    assert (raters.krippendorff(alike, categories), raters.gwet(alike, categories)) == (None, 1.0)


def test_items_with_one_rating_give_no_coefficient() -> None:
    lonely = np.array([[0, -1], [-1, 1]])
    assert (raters.gwet(lonely, 2), raters.krippendorff(lonely, 2)) == (None, None)
    assert raters.observed_agreement(raters.confusion(lonely[:, 0], lonely[:, 1], 2)) is None
    assert raters.tau_ap([1.0], [1.0]) is None
    assert raters.kendall_tau_b([1.0, 1.0], [1.0, 2.0]) is None


def test_decisions_are_equal_or_opposite() -> None:
    result = raters.decision_agreement([1, 0, -1, -1], [1, 1, 1, -1])
    assert (result.pairs, result.equal, result.opposite, result.share) == (4, 2, 1, 0.5)
    assert raters.decision_agreement([], []).share is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30), st.booleans())
def test_coefficients_are_symmetric_and_at_most_one(pairs: list[tuple[int, int]], is_ordered: bool) -> None:
    ratings = np.array(pairs)
    swapped = ratings[:, ::-1]
    result = raters.gwet(ratings, 4, is_ordered=is_ordered)
    assert result == pytest.approx(raters.gwet(swapped, 4, is_ordered=is_ordered))
    assert result is not None
    assert result <= 1.0 + 1e-12
    counts = raters.confusion(ratings[:, 0], ratings[:, 1], 4)
    kappa = raters.cohen(counts, is_ordered=is_ordered)
    assert kappa == pytest.approx(raters.cohen(counts.T, is_ordered=is_ordered))
