"""Judged metrics: plain Python says what is right, identities hold for all matrices, and every edge has its value."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.claims import Matrices, matrices, matrices_of, plain

from rankbeam.transforms.kernels import judged, judged_ragas, judged_refusals
from rankbeam.transforms.kernels.judged import AnswerKind, NuggetAssignment, Undefined, Value

METRICS: dict[str, Callable[[Matrices], Value]] = {
    "faithfulness": lambda m: judged.faithfulness(m.ac),
    "hallucination": lambda m: judged.hallucination(m.ac, m.ag),
    "self_knowledge": lambda m: judged.self_knowledge(m.ac, m.ag),
    "noise_relevant": lambda m: judged.noise_sensitivity(m.ac, m.gc, m.ag, relevant=True),
    "noise_irrelevant": lambda m: judged.noise_sensitivity(m.ac, m.gc, m.ag, relevant=False),
    "claim_precision": lambda m: judged.claim_precision(m.ag),
    "claim_recall": lambda m: judged.claim_recall(m.ga),
    "claim_f1": lambda m: judged.claim_f1(m.ag, m.ga),
    "context_recall": lambda m: judged.context_recall(m.gc),
    "context_precision": lambda m: judged.context_precision(m.gc),
    "context_utilization": lambda m: judged.context_utilization(m.gc, m.ga),
    "context_rr": lambda m: judged.context_rr(m.gc),
    "context_ap": lambda m: judged.context_ap(m.gc),
}
NONE, FALSE, TRUE = np.zeros(0, bool), np.zeros(1, bool), np.ones(1, bool)
NO_GRADES = np.zeros(0, np.int64)
SUPPORT, PARTIAL, MISSING = NuggetAssignment.SUPPORT, NuggetAssignment.PARTIAL, NuggetAssignment.NONE
kinds = st.sampled_from(AnswerKind)


def block(rows: int, columns: int, value: bool = True) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    return np.full((rows, columns), value)


def assert_is(value: Value, expected: float | None) -> None:
    """The value is the expected one, or undefined where that is None."""
    if expected is None:
        assert isinstance(value, Undefined)
    else:
        assert value == pytest.approx(expected, abs=1e-12)


def test_each_metric_of_claims_is_what_plain_python_makes_of_its_definition() -> None:
    generator = random.Random(13)
    for _ in range(1000):
        sizes = [generator.randint(0, 5) for _ in range(3)]
        m = matrices_of(*sizes, bits=lambda: generator.random() < 0.4)
        for name, expected in plain(m).items():
            assert_is(METRICS[name](m), expected)


@given(m=matrices(least_claims=1))
def test_a_claim_is_faithful_or_known_or_hallucinated(m: Matrices) -> None:
    parts = [METRICS[name](m) for name in ("faithfulness", "self_knowledge", "hallucination")]
    assert sum(parts) == pytest.approx(1.0, abs=1e-12)


@given(m=matrices(least_claims=1, least_contexts=1))
def test_a_wrong_claim_comes_from_some_contexts_or_from_none(m: Matrices) -> None:
    parts = [METRICS[name](m) for name in ("noise_relevant", "noise_irrelevant", "hallucination")]
    assert sum(parts) == pytest.approx(1.0 - judged.claim_precision(m.ag), abs=1e-12)


@given(m=matrices(), kind=kinds, answerable=st.booleans(), cited=st.integers(0, 15))
def test_all_shares_lie_between_0_and_1(m: Matrices, kind: AnswerKind, answerable: bool, cited: int) -> None:
    citations = np.array([bool(cited >> place & 1) for place in range(m.contexts)], bool)
    values = [metric(m) for metric in METRICS.values()]
    values += [judged.citation_precision(m.ac, citations, cited % 3), judged.citation_recall(m.ac, citations)]
    values += [judged.claim_f1(m.ag, m.ga, kind, answerable), judged.context_ap_of_answer(m.ac)]
    values += [judged_refusals.refused(kind), judged_refusals.refusal_precision(kind, answerable)]
    assert all(isinstance(value, Undefined) or 0.0 <= value <= 1.0 for value in values)


@given(m=matrices())
def test_what_is_cited_supports_no_more_than_all_contexts_do(m: Matrices) -> None:
    everything, nothing = np.ones(m.contexts, bool), np.zeros(m.contexts, bool)
    assert judged.citation_recall(m.ac, everything) == judged.faithfulness(m.ac)
    if len(m.ac):
        assert judged.citation_recall(m.ac, nothing) == 0.0
        assert judged.citation_precision(m.ac, nothing, 0) is Undefined.NO_CITATIONS
        assert judged.citation_precision(m.ac, nothing, 1) == 0.0


@given(nuggets=st.lists(st.tuples(st.sampled_from(NuggetAssignment), st.booleans()), max_size=8))
def test_half_a_nugget_is_worth_something_unless_the_score_is_strict(
    nuggets: list[tuple[NuggetAssignment, bool]],
) -> None:
    assigned, vital = [one for one, _ in nuggets], np.array([is_vital for _, is_vital in nuggets], bool)
    for only_vital in (True, False):
        counted = [one for one, is_vital in nuggets if is_vital or not only_vital]
        strict = judged.nugget_score(assigned, vital, only_vital, strict=True)
        lenient = judged.nugget_score(assigned, vital, only_vital, strict=False)
        if not counted:
            assert isinstance(strict, Undefined)
            assert strict is lenient
            continue
        assert strict == pytest.approx(sum(one is SUPPORT for one in counted) / len(counted))
        points = {SUPPORT: 1.0, PARTIAL: 0.5, MISSING: 0.0}
        assert lenient == pytest.approx(sum(points[one] for one in counted) / len(counted))
        assert 0.0 <= strict <= lenient <= 1.0


@given(grades=st.lists(st.integers(0, 3), max_size=6))
def test_metrics_of_grades_are_their_mean_and_the_precision_at_good_ones(grades: list[int]) -> None:
    array = np.array(grades, np.int64)
    expected = sum(grades) / len(grades) / 3 if grades else 0.0
    assert judged.context_relevance(array) == pytest.approx(expected, abs=1e-12)
    assert judged.context_ap_of_grades(array) == judged.average_precision(np.array([grade >= 2 for grade in grades]))


@given(
    a=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    b=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    scale=st.sampled_from([1e-150, 1.0, 1e150]),
)
def test_a_cosine_does_not_depend_on_length(a: list[float], b: list[float], scale: float) -> None:
    left, right = np.array(a), np.array(b)
    value = judged_ragas.cosine(left, right)
    if not left.any() or not right.any():
        assert value is Undefined.NO_DIRECTION
        return
    assert -1.0 <= value <= 1.0
    assert judged_ragas.cosine(right, left) == value
    assert judged_ragas.cosine(left, left) == pytest.approx(1.0)
    if np.abs(left[left != 0]).min() > 1e-100 and np.abs(right[right != 0]).min() > 1e-100:
        assert judged_ragas.cosine(left * scale, right) == pytest.approx(value, abs=1e-9)


def test_correctness_as_ragas_has_it_mixes_facts_and_likeness() -> None:
    ag, ga = np.array([True, True, False]), np.array([True, False])  # TP 2, FP 1, FN 1
    assert judged_ragas.answer_correctness(ag, ga, 0.8) == pytest.approx(0.75 * (2 / 3) + 0.25 * 0.8)
    # Four right claims, none of the two references covered: F1 of the two sets is 0, ragas' mixture is not.
    right, missed = np.ones(4, bool), np.zeros(2, bool)
    assert judged.claim_f1(right, missed) == 0.0
    assert judged.claim_recall(missed) == 0.0
    assert judged_ragas.answer_correctness(right, missed, 0.0) == pytest.approx(0.75 * 0.8)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # the answer has no claims
        (judged.faithfulness(block(0, 2)), Undefined.NO_CLAIMS),
        (judged.hallucination(block(0, 2), NONE), Undefined.NO_CLAIMS),
        (judged.self_knowledge(block(0, 2), NONE), Undefined.NO_CLAIMS),
        (judged.noise_sensitivity(block(0, 2), block(1, 2), NONE, relevant=True), Undefined.NO_CLAIMS),
        (judged.noise_sensitivity(block(0, 2), block(1, 2), NONE, relevant=False), Undefined.NO_CLAIMS),
        (judged.claim_precision(NONE), Undefined.NO_CLAIMS),
        (judged.citation_precision(block(0, 2), np.array([True, False]), 1), Undefined.NO_CLAIMS),
        (judged.citation_recall(block(0, 2), np.array([True, False])), Undefined.NO_CLAIMS),
        (judged.context_ap_of_answer(block(0, 2)), Undefined.NO_CLAIMS),
        (judged_ragas.faithfulness(NONE), Undefined.NO_STATEMENTS),
        (judged.claim_recall(FALSE), 0.0),
        (judged.context_utilization(TRUE.reshape(1, 1), FALSE), 0.0),
        # … which is right only as a refusal of what cannot be answered
        (judged.claim_f1(NONE, FALSE, AnswerKind.REFUSED, answerable=True), 0.0),
        (judged.claim_f1(NONE, FALSE, AnswerKind.OFF_TOPIC, answerable=True), 0.0),
        (judged.claim_f1(NONE, FALSE, AnswerKind.REFUSED, answerable=False), 1.0),
        (judged.claim_f1(NONE, NONE, AnswerKind.REFUSED, answerable=False), 1.0),
        (judged.claim_f1(NONE, FALSE, AnswerKind.OFF_TOPIC, answerable=False), Undefined.NO_CLAIMS),
        (judged.claim_f1(NONE, NONE, AnswerKind.REFUSED, answerable=True), Undefined.NO_REFERENCE_CLAIMS),
        (judged_ragas.answer_correctness(NONE, FALSE, 0.9, AnswerKind.REFUSED), 0.0),
        (judged_ragas.answer_correctness(NONE, FALSE, 0.9, AnswerKind.REFUSED, answerable=False), 1.0),
        # the reference has no claims
        (judged.claim_recall(NONE), Undefined.NO_REFERENCE_CLAIMS),
        (judged.claim_f1(TRUE, NONE), Undefined.NO_REFERENCE_CLAIMS),
        (judged.context_recall(block(0, 2)), Undefined.NO_REFERENCE_CLAIMS),
        (judged.context_precision(block(0, 2)), Undefined.NO_REFERENCE_CLAIMS),
        (judged.context_ap(block(0, 2)), Undefined.NO_REFERENCE_CLAIMS),
        (judged.context_rr(block(0, 2)), Undefined.NO_REFERENCE_CLAIMS),
        (judged.context_utilization(block(0, 2), NONE), Undefined.NO_REFERENCE_CLAIMS),
        (judged_ragas.context_recall(NONE), Undefined.NO_REFERENCE_SENTENCES),
        (judged_ragas.answer_correctness(TRUE, NONE, 0.9), Undefined.NO_REFERENCE_CLAIMS),
        # there are no contexts
        (judged.faithfulness(block(2, 0)), 0.0),
        (judged.hallucination(block(1, 0), FALSE), 1.0),
        (judged.self_knowledge(block(1, 0), TRUE), 1.0),
        (judged.noise_sensitivity(block(2, 0), block(1, 0), block(1, 2)[0], relevant=True), Undefined.NO_CONTEXTS),
        (judged.noise_sensitivity(block(2, 0), block(1, 0), block(1, 2)[0], relevant=False), Undefined.NO_CONTEXTS),
        (judged.context_recall(block(2, 0)), 0.0),
        (judged.context_precision(block(2, 0)), 0.0),
        (judged.context_ap(block(2, 0)), 0.0),
        (judged.context_rr(block(2, 0)), 0.0),
        (judged.context_ap_of_answer(block(2, 0)), 0.0),
        (judged.context_ap_of_grades(NO_GRADES), 0.0),
        (judged.context_relevance(NO_GRADES), 0.0),
        (judged.context_utilization(block(2, 0), block(1, 2)[0]), Undefined.REFERENCE_NOT_IN_CONTEXTS),
        (judged.citation_recall(block(2, 0), NONE), 0.0),
        (judged.citation_precision(block(2, 0), NONE, 0), Undefined.NO_CITATIONS),
        (judged_ragas.context_relevance(NONE), 0.0),
        # what cannot be counted
        (judged.context_utilization(block(1, 1, False), TRUE), Undefined.REFERENCE_NOT_IN_CONTEXTS),
        (judged.claim_f1(FALSE, TRUE), 0.0),
        (judged.claim_f1(TRUE, FALSE), 0.0),
        (judged.nugget_score([], NONE, only_vital=False, strict=False), Undefined.NO_NUGGETS),
        (judged.nugget_score([], NONE, only_vital=True, strict=True), Undefined.NO_NUGGETS),
        (judged.nugget_score([SUPPORT], FALSE, only_vital=True, strict=False), Undefined.NO_VITAL_NUGGETS),
        (judged_ragas.answer_similarity(Undefined.NO_DIRECTION), Undefined.NO_DIRECTION),
        (judged_ragas.answer_correctness(TRUE, TRUE, Undefined.NO_DIRECTION), Undefined.NO_DIRECTION),
        (judged_ragas.answer_relevance([0.5, Undefined.NO_DIRECTION], block(1, 2, False)[0]), Undefined.NO_DIRECTION),
        (judged_ragas.answer_relevance([0.5, -0.5, 1.0], block(1, 3)[0]), 0.0),
        # refusals
        (judged_refusals.refused(AnswerKind.REFUSED), 1.0),
        (judged_refusals.refused(AnswerKind.PARTIAL), 0.0),
        (judged_refusals.refusal_precision(AnswerKind.REFUSED, True), 0.0),
        (judged_refusals.refusal_precision(AnswerKind.REFUSED, None), Undefined.ANSWERABLE_UNKNOWN),
        (judged_refusals.refusal_precision(AnswerKind.OFF_TOPIC, False), Undefined.NOT_REFUSED),
        (judged_refusals.refusal_recall(AnswerKind.REFUSED, False), 1.0),
        (judged_refusals.refusal_recall(AnswerKind.ANSWERED, False), 0.0),
        (judged_refusals.refusal_recall(AnswerKind.REFUSED, True), Undefined.ANSWERABLE),
        (judged_refusals.refusal_recall(AnswerKind.REFUSED, None), Undefined.ANSWERABLE_UNKNOWN),
        (judged.answer_relevance(0), 0.0),
        (judged.answer_relevance(3), 1.0),
    ],
)
def test_every_edge_has_its_value_or_its_reason(value: Value, expected: Value) -> None:
    assert value == expected
    assert isinstance(value, Undefined) == isinstance(expected, Undefined)
