"""Known items of the judge: complete, balanced, answerable in every step's form, and counted as they should be."""

from collections import Counter

import pytest
from scipy.stats import binomtest
from support.judging import VARIABLES
from support.known_answers import known_items, right_answer

from rankbeam.transforms.judge.known_items import KnownItem, accuracies, drift_p_value
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.kernels.judged import AnswerKind, NuggetAssignment
from rankbeam.transforms.records.calls.prompt import Prompt

CLASSES = {
    "support": {one.value: 8 for one in SupportVerdict},
    "nugget_assign": {one.value: 8 for one in NuggetAssignment},
    "claims": {"none": 8, "one": 8, "several": 8},
    "grade": {str(grade): 6 for grade in range(4)},
    "statements": {"none": 8, "one": 8, "several": 8},
    "questions": {"noncommittal": 12, "committal": 12},
    "sentences": {"none": 8, "2": 8, "1, 3": 8},
    "answer_kind": {kind.value: 6 for kind in AnswerKind if kind is not AnswerKind.CLARIFIED},
}
ITEMS = known_items()


def length(item: KnownItem) -> int:
    return sum(len(str(value)) for value in item.values.values())


def test_every_step_has_known_items() -> None:
    # Nobody knows what users will ask; no metric rests on nuggets that a model collects and weighs.
    without = {"criterion", "nuggets", "nugget_weight"}
    assert CLASSES.keys() == ITEMS.keys() == VARIABLES.keys() - without


@pytest.mark.parametrize("step", CLASSES)
def test_each_step_has_24_items_of_balanced_classes_with_injections_and_long_texts(step: str) -> None:
    items = ITEMS[step]
    assert Counter(item.expected for item in items) == CLASSES[step]
    assert [item.id for item in items] == [f"{step}-{number:02}" for number in range(1, 25)]
    assert len({str(item.values) for item in items}) == 24
    injections, long = ([item for item in items if tag in item.tags] for tag in ("injection", "long"))
    assert len(injections) == len(long) == 3
    assert len({item.expected for item in injections}) > 1
    assert min(map(length, long)) >= sorted(map(length, items))[-3] > 550


@pytest.mark.parametrize("step", CLASSES)
def test_an_item_fits_its_prompt_and_the_right_answer_is_known_as_such(step: str) -> None:
    for item in ITEMS[step]:
        assert set(item.values) == set(VARIABLES[step])
        prompt = built_in_templates()[step].prompt(item.values)
        assert Prompt.parse(prompt.payload()) == prompt
        verdict = step_named(step).read(item.values, right_answer(item))
        assert step_named(step).known_class(verdict) == item.expected


def test_accuracy_is_counted_for_all_items_and_for_each_class_and_tag() -> None:
    items = ITEMS["support"]
    right = {item.id: item.expected for item in items}
    wrong = {**right, "support-08": "contradicted", "support-09": "supported"}
    del wrong["support-17"]
    counts = accuracies(items, wrong)
    assert set(counts) == {"", "contradicted", "injection", "long", "not_stated", "supported"}
    assert (counts[""].right, counts[""].count) == (21, 24)
    expected = binomtest(21, 24).proportion_ci(0.95, method="wilson")
    assert (counts[""].low, counts[""].high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    expected_right = {"supported": 7, "contradicted": 7, "not_stated": 7, "injection": 2, "long": 3}
    assert {group: counts[group].right for group in expected_right} == expected_right
    assert accuracies(items, right)[""].right == 24


def test_drift_is_tested_over_items_that_were_answered_both_times() -> None:
    items = ITEMS["grade"]
    right = {item.id: item.expected for item in items}
    worse = {**right, **{item.id: "wrong" for item in items[:7]}}
    assert drift_p_value(items, right, worse) == pytest.approx(binomtest(7, 7).pvalue)
    assert drift_p_value(items, right, right) == 1.0
    assert drift_p_value(items, {}, worse) == 1.0
