"""The `openai` model against a server that speaks the protocol: every outcome, and one request a call."""

import asyncio
import json
import re
import socket
from typing import Any

import pytest
from support.model_calls import bodies, outcome, question, replies, requests, support
from support.standins import Faults, Standin, serve
from support.standins.http_protocol import scripted
from support.standins.models import embedding

from rankbeam.transforms.clients.models.base import Completion, Embedding
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.models.openai_connection import OpenAiConnection
from rankbeam.transforms.clients.models.replies import Charges, ReportedUsage
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.judging.answers import estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

K = FailureKind


def local(server: Standin, **parameters: Any) -> OpenAi:
    return OpenAi(base_url=f"{server.url}/v1", model="m-001", **parameters)


def test_a_schema_is_asked_for_and_tokens_are_counted(openai: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "the-secret-key")
    model = local(openai, api_key="${env:SOME_KEY}")
    (reply,) = replies(model, [support("who pays?", max_output_tokens=77, seed=5)])
    assert isinstance(reply, Reply)
    answer = json.loads(reply.answer)
    assert (answer["finish"], answer["block"], answer["model_version"]) == ("stop", None, "m-001-v7")
    assert reply.tokens.total == openai.stats().tokens[-1][1]
    assert 0 < reply.tokens.cached < reply.tokens.input
    request = openai.stats().requests[-1]
    assert request["headers"]["authorization"] == "Bearer the-secret-key"
    body = json.loads(request["body"])
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m-001", 77, 0, 5)
    form = body["response_format"]
    assert (form["type"], form["json_schema"]["strict"], form["json_schema"]["name"]) == (
        "json_schema",
        True,
        "support",
    )
    assert form["json_schema"]["schema"]["properties"]["verdicts"]["maxItems"] == 2
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert len(outcome(model, support("who pays?"))) == 2


def test_a_key_can_have_a_header_of_its_own(openai: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "the-secret-key")
    assert len(outcome(local(openai, api_key="${env:SOME_KEY}", key_header="api-key"), support("whose key?"))) == 2
    headers = openai.stats().requests[-1]["headers"]
    assert (headers["api-key"], headers.get("authorization")) == ("the-secret-key", None)


def test_a_schema_can_be_in_the_prompt_from_the_first_request_on(openai: Standin) -> None:
    model = local(openai, schema_in="prompt")
    assert len(outcome(model, support("where is the schema?"))) == 2
    (body,) = bodies(openai, "where is the schema?")
    assert "response_format" not in body
    assert '"verdicts"' in body["messages"][0]["content"].partition("JSON object of this schema")[2]


def test_where_schema_and_key_are_sent_counts_in_no_identity_by_default() -> None:
    plain = OpenAi(base_url="http://localhost/v1", model="m")
    assert (
        plain.decisive().keys() == OpenAi(base_url="http://localhost/v1", model="m", key_header="k").decisive().keys()
    )
    assert plain.decisive() != OpenAi(base_url="http://localhost/v1", model="m", schema_in="prompt").decisive()


def test_prose_is_asked_for_without_a_form(openai: Standin) -> None:
    model = local(openai, limit_name="max_completion_tokens")
    result = outcome(model, Prompt("answer", {"query": "plain"}, user="{query}", seed=None, max_output_tokens=9))
    assert isinstance(result, Completion)
    (body,) = bodies(openai, "plain")
    assert set(body) == {"model", "messages", "temperature", "max_completion_tokens"}
    assert len(body["messages"]) == 1


