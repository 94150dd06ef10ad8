"""Replies of any shape: each is an answer or a failure of its own call, and its tokens are counted within bounds."""

import copy
import gzip
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from support.model_calls import question, replies
from support.standins import Standin
from support.standins.http_protocol import scripted

from rankbeam.transforms.clients.models.base import MAX_TOKENS, ModelParameters
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

DEEP = object()
DEPTH = 10_000  # beyond what the stack holds
ODD: list[Any] = [
    None, True, 7, -7, 1.5, math.nan, math.inf, 10**400, 2**63, "", "x", [], [[]], ["x"], {}, {"a": []}, DEEP,
]  # fmt: skip
OPENAI_ANSWER = {
    "model": "m-001-v7",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
    "usage": {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 1},
    },
}
OPENAI_VECTOR = {"model": "m", "data": [{"index": 0, "embedding": [0.5, 1.5]}], "usage": {"prompt_tokens": 5}}
GEMINI_ANSWER = {
    "modelVersion": "m-001-v7",
    "candidates": [{"finishReason": "STOP", "index": 0, "content": {"role": "model", "parts": [{"text": "yes"}]}}],
    "promptFeedback": {"safetyRatings": []},
    "usageMetadata": {"promptTokenCount": 5, "cachedContentTokenCount": 1, "candidatesTokenCount": 2},
}
GEMINI_VECTOR = {
    "predictions": [{"embeddings": {"values": [0.5, 1.5], "statistics": {"token_count": 5, "truncated": False}}}]
}
RAW = [
    b"7",
    b"[]",
    b'"x"',
    b"null",
    b"true",
    b"{}",
    b"\xff\xfe{",
    b'{"model": "\xff"}',
    b"[" * DEPTH,
    b'{"a":' * DEPTH,
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield (*path, name)
        yield from paths(child, (*path, name))


def with_value(value: Any, path: tuple[Any, ...], odd: Any) -> bytes:
    changed = copy.deepcopy(value)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "DEEP" if odd is DEEP else odd
    return json.dumps(changed).replace('"DEEP"', "[" * DEPTH + "]" * DEPTH).encode()


def service(kind: str, server: Standin) -> ModelParameters:
    if kind == "openai":
        return OpenAi(base_url=f"{server.url}/v1", model="m-001")
    return Gemini(model="text-embedding-005", project="p", location="l", api_endpoint=server.url)


@pytest.fixture
def server(request: pytest.FixtureRequest, kind: str) -> Standin:
    standin: Standin = request.getfixturevalue(kind)
    return standin


def prompt_for(step: str, reply: bytes, headers: str = "") -> Prompt:
    text = scripted(reply, headers=headers)
    return Prompt(EMBED, {"text": text}) if step == EMBED else question(text)


CASES = [
    ("openai", "answer", OPENAI_ANSWER), ("openai", EMBED, OPENAI_VECTOR),
    ("gemini", "answer", GEMINI_ANSWER), ("gemini", EMBED, GEMINI_VECTOR),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("kind", "step", "good"), CASES)
def test_a_reply_of_any_shape_concerns_its_own_call_only(kind: str, server: Standin, step: str, good: Any) -> None:
    bodies = [*RAW, *(with_value(good, path, odd) for path in paths(good) for odd in ODD)]
    outcomes = replies(service(kind, server), [prompt_for(step, body) for body in bodies])
    assert len(outcomes) == len(bodies)
    for body, outcome in zip(bodies, outcomes, strict=True):
        tokens = outcome.tokens
        assert all(0 <= count < 2**31 for count in (tokens.input, tokens.cached, tokens.output)), body[:200]
        assert tokens.cached <= tokens.input, body[:200]
        if isinstance(outcome, CallError):
            assert outcome.kind in (FailureKind.MALFORMED, FailureKind.UNAVAILABLE, FailureKind.BLOCKED), body[:200]
            assert len(outcome.message) < 1000
        else:
            json.loads(outcome.answer)
    assert sum(isinstance(outcome, CallError) for outcome in outcomes) > len(outcomes) / 4


MALFORMED = [
    ("openai", b'{"choices": [{"message": "yes"}]}'),
    ("openai", b'{"choices": [{"message": ["yes"]}]}'),
    ("openai", b"\xff\xfe{"),
    ("openai", b"[" * DEPTH),
    ("openai", b"7"),
    ("gemini", b"7"),
    ("gemini", b"\xff\xfe{"),
    ("gemini", b"[" * DEPTH),
    ("gemini", b'{"candidates": 7}'),
    ("gemini", b'{"candidates": [{"content": {"parts": [{"text": 7}]}}]}'),
]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "body"), MALFORMED)
def test_a_reply_of_a_wrong_shape_is_malformed(kind: str, server: Standin, body: bytes) -> None:
    (outcome,) = replies(service(kind, server), [prompt_for("answer", body)])
    assert isinstance(outcome, CallError)
    assert outcome.kind is FailureKind.MALFORMED


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_reply_has_a_size_limit(kind: str, server: Standin) -> None:
    bomb = gzip.compress(b'{"x": "' + b"a" * (20 << 20) + b'"}', 6)
    assert len(bomb) < 200_000
    (outcome,) = replies(service(kind, server), [prompt_for("answer", bomb, "Content-Encoding: gzip\r\n")])
    assert isinstance(outcome, CallError)
    assert outcome.kind is FailureKind.MALFORMED
    assert "more than 16 MB" in outcome.message


