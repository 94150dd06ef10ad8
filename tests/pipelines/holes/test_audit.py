"""The audit of a judge, and rankings joined with judgements, against plain Python."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.assessments import assessment_of as expected_assessment
from support.campaigns import examples

from rankbeam.pipelines.holes.effects import Effect, assessment_of, reversed_pairs
from rankbeam.pipelines.holes.grades import scale_of
from rankbeam.pipelines.results.audit import audit_of
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import parse_metric

PAIRS = st.tuples(st.sampled_from("qrs"), st.sampled_from("abcdefgh"))
HUMAN = st.dictionaries(PAIRS, st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0]))
JUDGE = st.dictionaries(PAIRS, st.integers(0, 3))


def quadratic_kappa(pairs: list[tuple[int, int]]) -> float | None:
    """Cohen's weighted kappa from all combinations of the two raters' grades."""
    if not pairs:
        return None
    apart = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    chance = sum((one - other) ** 2 for one, _ in pairs for _, other in pairs) / len(pairs) ** 2
    return None if chance == 0 else 1 - apart / chance


@settings(max_examples=examples(30))
@given(human=HUMAN, judge=JUDGE)
def test_an_audit_counts_what_both_graded(
    human: Mapping[tuple[str, str], float], judge: Mapping[tuple[str, str], int]
) -> None:
    audit = audit_of(human, judge)
    both = [(int(human[pair]), judge[pair]) for pair in judge if human.get(pair, -1.0) >= 0]
    assert audit.pairs == len(both)
    for one in audit.grades:
        for other in audit.grades:
            assert audit.counts[one][other] == both.count((one, other))
    assert audit.overrated == sum(one == 0 and other > 0 for one, other in both)
    assert audit.not_relevant == sum(one == 0 for one, _ in both)
    expected = quadratic_kappa(both)
    assert audit.kappa == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert any("are needed" in warning for warning in audit.warnings)


def test_a_good_judge_passes_the_audit() -> None:
    human = {(f"q{number}", "d"): float(number % 4) for number in range(200)}
    audit = audit_of(human, {pair: int(grade) for pair, grade in human.items()})
    assert (audit.agreement, audit.kappa, audit.interval, audit.warnings) == (1.0, 1.0, (1.0, 1.0), [])


@given(
    rankings=st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=4),
    data=st.data(),
)
def test_rankings_are_scored_as_from_files(rankings: list[list[str]], data: st.DataObject) -> None:
    pools = [
        data.draw(st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from([-1.0, 0.0, 1.0, 3.0]))) for _ in rankings
    ]
    rows = [
        (str(place), doc, -float(rank)) for place, ranking in enumerate(rankings) for rank, doc in enumerate(ranking)
    ]
    expected = expected_assessment({str(place): pool for place, pool in enumerate(pools)}, rows)
    for name in ("nDCG@3", "AP", "Judged@2", "infAP", "P@2"):
        metric = parse_metric(name)
        np.testing.assert_array_equal(metric.values(assessment_of(rankings, pools)), metric.values(expected))


def test_pairs_that_change_their_order_are_named() -> None:
    effects = [Effect("AP", "a", 0.5, 0.5, 0.6), Effect("AP", "b", 0.4, 0.5, 0.7), Effect("AP", "c", 0.4, 0.5, 0.1)]
    assert list(reversed_pairs(effects)) == [("AP", "a", "b")]


@pytest.mark.parametrize(("highest", "scale"), [(1.0, (0, 0, 1, 1)), (2.0, (0, 0, 1, 2)), (3.0, (0, 0, 2, 3))])
def test_two_is_the_lowest_relevant_grade_of_a_judge(highest: float, scale: tuple[int, ...]) -> None:
    assert scale_of({("q", "a"): 0.0, ("q", "b"): highest}, None) == scale


def test_grades_that_are_not_whole_are_refused() -> None:
    with pytest.raises(InputError, match="not whole"):
        scale_of({("q", "a"): 0.5}, None)
