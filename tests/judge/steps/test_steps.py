"""Answers of a judge are read strictly: complete ids, true quotes, values of the schema; else an error says why."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judging import VARIABLES

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.answer_kind import JudgedKind
from rankbeam.transforms.judge.steps.claims import Claim
from rankbeam.transforms.judge.steps.embed import similarity
from rankbeam.transforms.judge.steps.grade import ContextGrade
from rankbeam.transforms.judge.steps.questions import GeneratedQuestion
from rankbeam.transforms.judge.steps.reading import ReasonedVerdict
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.kernels.judged import AnswerKind, NuggetAssignment, Undefined
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.judging.steps import LONGEST_REASON


def read(step: str, values: dict[str, Any], text: str) -> Any:
    return step_named(step).read(values, text)


FOUR = {"claims": {str(number): f"claim {number}" for number in range(4)}, "evidence": "e"}
TEXT = {"text": "Paris is the  capital\nof France. It rains."}


def reply_of(*rows: tuple[Any, Any]) -> str:
    return json.dumps({"verdicts": [{"id": number, "reason": "why", "verdict": one} for number, one in rows]})


YES = "supported"
GOOD = reply_of(*((number, YES) for number in range(4)))


@given(order=st.permutations(range(4)), verdicts=st.lists(st.sampled_from(SupportVerdict), min_size=4, max_size=4))
def test_verdicts_come_back_in_the_order_of_ids_whatever_order_they_were_given_in(
    order: list[int], verdicts: list[SupportVerdict]
) -> None:
    answer = reply_of(*((number, verdicts[number].value) for number in order))
    assert read("support", FOUR, answer) == tuple(ReasonedVerdict(one, "why") for one in verdicts)


def test_quotes_are_placed_in_the_text_whatever_white_space_is_between_words() -> None:
    answer = {"claims": [{"id": 1, "text": "Rain falls.", "quote": "It rains."},
                         {"id": 0, "text": "Paris is a capital.", "quote": "the capital of\tFrance"}]}  # fmt: skip
    claims = read("claims", TEXT, json.dumps(answer))
    assert claims == (Claim("Paris is a capital.", 9, 31), Claim("Rain falls.", 33, 42))
    assert [TEXT["text"][claim.start : claim.end] for claim in claims] == ["the  capital\nof France", "It rains."]
    assert read("claims", TEXT, '{"claims": []}') == ()


def test_embeddings_of_two_models_are_refused_and_planned_ones_are_not() -> None:
    with pytest.raises(InputError, match="embeddings have 2 and 3 components, so not all are from the same model"):
        similarity(np.ones(3), np.ones(2))
    assert similarity(np.zeros(0), np.ones(2)) is Undefined.NO_DIRECTION


@pytest.mark.parametrize("quote", ['"it snows"', '""', "null", "7", '["It"]', None])
def test_a_quote_that_is_not_in_the_text_leaves_its_claim_without_a_place(quote: str | None) -> None:
    written = "" if quote is None else f', "quote": {quote}'
    assert read("claims", TEXT, f'{{"claims": [{{"id": 0, "text": "a"{written}}}]}}') == (Claim("a", None, None),)
    assert read("claims", TEXT, '{"claims": [{"id": 0, "text": "a", "quote": "**it** Rains"}]}')[0].start == 33


def test_the_other_steps_are_read_as_what_they_say() -> None:
    assert read("grade", {}, '{"reason": "r", "intent": 3, "trust": 0, "grade": 2}') == ContextGrade(2, "r")
    kind = read("answer_kind", {}, '{"reason": "r", "kind": "refused", "relevance": 0}')
    assert kind == JudgedKind(AnswerKind.REFUSED, 0, "r")
    assigned = read("nugget_assign", {"nuggets": {"0": "n"}}, reply_of((0, "partial")))
    assert assigned == (ReasonedVerdict(NuggetAssignment.PARTIAL, "why"),)
    assert read("statements", {}, '{"statements": ["a", "b"]}') == ("a", "b")
    assert read("sentences", {"sentences": ["a", "b", "c"]}, '{"sentences": [3, 1]}') == (True, False, True)
    three = {"questions": [{"question": f"{number}?", "noncommittal": number == 2} for number in range(3)]}
    assert read("questions", {}, json.dumps(three)) == tuple(
        GeneratedQuestion(question=f"{number}?", noncommittal=number == 2) for number in range(3)
    )


def test_a_code_fence_around_the_object_is_taken_off_and_long_reasons_are_cut() -> None:
    assert read("support", FOUR, f"```json\n{GOOD}\n```\n") == read("support", FOUR, GOOD)
    for around in ("```JSON {} ```", "Sure:\n\n```json\n{}\n```\n\nHope this helps!"):
        assert read("support", FOUR, around.replace("{}", GOOD)) == read("support", FOUR, GOOD)
    coded = '{"statements": ["Write ```json {} ```."]}'
    assert read("statements", {}, coded) == read("statements", {}, f"```\n{coded}\n```") == ("Write ```json {} ```.",)
    long = json.dumps({"reason": "x" * 1000, "intent": 0, "trust": 0, "grade": 0})
    assert len(read("grade", {}, long).reason) == LONGEST_REASON


@pytest.mark.parametrize(
    ("step", "values", "answer", "problem"),
    [
        ("support", FOUR, reply_of((0, YES), (1, YES)), "the ids must be 0 to 3, each once; missing [2, 3]"),
        ("support", {"claims": {"0": "x"}}, GOOD, "further [1, 2, 3]"),
        ("support", FOUR, reply_of((0, YES), (0, YES), (1, YES), (2, YES)), "missing [3], further [0]"),
        ("support", FOUR, reply_of(*((number, YES) for number in (1, 2, 3, 4))), "missing [0], further [4]"),
        ("support", FOUR, reply_of((0, 1), (1, 1), (2, 1), (3, 1)), "verdicts.0.verdict: "),
        ("support", FOUR, reply_of((0, -1), (1, 2), (2, 1), (3, 1)), "verdicts.0.verdict: "),
        ("support", FOUR, GOOD.replace('"supported"', '"Supported"', 1), "verdict: Input should be 'supported'"),
        ("support", FOUR, GOOD.replace('"id": 0', '"id": "0"'), "verdicts.0.id: Input should be a valid integer"),
        ("support", FOUR, GOOD.replace('"id": 0', '"id": 0.0'), "verdicts.0.id: Input should be a valid integer"),
        ("support", FOUR, GOOD.replace('"id": 0', '"id": true'), "verdicts.0.id: Input should be a valid integer"),
        ("support", FOUR, GOOD.replace('"reason": "why", ', "", 1), "verdicts.0.reason: Field required"),
        ("support", FOUR, GOOD.replace('"reason"', '"because": "b", "reason"', 1), "verdicts.0.because: Extra inputs"),
        ("support", FOUR, GOOD[:-2], "Invalid JSON"),
        ("support", FOUR, f"Here you are: {GOOD}", "Invalid JSON"),
        ("support", FOUR, f"```\n{GOOD}\n```\nor\n```\n{GOOD}\n```", "Invalid JSON"),
        ("support", FOUR, "I cannot judge this passage; see section 3.", "Invalid JSON"),
        ("support", FOUR, "[]", "Input should be an object"),
        ("nugget_assign", {"nuggets": {"0": "n"}}, reply_of((0, "supported")), "verdict: Input should be 'support'"),
        ("claims", TEXT, '{"claims": [{"id": 1, "text": "a", "quote": "It"}]}', "missing [0], further [1]"),
        ("claims", TEXT, '{"claims": [{"id": 0, "text": " ", "quote": "It"}]}', "claims.0.text: "),
        ("grade", {}, '{"reason": "r", "intent": 3, "trust": 0, "grade": 4}', "grade: Input should be less"),
        ("grade", {}, '{"reason": "r", "intent": 3, "trust": 0, "grade": -1}', "grade: Input should be greater"),
        ("grade", {}, '{"reason": "r", "intent": 3, "trust": 0, "grade": "2"}', "grade: Input should be a valid"),
        ("answer_kind", {}, '{"reason": "r", "kind": "yes", "relevance": 1}', "kind: Input should be 'answered'"),
        ("statements", {}, '{"statements": [""]}', "statements.0: "),
        ("questions", {}, '{"questions": []}', "questions: List should have at least 3 items"),
        ("sentences", {"sentences": ["a"]}, '{"sentences": [0]}', "from 1 to 1; found [0]"),
        ("sentences", {"sentences": ["a"]}, '{"sentences": [1, 1]}', "each id at most once"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_malformed_and_says_what_was_wrong(
    step: str, values: dict[str, Any], answer: str, problem: str
) -> None:
    with pytest.raises(CallError) as caught:
        read(step, values, answer)
    assert caught.value.kind is FailureKind.MALFORMED
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("step", "values", "answer", "problem"),
    [
        ("claims", TEXT, '{"claims": [], "claims": []}', "the key 'claims' occurs twice in one object"),
        ("support", FOUR, GOOD.replace('"verdict"', '"verdict": "none", "verdict"', 1), "'verdict' occurs"),
        ("support", FOUR, GOOD.replace('"verdict"', '"verdic\\u0074": "", "verdict"', 1), "'verdict' occurs"),
        ("grade", {}, '{"reason": "r", "intent": 3, "trust": 0, "grade": 0, "grade": 3}', "'grade' occurs twice"),
        ("answer_kind", {}, '{"reason": "", "kind": "refused", "relevance": 0, "reason": ""}', "'reason' occurs"),
    ],
)  # fmt: skip
def test_a_key_that_occurs_twice_is_malformed(step: str, values: dict[str, Any], answer: str, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        read(step, values, answer)
    assert caught.value.kind is FailureKind.MALFORMED
    assert problem in caught.value.message


@pytest.mark.parametrize("step", VARIABLES)
def test_every_schema_requires_all_properties_and_has_reasons_before_verdicts(step: str) -> None:
    items = {name: {"0": "x"} for name in ("claims", "nuggets", "contexts")}
    values = {**items, "sentences": ["x"], "verdicts": "yes | no"}

    def visit(node: dict[str, Any]) -> None:
        if node["type"] == "object":
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
            names = list(node["properties"])
            judged = [name for name in names if name in ("verdict", "kind", "grade", "relevance", "intent", "trust")]
            assert all(names.index("reason") < names.index(name) for name in judged)
            for child in node["properties"].values():
                visit(child)
        elif node["type"] == "array":
            visit(node["items"])

    visit(dict(step_named(step).schema(values)))


@pytest.mark.parametrize("quote", ["9" * 5000, "[" * 100_000 + "]" * 100_000])
def test_a_quote_that_no_json_reader_takes_is_malformed(quote: str) -> None:
    with pytest.raises(CallError) as caught:
        read("claims", TEXT, f'{{"claims": [{{"id": 0, "text": "a", "quote": {quote}}}]}}')
    assert caught.value.kind is FailureKind.MALFORMED