OUTCOMES = [
    ("safety", K.BLOCKED, "content_filter"),
    ("truncated", K.TRUNCATED, "in the middle"),
    ("truncated_thinking", K.TRUNCATED, "before it began"),
    ("unknown_finish", K.MALFORMED, "bored"),
    ("no_candidates", K.MALFORMED, "no choice"),
    ("empty", K.MALFORMED, "the answer is empty"),
    ("empty_body", K.UNAVAILABLE, "not JSON"),
    ("malformed", K.UNAVAILABLE, "not JSON"),
    ("quota", K.QUOTA, "HTTP 429"),
    ("unavailable", K.UNAVAILABLE, "HTTP 503"),
    ("internal", K.UNAVAILABLE, "HTTP 500"),
    ("bad_gateway", K.UNAVAILABLE, "HTTP 502"),
    ("timeout", K.TIMEOUT, "HTTP 504"),
    ("request_timeout", K.TIMEOUT, "HTTP 408"),
    ("conflict", K.UNAVAILABLE, "HTTP 409"),
    ("too_early", K.UNAVAILABLE, "HTTP 425"),
    ("content_filter", K.BLOCKED, "content_filter"),
    ("permission", K.PERMISSION, "HTTP 403"),
    ("not_found", K.NOT_FOUND, "HTTP 404"),
    ("invalid", K.INVALID, "HTTP 400"),
    ("reset", K.UNAVAILABLE, "Error"),
    ("partial", K.UNAVAILABLE, "Error"),
]


@pytest.mark.long
@pytest.mark.parametrize(("fault", "kind", "message"), OUTCOMES, ids=[fault for fault, _, _ in OUTCOMES])
def test_what_goes_wrong_has_its_kind_after_one_request(
    openai: Standin, fault: str, kind: FailureKind, message: str
) -> None:
    problem = outcome(local(openai), question(f"fault={fault} once"))
    assert isinstance(problem, CallError), problem
    assert problem.kind is kind, problem
    assert message in problem.message
    assert not problem.stops_pool
    assert requests(openai, f"fault={fault} once") == 1


@pytest.mark.parametrize("fault", ["prose", "broken_json", "wrong_type", "wrong_enum", "missing_item"])
def test_an_answer_of_a_wrong_form_is_malformed(openai: Standin, fault: str) -> None:
    assert outcome(local(openai), support(f"fault={fault}")).kind is K.MALFORMED


def test_a_refusal_is_an_answer_unless_a_form_was_asked_for(openai: Standin) -> None:
    assert outcome(local(openai), question("fault=refusal")) == Completion("I cannot help with that.", "m-001-v7")
    problem = outcome(local(openai), support("fault=refusal"))
    assert problem.kind is K.BLOCKED
    assert "refusal: I cannot help" in problem.message


@pytest.mark.parametrize(("fault", "wait_s"), [("quota_info", 17.5), ("quota_hint", 17.5), ("quota_reset", 62.5)])
def test_the_service_says_when_to_come_back(openai: Standin, fault: str, wait_s: float) -> None:
    problem = outcome(local(openai), question(f"fault={fault}"))
    assert (problem.kind, problem.retry_after_s, problem.stops_pool) == (K.QUOTA, wait_s, False)


def test_a_spent_account_stops_the_pool(openai: Standin) -> None:
    problem = outcome(local(openai), question("fault=quota_day"))
    assert (problem.kind, problem.stops_pool) == (K.QUOTA, True)


def test_a_slow_answer_and_a_missing_server_have_their_kinds(openai: Standin) -> None:
    assert outcome(local(openai), question("fault=hang"), timeout_s=0.3).kind is K.TIMEOUT
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    model = OpenAi(base_url=f"http://127.0.0.1:{port}/v1", model="m-001")
    assert outcome(model, question("anybody?")).kind is K.UNAVAILABLE


def test_an_endpoint_without_schemas_is_asked_for_an_object_once_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[list[str]] = []
    closed = OpenAiConnection.close

    async def close(self: OpenAiConnection) -> None:
        warned.append(self.warnings)
        await closed(self)

    monkeypatch.setattr(OpenAiConnection, "close", close)
    with serve("openai", faults=Faults(rate=1.0, kinds=("no_json_schema",))) as server:
        refused, *accepted = replies(local(server), [support(f"question {number}") for number in (0, 0, 1, 2)])
        assert isinstance(refused, CallError)
        assert refused.changes_form
        assert all(isinstance(reply, Reply) for reply in accepted)
        sent = bodies(server, "question")
    assert [body["response_format"]["type"] for body in sent] == ["json_schema"] + ["json_object"] * 3
    assert '"enum": ["supported", "contradicted", "not_stated"]' in sent[1]["messages"][0]["content"]
    assert len(warned[0]) == 1
    assert "refuses JSON schemas" in warned[0][0]


