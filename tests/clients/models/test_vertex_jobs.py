"""Answers of Vertex AI's batch jobs find their calls by the requests beside them."""

import json
from typing import Any

import pytest

from rankbeam.transforms.clients.models.batches.gemini_jobs import AskedRequests


def request(text: str, temperature: float = 0.0) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": {"temperature": temperature}}


def sent_by(**requests: dict[str, Any]) -> AskedRequests:
    return AskedRequests((key, json.dumps({"request": sent}).encode()) for key, sent in requests.items())


def test_a_repeated_request_says_which_call_it_was() -> None:
    calls = sent_by(a=request("one"), b=request("one", 0.7), c=request("two"))
    assert [calls.key(request("one", 0.7)), calls.key(request("one")), calls.key(request("two"))] == ["b", "a", "c"]
    reordered = dict(reversed(request("two").items()))
    assert calls.key(reordered) == "c"


def test_in_another_form_its_texts_say_so_unless_two_calls_have_them() -> None:
    calls = sent_by(a=request("one"), b=request("one", 0.7), c=request("two"))
    assert calls.key({**request("two"), "generationConfig": {"temperature": 0, "topP": 1}}) == "c"
    assert calls.key({**request("one"), "generationConfig": {}}) is None


@pytest.mark.parametrize("foreign", [request("three"), {}, None, "text", {"contents": [None, {"parts": ["x"]}]}])
def test_a_request_of_another_job_has_no_call(foreign: Any) -> None:
    assert sent_by(a=request("one")).key(foreign) == ""


def test_samples_take_answers_in_turn_and_one_too_many_is_a_duplicate() -> None:
    calls = sent_by(a=request("one", 0.7), b=request("one", 0.7))
    keys = [calls.key(request("one", 0.7)) for _ in range(3)]
    assert sorted(keys[:2]) == ["a", "b"]
    assert keys[2] == keys[1]
