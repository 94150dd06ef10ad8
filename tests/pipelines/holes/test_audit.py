"""The audit of a judge, and rankings joined with judgements, against plain Python."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.assessments import assessment_of as expected_assessment

from rankbeam.pipelines.holes import Effect, assessment_of, reversed_pairs, scale_of
from rankbeam.pipelines.results.audit import Pair, audit_of
from rankbeam.transforms.kernels.statistics.agreement import wilson_interval
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import parse_metric

PAIRS = st.tuples(st.sampled_from("qr"), st.sampled_from("abc"))
HUMAN = st.dictionaries(PAIRS, st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0]))
JUDGE = st.dictionaries(PAIRS, st.integers(0, 3))


def quadratic_kappa(pairs: list[tuple[int, int]]) -> float | None:
    """Cohen's weighted kappa from all combinations of the two raters' grades."""
    if not pairs:
        return None
    apart = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    chance = sum((one - other) ** 2 for one, _ in pairs for _, other in pairs) / len(pairs) ** 2
    return None if chance == 0 else 1 - apart / chance


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
    assert audit.population == audit.pairs
    if audit.not_relevant:
        share, low, high = audit.overrating
        assert share == pytest.approx(audit.overrated / audit.not_relevant)
        assert (low, high) == pytest.approx(wilson_interval(audit.overrated, audit.not_relevant))


def many(seed: int = 3) -> tuple[dict[Pair, float], dict[Pair, int]]:
    """900 documents of 30 queries; the judge's grades are of uneven numbers, and its 1s are fewer than 50."""
    random = Random(seed)
    pairs = [(f"q{query}", f"d{document}") for query in range(30) for document in range(30)]
    judge = {pair: random.choices(range(4), (60, 3, 17, 20))[0] for pair in pairs}
    human = {pair: float(max(0, min(3, judge[pair] + random.choice((-2, -1, 0, 0, 0, 1))))) for pair in pairs}
    return human, judge


def drawn_plainly(human: Mapping[Pair, float], judge: Mapping[Pair, int], most: int) -> dict[Pair, float]:
    """The weight of each document that audits the judge: rare grades first, what they lack is left to the others."""
    by_grade = {grade: [pair for pair in judge if judge[pair] == grade and human[pair] >= 0] for grade in range(4)}
    weights: dict[Pair, float] = {}
    grades = sorted((grade for grade in by_grade if by_grade[grade]), key=lambda grade: (len(by_grade[grade]), grade))
    while grades:
        grade, count = grades[0], (most - len(weights)) // len(grades)
        ordered = sorted(by_grade[grade], key=lambda pair: sha256("\0".join(pair).encode()).hexdigest())[:count]
        weights |= dict.fromkeys(ordered, len(by_grade[grade]) / max(1, len(ordered)))
        grades = grades[1:]
    return weights


def test_of_many_documents_a_sample_by_grade_stands_for_all() -> None:
    human, judge = many()
    audit = audit_of(human, judge)
    assert (audit.pairs, audit.population) == (200, 900)
    by_grade = [sum(row[grade] for row in audit.counts) for grade in range(4)]
    few = list(judge.values()).count(1)
    assert few < 50
    assert by_grade[1] == few
    assert all(50 <= by_grade[grade] <= 60 for grade in (0, 2, 3))
    backwards = audit_of(dict(reversed(human.items())), dict(reversed(judge.items())))
    assert backwards == audit
    every = audit_of(human, judge, most=900)
    assert every.pairs == 900
    assert abs(audit.kappa - every.kappa) < 0.1
    assert every.interval[0] < audit.kappa < every.interval[1]
    assert "200 of 900 documents graded by both" in audit.as_text()


def test_weights_and_intervals_of_a_sample_equal_plain_python() -> None:
    human, judge = many()
    audit, weights = audit_of(human, judge, most=150), drawn_plainly(human, judge, 150)
    assert sum(weights.values()) == pytest.approx(900)
    rows = [(pair[0], int(human[pair]), judge[pair], weight) for pair, weight in weights.items()]
    equal = sum(weight for _, one, other, weight in rows if one == other) / 900
    assert audit.agreement == pytest.approx(equal, abs=1e-12)
    assert audit.kappa == pytest.approx(weighted_kappa([row[1:] for row in rows]), abs=1e-12)
    zeros = [(other, weight) for _, one, other, weight in rows if one == 0]
    share = sum(weight for other, weight in zeros if other > 0) / sum(weight for _, weight in zeros)
    assert audit.overrating[0] == pytest.approx(share, abs=1e-12)
    queries = sorted({row[0] for row in rows})
    generator = np.random.default_rng(0)
    draws = generator.multinomial(len(queries), np.full(len(queries), 1 / len(queries)), 1000)
    kappas, shares = [], []
    for draw in draws.tolist():
        times = dict(zip(queries, draw, strict=True))
        replicate = [(one, other, times[query] * weight) for query, one, other, weight in rows if times[query]]
        kappas.append(weighted_kappa(replicate))
        lenient = sum(weight for one, other, weight in replicate if one == 0 and other > 0)
        shares.append(lenient / sum(weight for one, _, weight in replicate if one == 0))
    assert audit.interval == pytest.approx(tuple(np.percentile(kappas, (2.5, 97.5))), abs=1e-12)
    size = sum(weight for _, weight in zeros) ** 2 / sum(weight**2 for _, weight in zeros)
    wilson = wilson_interval(share * size, size)
    low, high = np.percentile(shares, (2.5, 97.5))
    assert audit.overrating[1:] == pytest.approx((min(low, wilson[0]), max(high, wilson[1])), abs=1e-12)


def weighted_kappa(rows: list[tuple[int, int, float]]) -> float | None:
    """As `quadratic_kappa`, of weighted items."""
    total = sum(weight for *_, weight in rows)
    first, second = Counter[int](), Counter[int]()
    for one, other, weight in rows:
        first[one] += weight
        second[other] += weight
    apart = sum((one - other) ** 2 * weight for one, other, weight in rows) / total
    chance = sum((one - other) ** 2 * first[one] * second[other] for one in first for other in second) / total**2
    return 1 - apart / chance if chance else None


@pytest.mark.long
def test_samples_hold_the_share_of_all_documents_in_nearly_all_cases() -> None:
    covered = 0
    for seed in range(40):
        human, judge = many(seed)
        zeros = [pair for pair in human if human[pair] == 0]
        truth = sum(judge[pair] > 0 for pair in zeros) / len(zeros)
        _, low, high = audit_of(human, judge).overrating
        covered += low <= truth <= high
    assert covered >= 37


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