def test_a_400_about_something_else_changes_nothing(openai: Standin) -> None:
    assert outcome(local(openai), support("fault=invalid for a judge")).kind is K.INVALID
    assert requests(openai, "fault=invalid for a judge") == 1


def test_what_was_wrong_decides_how_it_is_asked_again(openai: Standin) -> None:
    cut, wrong = question("fault=truncated twice", max_output_tokens=100), support("fault=missing_item twice")
    replies(local(openai), [cut, cut, wrong, wrong])
    first, second = bodies(openai, "fault=truncated twice")
    assert (first["max_tokens"], second["max_tokens"]) == (100, 200)
    assert first["messages"] == second["messages"]
    first, second = bodies(openai, "fault=missing_item twice")
    assert (first["temperature"], second["temperature"], second["seed"]) == (0, 0.2, 1)
    repair = second["messages"][-1]["content"].removeprefix(first["messages"][-1]["content"])
    assert re.search(r"the ids must be 0 to 1, each once; missing \[\d\]", repair)


def test_an_attempt_whose_first_was_elsewhere_takes_both_remedies(openai: Standin) -> None:
    async def ask() -> None:
        connection = await local(openai).connect()
        await connection.call(question("resumed", max_output_tokens=100).payload(), 10.0, 2)
        await connection.close()

    asyncio.run(ask())
    (body,) = bodies(openai, "resumed")
    assert (body["max_tokens"], body["temperature"]) == (200, 0.2)
    assert "did not have the form that is asked for" in body["messages"][-1]["content"]


def test_tokens_that_a_service_does_not_count_are_estimated_and_said(openai: Standin) -> None:
    async def ask() -> OpenAiConnection:
        connection = await local(openai).connect()
        for _ in range(2):
            reply = await connection.call(question("fault=no_usage").payload(), 10.0, 1)
            text = json.loads(reply.answer)["text"]
            assert reply.tokens == Tokens(estimated_tokens("Be brief.fault=no_usage"), 0, estimated_tokens(text))
        await connection.close()
        return connection

    (warning,) = asyncio.run(ask()).warnings
    assert "estimated, at 4 characters per token" in warning


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (ReportedUsage(output=20, total=120), Tokens(100, 0, 20)),
        (ReportedUsage(100, output=20, total=130), Tokens(100, 0, 30)),
        (ReportedUsage(output=20), Tokens(2, 0, 20)),
    ],
)
def test_a_missing_count_of_the_request_is_the_rest_of_the_total_or_estimated(
    usage: ReportedUsage, tokens: Tokens
) -> None:
    assert Charges("m").of(usage, "eight ch", "four") == tokens


def test_an_embedding_of_what_is_no_number_is_malformed(openai: Standin) -> None:
    assert outcome(local(openai), Prompt(EMBED, {"text": "fault=no_number"})).kind is K.MALFORMED


def test_texts_are_embedded(openai: Standin) -> None:
    (reply,) = replies(local(openai, dimensions=8), [Prompt(EMBED, {"text": "some words"})])
    assert isinstance(reply, Reply)
    vectors = local(openai).read(reply.answer)
    assert isinstance(vectors, Embedding)
    assert vectors == Embedding(tuple(embedding("some words")), "m-001-v7")
    assert reply.tokens == Tokens(input=3)
    assert bodies(openai, "some words") == [{"model": "m-001", "input": "some words", "dimensions": 8}]


@pytest.mark.parametrize(
    ("indexes", "order"),
    [
        ([1, 2, 0], [2, 0, 1]),
        ([None, 2, 1], [0, 2, 1]),  # as services write that leave out zeros
        ([None, None, None], [0, 1, 2]),
        ([0, 0, 0], [0, 1, 2]),
        ([3, 2, 1], None),
        ([0, 0, 1], None),
        (["2", "0", "1"], None),
        ([[1], {"a": 1}, 0], None),
        (["1"], [0]),
    ],
)
def test_embeddings_are_ordered_by_their_indexes_and_refused_where_these_make_no_sense(
    indexes: list[Any], order: list[int] | None
) -> None:
    connection = asyncio.run(OpenAi(base_url="http://h/v1", model="m").connect())
    data = [
        {"embedding": [number, 1.0], **({} if index is None else {"index": index})}
        for number, index in enumerate(indexes)
    ]
    texts = ["a", "b", "c"][: len(data)]
    if order is None:
        with pytest.raises(CallError, match="gives 0 embeddings for 3 texts"):
            connection.embeddings({"data": data}, texts)
        assert connection.vectors.texts_per_request == 1
    else:
        reply = connection.embeddings({"data": data}, texts)
        assert [json.loads(part.answer)["vector"][0] for part in reply.parts or [reply]] == order


