"""Behaviour of all models: the form of answers, aliases, reserved tokens, and calls after an unusable answer."""

import json

import pytest

from rankbeam.transforms.clients.models.base import Completion, ModelParameters, Stored, prompt_of, read_answer
from rankbeam.transforms.clients.models.model_connection import ModelAttempts
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind

CLAIMS = built_in_templates()["claims"].prompt({"query": "q", "text": "It rains."}, max_output_tokens=50)
GOOD = Stored('{"claims": []}', "stop").written()
CUT = Stored('{"cla', "max_tokens").written()
WRONG = Stored("no JSON", "stop").written()


class Plain(ModelParameters):
    """A model without further parameters."""


@pytest.mark.parametrize("name", ["x-latest", "latest", "llama3:latest", "models/X-Latest", "ranker@latest"])
def test_a_name_that_may_mean_another_model_tomorrow_is_refused_unless_allowed(name: str) -> None:
    with pytest.raises(ValueError, match="may refer to another model tomorrow"):
        Plain(model=name)
    assert Plain(model=name, allow_alias=True).model == name
    assert Plain(model="latestnews-001").model == "latestnews-001"


def test_halves_of_characters_are_not_kept() -> None:
    written = Stored("a\ud83d b", "stop").written()
    assert written.encode()
    assert read_answer(written) == Completion("a� b", "")


def test_thoughts_before_an_answer_are_not_part_of_it() -> None:
    for text in ("<think>Who?\n\nHm.</think>\n\nOwners.", "\n<think>\n\n</think>Owners."):
        assert read_answer(Stored(text, "stop").written()) == Completion("Owners.", "")
    quoted = "Write <think>Who?</think>."
    assert read_answer(Stored(quoted, "stop").written()) == Completion(quoted, "")
    with pytest.raises(CallError, match="the answer is empty"):
        read_answer(Stored("<think>Who?</think>", "stop").written())


@pytest.mark.parametrize("answer", ["", "[]", '{"text": 1, "finish": "stop"}', '{"finish": "stop"}'])
def test_what_is_no_stored_answer_is_malformed(answer: str) -> None:
    with pytest.raises(CallError) as caught:
        read_answer(answer)
    assert caught.value.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("payload", ["", "[]", '{"step": "x", "values": {}, "colour": 1}'])
def test_a_payload_that_is_no_prompt_is_invalid(payload: str) -> None:
    with pytest.raises(CallError) as caught:
        prompt_of(payload)
    assert caught.value.kind is FailureKind.INVALID


def test_the_key_follows_the_model_and_the_prompt_and_not_how_it_is_reached() -> None:
    prompt = Prompt("answer", {"query": "q"}, user="{query}")
    assert Plain(model="a").key("plain", prompt) == Plain(model="a", allow_alias=True).key("plain", prompt)
    others = [Plain(model="b").key("plain", prompt), Plain(model="a").key("other", prompt)]
    others.append(Plain(model="a").key("plain", Prompt("answer", {"query": "p"}, user="{query}")))
    assert len({Plain(model="a").key("plain", prompt), *others}) == 4


@pytest.mark.parametrize(
    ("answers", "limit", "temperature", "problem"),
    [
        ([CUT], 100, 0.0, None),
        ([WRONG], 50, 0.2, "Invalid JSON"),
        ([CUT, WRONG], 100, 0.2, "Invalid JSON"),
        ([WRONG, CUT], 100, 0.2, "Invalid JSON"),
        ([WRONG, GOOD], 100, 0.2, "did not have the form"),
        ([], 100, 0.2, "did not have the form"),
    ],
)
def test_each_trouble_has_its_remedy_and_those_of_before_stay(
    answers: list[str], limit: int, temperature: float, problem: str | None
) -> None:
    attempts, payload = ModelAttempts(), CLAIMS.payload()
    first = attempts.ask(payload, CLAIMS, 1)
    for answer in answers:
        attempts.answered(payload, CLAIMS, answer)
    again = attempts.ask(payload, CLAIMS, len(answers) + 1 if answers else 2)
    assert (first.max_output_tokens, first.temperature, first.seed) == (50, 0.0, 0)
    assert (again.max_output_tokens, again.temperature) == (limit, temperature)
    added = again.texts.user.removeprefix(first.texts.user)
    assert added == "" if problem is None else problem in added
    assert again.texts.system == first.texts.system
    other = attempts.ask(f"{payload} ", CLAIMS, 2)
    assert (other.max_output_tokens, other.temperature) == (100, 0.2)  # nothing is known of its answers


def test_samples_have_seeds_of_their_own() -> None:
    seeds = set()
    for sample in range(3):
        prompt = Prompt("answer", {"query": "q"}, user="{query}", seed=7, sample=sample)
        seeds |= {ModelAttempts().ask(prompt.payload(), prompt, attempt).seed for attempt in (1, 2, 3)}
    assert len(seeds) == 9
    unseeded = Prompt("answer", {"query": "q"}, seed=None)
    assert ModelAttempts().ask(unseeded.payload(), unseeded, 2).seed is None
    assert json.loads(unseeded.payload())["seed"] is None