def openai_usage(usage: Any, finish: str = "stop", text: str | None = "a plain answer") -> bytes:
    choice = {"message": {"content": text}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


USAGES: list[Any] = [
    {"prompt_tokens": -5000, "completion_tokens": 2},
    {"prompt_tokens": 5, "completion_tokens": 2**63},
    {"prompt_tokens": "5", "completion_tokens": "2"},
    {"prompt_tokens": [5], "completion_tokens": 2},
    {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}},
    "many",
]


@pytest.mark.parametrize("usage", USAGES)
def test_usage_that_cannot_be_is_estimated(openai: Standin, usage: Any) -> None:
    prompt = prompt_for("answer", openai_usage(usage))
    (reply,) = replies(service("openai", openai), [prompt])
    assert isinstance(reply, Reply)
    sent = estimated_tokens(prompt.rendered().system + prompt.rendered().user)
    assert reply.tokens == Tokens(sent, 0, estimated_tokens("a plain answer"))


@pytest.mark.parametrize(
    "place",
    [
        {"prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 1},  # DeepSeek
        {"prompt_tokens_details": None, "cache_read_input_tokens": 4},  # Anthropic, through a gateway
    ],
)
def test_cached_tokens_are_read_where_services_report_them(openai: Standin, place: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, **place}
    (reply,) = replies(service("openai", openai), [prompt_for("answer", openai_usage(usage))])
    assert reply.tokens == Tokens(5, 4, 2)


def test_thinking_that_only_the_total_includes_is_charged(openai: Standin) -> None:
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}  # as xAI reports 94 tokens of thinking
    (reply,) = replies(service("openai", openai), [prompt_for("answer", openai_usage(usage))])
    assert reply.tokens == Tokens(32, 0, 103)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 5, "completion_tokens": 0}])
def test_an_answer_that_reached_its_limit_is_charged_its_limit(openai: Standin, usage: Any) -> None:
    (reply,) = replies(service("openai", openai), [prompt_for("answer", openai_usage(usage, "length", None))])
    assert isinstance(reply, Reply)
    assert json.loads(reply.answer)["finish"] == MAX_TOKENS
    assert reply.tokens.output == 1024


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_reply_that_is_cut_off_is_charged_its_request(kind: str, server: Standin) -> None:
    for fault in ("partial", "malformed"):
        (outcome,) = replies(service(kind, server), [question(f"fault={fault} and charged")])
        assert isinstance(outcome, CallError)
        assert outcome.kind is FailureKind.UNAVAILABLE
        assert outcome.tokens.input == estimated_tokens(f"Be brief.fault={fault} and charged")


VECTORS = [b'{"data": [{"embedding": [0.5, 1.5]}]}', b'{"data": [{"embedding": [0.5, 1.5, 2.5]}]}']


def test_a_vector_of_another_length_is_malformed_and_named(openai: Standin) -> None:
    first, other = (Prompt(EMBED, {"text": f"{scripted(body)} of owners"}) for body in VECTORS)
    good, problem = replies(service("openai", openai), [first, other])
    assert isinstance(good, Reply)
    assert isinstance(problem, CallError)
    assert problem.kind is FailureKind.MALFORMED
    assert "3 components, and not 2" in problem.message
    assert "reply=200" in problem.message
    assert "m-001" in problem.message
    configured = OpenAi(base_url=f"{openai.url}/v1", model="m-001", dimensions=3)
    problem, good = replies(configured, [first, other])
    assert isinstance(problem, CallError)
    assert isinstance(good, Reply)


def test_a_first_vector_of_a_wrong_length_makes_only_one_right_one_malformed(openai: Standin) -> None:
    right, wrong = (scripted(body) for body in VECTORS)
    prompts = [Prompt(EMBED, {"text": f"{body} {number}"}) for number, body in enumerate([wrong, *[right] * 4])]
    outcomes = replies(service("openai", openai), prompts)
    assert [isinstance(outcome, Reply) for outcome in outcomes] == [True, False, True, True, True]
