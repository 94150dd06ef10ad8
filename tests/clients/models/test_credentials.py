"""Keys reach the service alone: no redirect, no public address without TLS, no echo in what is stored."""

import asyncio
import json
import re
from typing import Any

import pytest
from support.model_calls import question, replies, support
from support.standins import Standin
from support.standins.http_protocol import scripted

from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.reply import Reply

KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def models(openai: Standin, gemini: Standin, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelParameters]:
    monkeypatch.setenv("SOME_KEY", KEY)
    return {
        "openai": OpenAi(base_url=f"{openai.url}/v1", model="m-001", api_key="${env:SOME_KEY}"),
        "gemini": Gemini(model="m-001", api_key="${env:SOME_KEY}", api_endpoint=gemini.url),
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(
    models: dict[str, ModelParameters], request: pytest.FixtureRequest, kind: str, status: int
) -> None:
    other: Standin = request.getfixturevalue("gemini" if kind == "openai" else "openai")
    before = other.stats().calls
    away = scripted(b"", status, f"Location: {other.url}/v1/chat/completions?k={KEY}\r\n")
    (outcome,) = replies(models[kind], [question(away)])
    assert isinstance(outcome, CallError)
    assert outcome.kind is FailureKind.INVALID
    assert f"HTTP {status}" in outcome.message
    assert f"redirects to {other.url}" in outcome.message
    assert KEY not in outcome.message
    assert other.stats().calls == before


def echo(kind: str, text: str) -> bytes:
    if kind == "openai":
        return json.dumps({"model": f"m {KEY}", "choices": [{"message": {"content": text}}]}).encode()
    parts = {"parts": [{"text": text}]}
    return json.dumps({"modelVersion": f"m {KEY}", "candidates": [{"content": parts, "finishReason": "STOP"}]}).encode()


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_key_that_is_echoed_is_hidden_in_answers(models: dict[str, ModelParameters], kind: str) -> None:
    (reply,) = replies(models[kind], [question(scripted(echo(kind, f"your key is {KEY}.")))])
    assert isinstance(reply, Reply)
    stored = json.loads(reply.answer)
    assert (stored["text"], stored["model_version"]) == ("your key is ***.", "m ***")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("before", range(250, 330, 7))
def test_a_key_that_is_echoed_is_hidden_in_errors_wherever_they_are_cut(
    models: dict[str, ModelParameters], kind: str, before: int
) -> None:
    body = json.dumps({"error": {"code": 400, "message": f"{'x' * before}{KEY}", "status": "INVALID"}}).encode()
    (outcome,) = replies(models[kind], [question(scripted(body, 400))])
    assert isinstance(outcome, CallError)
    assert not re.search(r"sk-|very|secret", outcome.message)


def test_a_key_in_a_judges_reply_is_in_no_repair(openai: Standin, models: dict[str, ModelParameters]) -> None:
    wrong = json.dumps({"verdicts": [{"id": 0, "reason": "x", "verdict": KEY}]})
    prompt = support(scripted(echo("openai", wrong)))
    replies(models["openai"], [prompt, prompt])
    sent = [json.loads(request["body"]) for request in openai.stats().requests[-2:]]
    assert "Your last answer" in sent[1]["messages"][-1]["content"]
    assert KEY not in json.dumps(sent)


def built(kind: str, host: str, **more: Any) -> ModelParameters:
    if kind == "openai":
        return OpenAi(base_url=f"http://{host}:8000/v1", model="m", **{"api_key": "${env:SOME_KEY}", **more})
    return Gemini(model="m", api_endpoint=f"http://{host}:8000", api_key="${env:SOME_KEY}", **more)


@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("host", ["203.0.114.7", "8.8.8.8", "[2001:4860::1]", "llm.example.com", "llm.internal"])
def test_a_key_goes_over_plain_http_to_other_machines_only_where_that_is_allowed(kind: str, host: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        built(kind, host)
    assert "https" in str(caught.value)
    assert "allow_http: true" in str(caught.value)
    assert not built(kind, host, allow_http=True).warnings()


@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("host", ["10.1.2.3", "192.168.0.9", "172.16.0.1", "[fd00::1]", "169.254.1.1", "llm", "vllm-0"])
def test_a_key_over_plain_http_within_a_network_is_warned_of(kind: str, host: str) -> None:
    (warning,) = built(kind, host).warnings()
    assert f"{host}:8000" in warning
    assert "without encryption" in warning
    assert not built(kind, host, allow_http=True).warnings()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]", "dev.localhost"])
def test_this_machine_needs_no_encryption(host: str) -> None:
    assert not built("openai", host).warnings()
    assert not OpenAi(base_url="https://llm.example.com/v1", model="m", api_key="${env:K}").warnings()
    assert not OpenAi(base_url="http://llm.example.com/v1", model="m").warnings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:1"), ("SSL_CERT_FILE", "missing.pem"), ("SSL_CERT_FILE", __file__)],
)
def test_a_proxy_or_certificate_that_googles_library_cannot_use_is_refused_by_name(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RB_KEY", "some-secret-key")
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        asyncio.run(Gemini(model="m-001", api_key="${env:RB_KEY}").connect())
