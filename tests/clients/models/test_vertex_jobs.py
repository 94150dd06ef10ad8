"""Answers of Vertex AI's batch jobs find their calls by the requests beside them."""

import json
from typing import Any

import pytest
from google.genai.batches import _BatchJob_from_vertex
from google.genai.types import BatchJob

from rankbeam.transforms.clients.models.base import Completion, Embedding, Role, read_answer
from rankbeam.transforms.clients.models.batches.gemini_jobs import GeminiJobs, SentRequests, VertexJobs, service_job
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.gemini_connection import GeminiConnection
from rankbeam.transforms.clients.models.model_connection import ModelRequest
from rankbeam.transforms.clients.secrets import Secrets
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.reply import Tokens


def request(text: str, temperature: float = 0.0) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": {"temperature": temperature}}


def sent_by(**requests: dict[str, Any]) -> SentRequests:
    return SentRequests((key, json.dumps({"request": sent}).encode()) for key, sent in requests.items())


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


def test_keys_of_an_answer_that_the_library_does_not_know_are_ignored() -> None:
    """The row has those of Vertex AI in 2025, which `GenerateContentResponse` refuses."""
    content = {"role": "model", "parts": [{"text": "Yes.", "new": {"a": 1}}]}
    answer = {
        "candidates": [{"avgLogprobs": -0.2, "score": -19.4, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"billablePromptUsage": {"textCount": 31}, "candidatesTokenCount": 2, "promptTokenCount": 9},
        "createTime": "2025-12-19T07:32:46.643688Z",
        "modelVersion": "gemini-2.0-flash-001@default",
        "new": 1,
    }
    prompt = Prompt("answer", {}, user="Who pays?")
    jobs = VertexJobs(GeminiConnection(Gemini(model="m", project="p", location="l"), Secrets({}), None, None))
    reply = jobs.reply(answer, ModelRequest(prompt.rendered(), 10, 0.0, None), prompt)
    assert read_answer(reply.answer) == Completion("Yes.", "gemini-2.0-flash-001")
    assert reply.tokens == Tokens(9, 0, 2)


@pytest.mark.parametrize("count", [12, "12"])
def test_a_batch_may_count_the_tokens_of_an_embedding_in_text(count: int | str) -> None:
    """As JSON of protocol buffers writes numbers of 64 bits."""
    model = Gemini(model="m", api_key="${env:KEY}")
    prompt = model.embedding("text", Role.DOCUMENT)
    jobs = GeminiJobs(GeminiConnection(model, Secrets({}), None, None))
    request = ModelRequest(prompt.rendered(), 10, 0.0, None)
    reply = jobs.reply({"embedding": {"values": [0.5, 1]}, "tokenCount": count, "new": 1}, request, prompt)
    assert read_answer(reply.answer) == Embedding((0.5, 1.0), "m")
    assert reply.tokens == Tokens(12)


@pytest.mark.parametrize(("stats", "answers"), [({"successfulCount": "7", "incompleteCount": "-1"}, 7), ({}, 0)])
def test_a_job_says_how_many_answers_its_files_have(stats: dict[str, str], answers: int) -> None:
    listed = {"name": "j", "displayName": "n", "state": "JOB_STATE_SUCCEEDED", "completionStats": stats}
    job = BatchJob._from_response(response=_BatchJob_from_vertex(listed), kwargs={})
    assert service_job(job).answers == answers
