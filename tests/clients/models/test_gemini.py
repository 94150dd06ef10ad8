"""The `gemini` model against a server that speaks both of Google's protocols: every outcome, and one request a call."""

import asyncio
import json
import re
import socket
from typing import Any

import pytest
from support.model_calls import bodies, outcome, question, replies, requests, support
from support.standins import Standin
from support.standins.models import embedding

from rankbeam.transforms.clients.models.base import Completion, Embedding
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.judge.steps.reading import ReasonedVerdict
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

K = FailureKind


def vertex(server: Standin, **parameters: Any) -> Gemini:
    return Gemini(model="gemini-x-001", project="p", location="l", api_endpoint=server.url, **parameters)


def as_proto(value: Any) -> Any:
    """JSON with the names that Google documents: its servers take snake_case too, which the library sends in places."""
    if isinstance(value, dict):
        camel = lambda name: re.sub(r"_(\w)", lambda match: match[1].upper(), name)  # noqa: E731
        return {camel(name): as_proto(item) for name, item in value.items()}
    return [as_proto(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def developer(gemini: Standin, monkeypatch: pytest.MonkeyPatch) -> Gemini:
    monkeypatch.setenv("SOME_KEY", "the-secret-key")
    return Gemini(model="gemini-x-001", api_key="${env:SOME_KEY}", api_endpoint=gemini.url)


def test_vertex_and_the_developer_api_answer_alike(gemini: Standin, developer: Gemini) -> None:
    prompt = support("who pays?", max_output_tokens=77, seed=5)
    on_vertex, on_developer = (outcome(model, prompt) for model in (vertex(gemini), developer))
    assert on_vertex == on_developer
    assert all(isinstance(one, ReasonedVerdict) for one in on_vertex)
    targets = [request["target"] for request in gemini.stats().requests][-2:]
    assert targets[0] == "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-x-001:generateContent"
    assert targets[1].endswith("/models/gemini-x-001:generateContent")
    keys = [request["headers"].get("x-goog-api-key") for request in gemini.stats().requests][-2:]
    assert keys == [None, "the-secret-key"]
    body = bodies(gemini, "who pays?")[-1]
    config = as_proto(body["generationConfig"])
    assert body["systemInstruction"]["parts"][0]["text"].startswith("You check claims")
    assert (config["maxOutputTokens"], config["temperature"], config["seed"]) == (77, 0, 5)
    schema = config["responseSchema"]["properties"]["verdicts"]
    assert int(schema["maxItems"]) == 2
    assert schema["items"]["propertyOrdering"] == ["id", "reason", "verdict"]
    assert schema["items"]["properties"]["verdict"]["enum"] == ["supported", "contradicted", "not_stated"]


def test_thinking_is_paid_as_output_and_its_text_is_no_answer(gemini: Standin) -> None:
    (reply,) = replies(vertex(gemini, thinking=0), [question("how much?")])
    assert isinstance(reply, Reply)
    body = json.loads(reply.answer)
    assert body == {"text": body["text"], "finish": "stop", "block": None, "model_version": "gemini-x-001-v7"}
    assert "think" not in body["text"]
    spent = gemini.stats().tokens[-1][1]
    assert reply.tokens.total == spent
    assert reply.tokens.output == len(body["text"]) // 4 + 1 + 7
    assert 0 < reply.tokens.cached < reply.tokens.input
    config = as_proto(bodies(gemini, "how much?")[-1]["generationConfig"])
    assert config["thinkingConfig"] == {"thinkingBudget": 0}


OUTCOMES = [
    ("blocked_prompt", K.BLOCKED, "PROHIBITED_CONTENT"),
    ("safety", K.BLOCKED, "SAFETY"),
    ("recitation", K.BLOCKED, "RECITATION"),
    ("malformed_call", K.MALFORMED, "MALFORMED_FUNCTION_CALL"),
    ("unknown_finish", K.MALFORMED, "BORED"),
    ("truncated", K.TRUNCATED, "in the middle"),
    ("truncated_thinking", K.TRUNCATED, "before it began"),
    ("no_candidates", K.MALFORMED, "no candidate"),
    ("empty_body", K.MALFORMED, "no candidate"),
    ("empty", K.MALFORMED, "the answer is empty"),
    ("malformed", K.UNAVAILABLE, "not JSON"),
    ("quota", K.QUOTA, "429 RESOURCE_EXHAUSTED"),
    ("unavailable", K.UNAVAILABLE, "503 UNAVAILABLE"),
    ("internal", K.UNAVAILABLE, "500 INTERNAL"),
    ("bad_gateway", K.UNAVAILABLE, "502"),
    ("timeout", K.TIMEOUT, "504"),
    ("request_timeout", K.TIMEOUT, "408"),
    ("conflict", K.UNAVAILABLE, "409"),
    ("too_early", K.UNAVAILABLE, "425"),
    ("permission", K.PERMISSION, "403"),
    ("not_found", K.NOT_FOUND, "404"),
    ("invalid", K.INVALID, "400 INVALID_ARGUMENT"),
    ("bad_key", K.PERMISSION, "API key not valid"),
    ("reset", K.UNAVAILABLE, "Error"),
    ("partial", K.UNAVAILABLE, "Error"),
]


@pytest.mark.long
@pytest.mark.parametrize(("fault", "kind", "message"), OUTCOMES, ids=[fault for fault, _, _ in OUTCOMES])
def test_what_goes_wrong_has_its_kind_after_one_request(
    gemini: Standin, fault: str, kind: FailureKind, message: str
) -> None:
    problem = outcome(vertex(gemini), question(f"fault={fault} once"))
    assert isinstance(problem, CallError), problem
    assert problem.kind is kind, problem
    assert message in problem.message
    assert not problem.stops_pool
    assert requests(gemini, f"fault={fault} once") == 1


SCHEMA_FAULTS = {
    "prose": "Invalid JSON",
    "broken_json": "Invalid JSON",
    "wrong_type": "verdicts.0.id",
    "wrong_enum": "verdicts.0.verdict",
    "missing_item": "missing",
}


@pytest.mark.parametrize("fault", SCHEMA_FAULTS)
def test_an_answer_of_a_wrong_form_is_malformed(gemini: Standin, fault: str) -> None:
    problem = outcome(vertex(gemini), support(f"fault={fault}"))
    assert isinstance(problem, CallError), problem
    assert problem.kind is K.MALFORMED
    assert SCHEMA_FAULTS[fault] in problem.message


def test_a_fenced_answer_is_read(gemini: Standin) -> None:
    assert len(outcome(vertex(gemini), support("fault=fenced"))) == 2


def test_the_service_says_when_to_come_back(gemini: Standin) -> None:
    by_details = outcome(vertex(gemini), question("fault=quota_info"))
    by_header = outcome(vertex(gemini), question("fault=quota_hint"))
    assert (by_details.kind, by_details.retry_after_s) == (K.QUOTA, 17.5)
    assert (by_header.kind, by_header.retry_after_s) == (K.QUOTA, 17.5)


def test_a_quota_of_the_day_stops_the_pool(gemini: Standin) -> None:
    problem = outcome(vertex(gemini), question("fault=quota_day"))
    assert (problem.kind, problem.stops_pool) == (K.QUOTA, True)


def test_a_slow_answer_is_given_up(gemini: Standin) -> None:
    problem = outcome(vertex(gemini), question("fault=hang"), timeout_s=0.3)
    assert problem.kind is K.TIMEOUT


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    model = Gemini(model="m-001", project="p", location="l", api_endpoint=f"http://127.0.0.1:{port}")
    assert outcome(model, question("anybody?")).kind is K.UNAVAILABLE


def test_a_refused_setting_is_named(gemini: Standin) -> None:
    problem = outcome(vertex(gemini, thinking=0), question("fault=invalid with thinking"))
    assert "asked with thinking: 0, which some models refuse" in problem.message
    problem = outcome(vertex(gemini, thinking=0), question("fault=invalid with more thinking", thinking=64))
    assert "asked with thinking: 64" in problem.message
    config = as_proto(bodies(gemini, "with more thinking")[-1]["generationConfig"])
    assert config["thinkingConfig"] == {"thinkingBudget": 64}


def test_a_key_is_in_no_message(developer: Gemini) -> None:
    for fault in ("reset", "invalid", "internal"):
        problem = outcome(developer, question(f"fault={fault} the-secret-key"))
        assert "the-secret-key" not in problem.message


def test_a_cut_answer_is_asked_again_with_a_doubled_limit(gemini: Standin) -> None:
    prompt = question("fault=truncated twice", max_output_tokens=100)
    replies(vertex(gemini), [prompt, prompt])
    first, second = (body["generationConfig"] for body in bodies(gemini, "fault=truncated twice"))
    assert (first["maxOutputTokens"], second["maxOutputTokens"]) == (100, 200)
    assert first["temperature"] == second["temperature"] == 0


def test_an_answer_of_a_wrong_form_is_asked_again_with_what_was_wrong(gemini: Standin) -> None:
    prompt = support("fault=wrong_enum thrice", max_output_tokens=100, seed=3, sample=2)
    replies(vertex(gemini), [prompt, prompt, prompt])
    requests = bodies(gemini, "fault=wrong_enum thrice")
    configs = [body["generationConfig"] for body in requests]
    assert [config["seed"] for config in configs] == [203, 204, 205]
    assert [config["temperature"] for config in configs] == [0, 0.2, 0.2]
    assert {config["maxOutputTokens"] for config in configs} == {100}
    texts = [body["contents"][0]["parts"][0]["text"] for body in requests]
    assert "Your last answer" not in texts[0]
    assert "could not be used: the answer breaks its schema: verdicts.0.verdict" in texts[1]
    assert texts[1].startswith(texts[0])  # what services cache is the same


def test_texts_are_embedded_on_both_services(gemini: Standin, developer: Gemini) -> None:
    for model in (vertex(gemini), vertex(gemini, dimensions=8), developer):
        vectors = outcome(model, Prompt(EMBED, {"text": "some words"}))
        assert isinstance(vectors, Embedding)
        assert vectors.vector == tuple(embedding("some words"))
    old = Gemini(model="text-embedding-005", project="p", location="l", api_endpoint=gemini.url)
    (reply,) = replies(old, [Prompt(EMBED, {"text": "other words"})])
    assert isinstance(reply, Reply)
    assert reply.tokens == Tokens(input=3)
    targets = {request["target"].rpartition(":")[2] for request in gemini.stats().requests}
    assert {"predict", "embedContent", "batchEmbedContents"} <= targets


def test_tokens_that_a_service_does_not_count_are_estimated_and_said(gemini: Standin, developer: Gemini) -> None:
    async def ask(model: Gemini, prompt: Prompt) -> tuple[list[Reply], list[str]]:
        connection: Any = await model.connect()
        results = [await connection.call(prompt.payload(), 10.0, 1) for _ in range(2)]
        await connection.close()
        return results, connection.warnings

    for model in (vertex(gemini), developer):
        answered, (warning,) = asyncio.run(ask(model, question("fault=no_usage")))
        text = json.loads(answered[0].answer)["text"]
        spent = Tokens(estimated_tokens("Be brief.fault=no_usage"), 0, estimated_tokens(text))
        assert [reply.tokens for reply in answered] == [spent, spent]
        assert warning.startswith(f"{model.scope()} does not report how many tokens its calls use")
    embedded, (warning,) = asyncio.run(ask(developer, Prompt(EMBED, {"text": "some words"})))
    assert [reply.tokens for reply in embedded] == [Tokens(3), Tokens(3)]  # the Developer API never counts these
    assert "estimated" in warning


@pytest.mark.parametrize("model", ["gemini-x-001", "text-embedding-005"])
def test_a_text_that_the_service_embeds_only_in_part_is_a_warning(gemini: Standin, model: str) -> None:
    async def ask(*texts: str) -> list[str]:
        embedder = Gemini(model=model, project="p", location="l", api_endpoint=gemini.url)
        connection: Any = await embedder.connect()
        for text in texts:
            await connection.embed([text], None, 10.0)
        await connection.close()
        return connection.warnings

    assert asyncio.run(ask("short")) == []
    (warning,) = asyncio.run(ask("long " * 9000, "longer " * 9000))
    assert "embeds only the beginning of some texts" in warning


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"model": "gemini-x-latest", "project": "p", "location": "l"}, "may refer to another model tomorrow"),
        ({"model": "m-001"}, "give project and location for Vertex AI, or api_key"),
        ({"model": "m-001", "project": "p"}, "give project and location"),
        ({"model": "m-001", "project": "p", "location": "l", "api_key": "${env:K}"}, "give project and location"),
        ({"model": "m-001", "api_key": "AIza-written-out"}, "must come from the environment"),
        ({"model": "m 001", "api_key": "${env:K}"}, "should match pattern"),
    ],
)
def test_parameters_that_cannot_work_are_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        Gemini(**parameters)
    assert problem in str(caught.value)
    assert "AIza" not in str(caught.value)


def test_identity_is_what_decides_an_answer() -> None:
    model = Gemini(model="gemini-x-001", project="p", location="l")
    assert model.identity("gemini") == {"type": "gemini", "model": "gemini-x-001", "project": "p", "location": "l"}
    assert (model.family, model.scope()) == ("gemini", "projects/p/locations/l gemini-x-001")
    assert Gemini(model="x-latest", api_key="${env:K}", allow_alias=True).identity("gemini") == {
        "type": "gemini", "model": "x-latest",
    }  # fmt: skip
    assert isinstance(model.read('{"text":"a","finish":"stop","block":null,"model_version":"v"}'), Completion)
