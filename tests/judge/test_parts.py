"""Long texts and lists are judged in parts, with the same numbers where the definitions make them equal."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import lists_up_to

from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import claims_question
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import key_of
from rankbeam.transforms.kernels.sentences import parts_of
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.steps import JudgeQuestion
from rankbeam.transforms.records.reply import Reply

LEXICAL = Lexical()
WORDS = st.sampled_from(["owners", "pay", "invoices", "monthly", "never", "gold", "Rome", "it", "rains"])
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(lambda words: f"{' '.join(words)}.".capitalize()))
TEXTS = st.text(alphabet="ab .!?\n")


def judge(most_letters: int | None = None) -> Judge:
    return Judge(Model("judge", "lexical", LEXICAL), built_in_templates(), most_letters=most_letters)


def value(asking: Judge, question: JudgeQuestion, query: str = "Who pays?") -> Any:
    calls = asking.calls(question, query, 0)
    stored = [LEXICAL.answer(Prompt.parse(call.payload)) for call in calls]
    outcomes = [asking.read(call, Reply(answer.written())) for call, answer in zip(calls, stored, strict=True)]
    joined = asking.joined(question, outcomes)
    assert not isinstance(joined, CallError)
    return joined.value


def whole(question: JudgeQuestion, query: str = "Who pays?") -> Any:
    """The reply of the offline judge to the question in one call."""
    asking = judge()
    call = asking.call(question, query, 0)
    return asking.read(call, Reply(LEXICAL.answer(Prompt.parse(call.payload)).written())).value


@given(TEXTS | SENTENCES.map(" ".join), st.none() | st.integers(1, 4), st.none() | st.integers(1, 30))
def test_parts_are_the_text_and_keep_to_the_limits(text: str, most_sentences: int | None, letters: int | None) -> None:
    parts = parts_of(text, most_sentences, letters)
    assert "".join(parts) == text
    assert all(letters is None or len(part) <= letters for part in parts)
    if most_sentences is None and (letters is None or len(text) <= letters):
        assert parts == [text]


@pytest.mark.long
@given(lists_up_to(150, SENTENCES.map(" ".join), 1), SENTENCES.map(" ".join))
def test_windows_of_items_give_the_verdicts_of_all_items_together(items: list[str], text: str) -> None:
    for step, count in (("support", 60), ("nugget_assign", 10)):
        question = JudgeQuestion(step, (text,), tuple(items))
        assert value(judge(), question) == whole(question)
        assert len(judge().calls(question, "?", 0)) == -(-len(items) // count)


@given(lists_up_to(150, WORDS, 1).map(lambda words: " ".join(f"The {word} is so." for word in words)))
def test_claims_of_parts_are_those_of_the_text_where_it_makes_them(text: str) -> None:
    claims = value(judge(), claims_question(text))
    assert [claim.text for claim in claims] == [claim.text for claim in whole(claims_question(text))]
    assert all(text[claim.start : claim.end] == claim.text for claim in claims)
    assert len(judge().calls(claims_question(text), "?", 0)) == -(-text.count(".") // 60)


@given(st.lists(WORDS, min_size=1, max_size=4), SENTENCES, st.integers(20, 60))
def test_a_text_supports_what_a_part_of_it_supports(claim: list[str], sentences: list[str], letters: int) -> None:
    text, items = " ".join(sentences), (" ".join(claim),)
    question = JudgeQuestion("support", (text,), items)
    parts = [whole(JudgeQuestion("support", (part,), items))[0].verdict for part in parts_of(text, None, letters)]
    (verdict,) = value(judge(letters), question)
    assert (verdict.verdict is SupportVerdict.SUPPORTED) == (SupportVerdict.SUPPORTED in parts)
    if verdict.verdict is SupportVerdict.SUPPORTED:
        assert whole(question)[0].verdict is SupportVerdict.SUPPORTED
    grades = [whole(JudgeQuestion("grade", (part,))).grade for part in parts_of(text, None, letters)]
    assert value(judge(letters), JudgeQuestion("grade", (text,))).grade == max(grades, default=0)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(("not_stated", "contradicted"), "contradicted"), (("contradicted", "supported"), "supported")],
)
def test_support_outweighs_contradiction_and_both_outweigh_silence(verdicts: tuple[str, str], expected: str) -> None:
    step = step_named("support")
    replies = [[step.decided([verdict]) for verdict in verdicts]]
    assert step.joined([], replies)[0].verdict == expected


def test_what_is_short_enough_keeps_its_key_and_what_is_longer_has_the_keys_of_its_parts() -> None:
    limits = {"support": 60, "nugget_assign": 10}
    for step, count in limits.items():
        items = tuple(f"Fact {number} holds." for number in range(count))
        question = JudgeQuestion(step, ("text",), items)
        (call,) = judge(4).calls(question, "?", 0)
        assert call == judge().call(question, "?", 0)
        longer = question._replace(items=(*items, "One more."))
        calls = judge().calls(longer, "?", 0)
        assert calls[0] == call
        assert len(calls) == 2
        assert key_of(calls) not in {one.key for one in calls}
    text = "It is so. " * 60
    assert judge().calls(claims_question(text), "?", 0) == [judge().call(claims_question(text), "?", 0)]


WHOLE_KEYS = {
    "claims": "acba605ef56917e9d17e1e21b2f06295",
    "support": "1384fceef5fd6fea9f24edf4bf8de1e2",
    "nugget_assign": "b7dd8585b17080d022b6c33cb20c80f0",
}
"""Keys that the commit before long questions had parts gave to these questions, under version 1."""


def test_version_1_asks_long_questions_whole_and_keeps_their_keys() -> None:
    facts = tuple(f"Fact {number} holds." for number in range(130))
    questions = [claims_question(" ".join(facts)), JudgeQuestion("support", ("text",), facts)]
    questions.append(JudgeQuestion("nugget_assign", ("text",), facts[:11]))
    first = replace(Judge(Model("judge", "lexical", LEXICAL), built_in_templates(1)), in_windows=False)
    assert {one.step: key_of(first.calls(one, "?", 0)) for one in questions} == WHOLE_KEYS
    assert {one.step: len(judge().calls(one, "?", 0)) for one in questions} == {
        "claims": 3,
        "support": 3,
        "nugget_assign": 2,
    }
    assert [value(first, one) for one in questions] == [whole(one) for one in questions]
    limited = replace(first, most_letters=60)
    assert len(limited.calls(JudgeQuestion("grade", ("One is so. " * 12,)), "?", 0)) > 1


def test_a_part_that_fails_fails_the_question() -> None:
    question = JudgeQuestion("nugget_assign", ("text",), tuple(f"Fact {number}." for number in range(11)))
    failed = judge().joined(question, [CallError(FailureKind.BLOCKED, "blocked", 1)] * 2)
    assert isinstance(failed, CallError)
    assert failed.kind is FailureKind.BLOCKED
