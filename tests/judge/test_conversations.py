"""The judge in conversations: it sees the messages before a later turn, and nothing changes for other queries."""

import json

import pytest

from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.conversations import as_dialogue
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.steps import JudgeQuestion
from rankbeam.transforms.records.reply import Reply

HISTORY = as_dialogue([{"role": "user", "text": "Who pays?"}, {"role": "assistant", "text": "Owners pay."}])
KIND = JudgeQuestion("answer_kind", ("Which invoice do you mean?",))
ALONE = JudgeQuestion("questions", ("Owners pay.",))


def judge(version: int) -> Judge:
    return Judge(Model("judge", "lexical", Lexical()), built_in_templates(version))


def replied(version: int, call: Call) -> str:
    text = json.dumps({"reason": "asks back", "kind": "clarified", "relevance": 2})
    value = judge(version).read(call, Reply(Stored(text, STOP, model_version="m").written())).value
    return str(value.kind)


@pytest.mark.parametrize("version", [1, 2])
def test_a_later_turn_is_judged_with_its_history_and_can_be_clarified(version: int) -> None:
    call = judge(version).call(KIND, "And when?", 0, HISTORY)
    rendered = Prompt.parse(call.payload).rendered()
    assert HISTORY in rendered.user
    assert "And when?" in rendered.user
    assert "clarified" in rendered.system
    assert "clarified" not in rendered.user
    assert replied(version, call) == "clarified"


@pytest.mark.parametrize("version", [1, 2])
def test_a_query_without_history_is_asked_as_before_and_cannot_be_clarified(version: int) -> None:
    call = judge(version).call(KIND, "And when?", 0)
    prompt = Prompt.parse(call.payload)
    assert prompt.schema is not None
    assert "clarified" not in json.dumps([prompt.schema, prompt.rendered().system])
    assert call.key != judge(version).call(KIND, "And when?", 0, HISTORY).key
    with pytest.raises(CallError, match="write one of answered, partial, refused, off_topic"):
        replied(version, call)


def test_a_step_that_does_not_see_the_question_has_one_key_for_all_turns() -> None:
    assert judge(1).call(ALONE, "And when?", 0) == judge(1).call(ALONE, "And when?", 0, HISTORY)