def test_a_key_is_in_no_message_and_must_have_a_value(openai: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    model = local(openai, api_key="${env:SOME_KEY}")
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(InputError, match="api_key needs the environment variable SOME_KEY"):
        outcome(model, question("no key"))
    monkeypatch.setenv("SOME_KEY", "as the script says")
    assert outcome(model, question("fault=invalid with a key")).message.count("***") == 1


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"base_url": "localhost:8000/v1", "model": "m"}, "write http:// or https://"),
        ({"base_url": "http://h/v1?x=1", "model": "m"}, "write http:// or https://"),
        ({"base_url": "http://h/v1", "model": "llama3:latest"}, "may refer to another model tomorrow"),
        ({"base_url": "http://h/v1", "model": "m", "api_key": "sk-written-out"}, "must come from the environment"),
    ],
)
def test_parameters_that_cannot_work_are_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        OpenAi(**parameters)
    assert problem in str(caught.value)
    assert "sk-" not in str(caught.value)


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Owners"}]
OVERLOADED = {"message": "the upstream is overloaded", "code": 429}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"message": {"content": [*PARTS, {"type": "text", "text": " pay."}]}}, "Owners pay."),
        ({"message": {"content": "Owners pay."}, "finish_reason": ""}, "Owners pay."),
        ({"message": {"content": PARTS[:1]}}, (K.MALFORMED, "the answer is empty")),
        ({"message": {"content": ""}, "finish_reason": "error", "error": OVERLOADED}, (K.QUOTA, "overloaded")),
    ],
)
def test_a_choice_as_gateways_write_it(openai: Standin, choice: Any, expected: Any) -> None:
    result = outcome(local(openai), question(scripted(json.dumps({"choices": [choice]}).encode())))
    if isinstance(expected, str):
        assert result.text == expected
    else:
        assert (result.kind, expected[1] in result.message) == (expected[0], True)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OVERLOADED, K.QUOTA),
        (OVERLOADED | {"code": "429"}, K.QUOTA),
        ({"code": 418}, K.INVALID),
        ({"code": "server_error"}, K.UNAVAILABLE),
        ("down", K.UNAVAILABLE),
    ],
)
def test_an_error_with_status_200_is_shown_and_not_charged(openai: Standin, error: Any, kind: FailureKind) -> None:
    text = scripted(json.dumps({"error": error}).encode())
    for prompt in (question(text), Prompt(EMBED, {"text": text})):
        (problem,) = replies(local(openai), [prompt])
        assert isinstance(problem, CallError)
        assert (problem.kind, problem.tokens) == (kind, Tokens())
        assert json.dumps(error) in problem.message


def test_an_error_without_a_field_of_its_own_is_not_charged(openai: Standin) -> None:
    body = {"object": "error", "message": "upstream timed out", "type": "InternalServerError", "code": 503}
    problem = outcome(local(openai), question(scripted(json.dumps(body).encode())))
    assert (problem.kind, problem.tokens) == (K.UNAVAILABLE, Tokens())


@pytest.mark.parametrize(
    "error",
    [
        {"code": 402, "message": "Insufficient Balance"},
        {"code": "400", "message": "Budget has been exceeded! Max budget: 20.0", "type": "budget_exceeded"},
    ],
)
def test_a_payment_that_is_required_stops_the_pool(openai: Standin, error: dict[str, Any]) -> None:
    problem = outcome(local(openai), question(scripted(json.dumps({"error": error}).encode())))
    assert (problem.kind, problem.stops_pool) == (K.QUOTA, True)


def test_a_reply_that_is_no_json_is_shown(openai: Standin) -> None:
    problem = outcome(local(openai), question(scripted(b"<html>Log in</html>")))
    assert problem.kind is K.UNAVAILABLE
    assert "found '<html>Log in</html>'" in problem.message
