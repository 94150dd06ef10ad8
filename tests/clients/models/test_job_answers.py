"""Answers of a batch job: each is used for its own call only, and charged whether it is used or not."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

import rankbeam.transforms.judge.steps  # noqa: F401  registers the steps
from rankbeam.transforms.clients.models.base import Completion, read_answer
from rankbeam.transforms.clients.models.batches.jobs import JobAnswers, RefusalReason, batch_request
from rankbeam.transforms.clients.models.batches.openai_jobs import connect
from rankbeam.transforms.clients.models.batches.service import BatchRow
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.reply import Tokens

MODEL = OpenAi(base_url="http://127.0.0.1:9/v1", model="m-001", api_key=None)
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
PROMPTS = [Prompt("colour", {"q": f"q{number}"}, user="{q}", schema=SCHEMA) for number in range(3)]
CALLS = {f"k{number}": prompt.payload() for number, prompt in enumerate(PROMPTS)}
OF_A_ROW = Tokens(10, 0, 4).in_batch()


def item(key: str, calls: Mapping[str, str] = CALLS) -> str:
    return str(batch_request(calls[key], MODEL)[2])


def row(key: str, content: Any) -> BatchRow:
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return BatchRow(key, {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 4}})


def right(key: str, calls: Mapping[str, str] = CALLS) -> BatchRow:
    return row(key, {"item": item(key, calls), "colour": f"red {key}"})


def matched(*rows: BatchRow, calls: Mapping[str, str] = CALLS) -> JobAnswers:
    async def match() -> JobAnswers:
        service = await connect(MODEL)
        answers = JobAnswers(calls, MODEL)
        for one in rows:
            answers.add(one, service)
        answers.end()
        await service.connection.close()
        return answers

    return asyncio.run(match())


def texts(answers: JobAnswers) -> dict[str, Any]:
    contents = {key: read_answer(reply.answer) for key, reply in answers.replies.items()}
    return {key: json.loads(one.text) for key, one in contents.items() if isinstance(one, Completion)}


def test_an_answer_is_used_without_its_item_at_the_price_of_a_batch() -> None:
    answers = matched(right("k1"), right("k0"), right("k2"))
    assert texts(answers) == {key: {"colour": f"red {key}"} for key in CALLS}
    assert {reply.tokens for reply in answers.replies.values()} == {OF_A_ROW}
    assert (answers.usage, answers.rows, answers.unproved) == (OF_A_ROW + OF_A_ROW + OF_A_ROW, 3, 0)
    assert (dict(answers.refused), answers.unanswered) == ({}, [])


def test_a_request_asks_for_its_own_item() -> None:
    (first, prompt, one), (second, _, other) = (batch_request(CALLS[key], MODEL) for key in ("k0", "k1"))
    assert one != other
    assert (first.texts.user, second.texts.user) == (f"q0\n\nitem: {one}", f"q1\n\nitem: {other}")
    assert prompt.schema is not None
    assert prompt.schema["required"] == ["item", "colour"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"colour": "red"}, RefusalReason.UNUSABLE),
        ("red", RefusalReason.UNUSABLE),
        ("", RefusalReason.UNUSABLE),
        ({"item": item("k0"), "colour": "red"}, RefusalReason.WRONG),
        ({"item": None, "colour": "red"}, RefusalReason.WRONG),
    ],
)
def test_an_answer_that_does_not_repeat_its_item_is_not_used_but_charged(content: Any, reason: RefusalReason) -> None:
    calls = CALLS | {f"more{number}": CALLS["k0"] for number in range(200)}
    answers = matched(right("k0"), row("k1", content), calls=calls)
    assert texts(answers) == {"k0": {"colour": "red k0"}}
    assert answers.refused[reason] == 1
    assert answers.tokens["k1"] == OF_A_ROW
    assert "k1" not in answers.unanswered  # a job does not answer it better


def test_an_answer_that_its_step_cannot_read_is_not_used() -> None:
    values = {"claims": {"0": "it rains", "1": "it snows"}, "evidence": "it rains"}
    calls = {"k0": Prompt("support", values, user="{claims}", schema=SCHEMA).payload()}
    verdicts = [{"id": number, "reason": "r", "verdict": "supported"} for number in range(2)]
    for answered, used in ((2, 1), (1, 0)):
        reply = row("k0", {"item": item("k0", calls), "verdicts": verdicts[:answered]})
        answers = matched(reply, calls=calls)
        assert (len(answers.replies), answers.refused[RefusalReason.UNUSABLE]) == (used, 1 - used)


def test_a_reply_without_an_answer_is_charged() -> None:
    answers = matched(row("k0", "")._replace(body={"choices": [], "usage": {"prompt_tokens": 10}}))
    assert answers.refused == {RefusalReason.UNUSABLE: 1, RefusalReason.MISSING: 2}
    assert answers.usage == Tokens(10).in_batch()


@pytest.mark.parametrize(("wrong", "used"), [(1, 199), (2, 0)])
def test_no_answer_is_used_if_more_than_one_in_200_belongs_to_another_request(wrong: int, used: int) -> None:
    calls = {f"k{number}": CALLS["k0"].replace("q0", f"q{number}") for number in range(200)}
    swapped = [row(f"k{number}", {"item": "other", "colour": "red"}) for number in range(wrong)]
    answers = matched(*swapped, *(right(f"k{number}", calls) for number in range(wrong, 200)), calls=calls)
    assert (len(answers.replies), answers.is_mixed_up) == (used, used == 0)
    assert answers.usage == sum([OF_A_ROW] * 200, Tokens())


def test_several_answers_to_one_request_are_all_charged_and_none_is_used() -> None:
    answers = matched(right("k0"), right("k0"), right("k0"), right("k1"))
    assert texts(answers).keys() == {"k1"}
    assert answers.refused == {RefusalReason.DUPLICATE: 3, RefusalReason.MISSING: 1}
    assert answers.tokens["k0"] == OF_A_ROW + OF_A_ROW + OF_A_ROW
    assert answers.unanswered == ["k2"]


def test_answers_to_requests_of_other_jobs_are_counted() -> None:
    answers = matched(right("k0"), right("k1")._replace(key="other"), BatchRow(None, None))
    assert answers.refused == {RefusalReason.FOREIGN: 1, RefusalReason.UNREADABLE: 1, RefusalReason.MISSING: 2}
    assert (answers.is_mixed_up, answers.rows, dict(answers.replies)) == (True, 2, {})


def test_requests_that_failed_are_unanswered_and_the_first_message_is_shown() -> None:
    answers = matched(right("k0"), BatchRow("k2", None, "no capacity"), BatchRow("k1", None, "too long"))
    assert answers.unanswered == ["k1", "k2"]
    assert list(answers.summary()) == ["2 × the request failed (no capacity)"]


def test_a_refused_part_is_left_to_another_job_also_for_later_rows_of_this_one() -> None:
    problem = "temperature is not supported with this model"
    answers = matched(BatchRow("k0", None, problem), BatchRow("k1", None, problem), right("k2"))
    assert (answers.again, answers.failed, answers.unanswered) == ({"k0", "k1"}, set(), [])
    assert texts(answers).keys() == {"k2"}


def test_an_answer_without_a_form_is_matched_by_its_key_alone() -> None:
    answers = matched(row("k0", "red"), calls={"k0": Prompt("answer", {"q": "q"}, user="{q}").payload()})
    assert (answers.unproved, len(answers.replies)) == (1, 1)
