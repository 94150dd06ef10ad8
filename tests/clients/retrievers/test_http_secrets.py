"""Secrets of the http retriever: sent as they are, shown nowhere."""

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from pydantic import ValidationError
from support.inputs import write
from support.odd_server import (
    GOOD,
    SECRET,
    Behaviour,
    Seen,
    ask,
    failure,
    http,
    saying,
    served,
    whole,
)

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import FailureKind, InputError

SECRETIVE = {
    "url": "http://me:${env:RB_KEY}@none.invalid/s/${env:RB_KEY}",
    "headers": {"X-Api-Key": "${env:RB_ASCII}"},
    "params": {"key": "${env:RB_KEY}"},
    "body": {"q": "{query}", "password": "${env:RB_KEY}"},
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RB_KEY", f"{SECRET}\n")
    monkeypatch.setenv("RB_ASCII", "plain-secret-{query}")


def echoing(status: str) -> Behaviour:
    """A server that echoes all that it received, in every spelling; the JSON escapes come first."""

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        texts = [seen.target, json.dumps(seen.headers), seen.body.decode(), SECRET, json.dumps(SECRET)]
        answer = {"hits": [{"id": "d1", "text": "\n".join(texts)}], "me": dict(seen.headers)}
        writer.write(whole(json.dumps(answer).encode(), status))

    return behave


def leaks(text: str) -> list[str]:
    basic = "bWU6aGlkZGVu"  # base64 of "me:hidden"
    return [secret for secret in ("hidden-Z", "plain-secret", basic) if secret in text]


@pytest.mark.usefixtures("keys")
def test_secrets_arrive_as_they_are_and_are_hidden_in_the_answer() -> None:
    answer, seen = ask(echoing("200 OK"), "q {query} ${env:RB_KEY}", **SECRETIVE)
    assert unquote(urlsplit(seen.target).path) == f"/s/{SECRET}"
    assert parse_qsl(urlsplit(seen.target).query) == [("key", SECRET)]
    assert json.loads(seen.body) == {"q": "q {query} ${env:RB_KEY}", "password": SECRET}
    assert seen.headers["x-api-key"] == "plain-secret-{query}"
    assert seen.headers["authorization"].startswith("Basic bWU6aGlkZGVu")
    assert "***" in answer
    assert leaks(answer) == []


@pytest.mark.long
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("shift", range(0, 220, 20))
def test_secrets_are_hidden_in_errors_wherever_those_are_cut(shift: int) -> None:
    text = "x" * shift + SECRET
    for behave in (saying(text.encode(), "500 Oh"), saying(text.encode()), saying({"hits": text})):
        error = failure(behave, **SECRETIVE)
        assert re.search("hid(d|$)|hidden", error.message) is None
        assert error.__cause__ is None
    assert leaks(str(failure(echoing("403 No"), **SECRETIVE))) == []


@pytest.mark.usefixtures("keys")
def test_an_id_that_holds_the_value_of_a_secret_is_no_silent_loss() -> None:
    error = failure(saying({"hits": [{"id": f"{SECRET}-17"}]}), **SECRETIVE)
    assert error.kind == FailureKind.INVALID
    assert "id holds the value of a secret" in error.message


@pytest.mark.usefixtures("keys")
def test_an_answer_too_deep_to_hide_secrets_in_is_malformed() -> None:
    error = failure(saying(b'{"hits": [], "x": ' + b"[" * 985 + b"]" * 985 + b"}"), **SECRETIVE)
    assert error.kind is FailureKind.MALFORMED


@pytest.mark.usefixtures("keys")
def test_secrets_are_in_no_repr_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> str:
        async with served(saying(GOOD)) as server:
            connection = await http(api_endpoint=server.url, **SECRETIVE).connect()
            await connection.call(payload_of("who?", SearchDepth(10)), 20.0, 1)
            await connection.close()
            return repr(connection)

    with caplog.at_level("DEBUG"):
        shown = asyncio.run(run())
    assert "${env:RB_KEY}" in shown
    assert leaks(shown + caplog.text) == []


def test_a_variable_that_is_not_set_is_named_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RB_NONE", raising=False)
    with pytest.raises(InputError, match="header X-Api-Key needs the environment variable RB_NONE"):
        ask(saying(GOOD), headers={"X-Api-Key": "${env:RB_NONE}"})


def test_a_secret_that_no_header_may_have_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RB_LINES", "hidden-Z\r\nX-Evil: 1")
    with pytest.raises(InputError, match="header Authorization: the value of its reference") as caught:
        ask(saying(GOOD), headers={"Authorization": "Bearer ${env:RB_LINES}"})
    assert leaks(str(caught.value)) == []


LITERAL = """\
name: e
dataset: {{queries: q.jsonl, qrels: qrels.tsv}}
configurations:
  - name: a
    retriever: {{type: http, url: "{url}", results: hits, id: id, {more}}}
output: {{path: out}}
"""


@pytest.mark.parametrize(
    ("url", "more", "message"),
    [
        ("http://h/", "headers: {Authorization: Bearer s3cr3t}", "header Authorization must come from the environment"),
        ("http://h/", "headers: {X-My-Token: s3cr3t}", "header X-My-Token must come"),
        ("http://h/", "headers: {cookie: s3cr3t}", "header cookie must come"),
        ("http://h/", "headers: {X: [s3cr3t]}", "must be a text"),
        ("http://h/", "headers: s3cr3t", "must be a mapping"),
        ("http://h/", "params: {api_key: s3cr3t}", "parameter api_key must come"),
        ("http://h/", "body: {q: '{query}', password: s3cr3t}", "password in the body must come"),
        ("http://h/?sig=s3cr3t", "method: POST", "parameter sig must come"),
        ("http://me:s3cr3t@h/", "method: POST", "user and password in the url must come"),
        ("http://me:s3cr3t", "method: POST", "write http:// or https://"),
        ("http://h/", "api_endpoint: 'http://me:s3cr3t@h'", "and nothing else"),
        ("http://h/", "headers: {Authorization: 's3cr3t ${env}'}", "is not a reference"),
        ("http://h/", "headers: {Authorization: '${env:A}', X: s3cr3t}, method: GET", "contains {query}"),
    ],
)
def test_a_secret_in_the_experiment_is_refused_and_not_repeated(
    tmp_path: Path, url: str, more: str, message: str
) -> None:
    path = write(tmp_path / "e.yaml", LITERAL.format(url=url, more=more))
    with pytest.raises(InputError) as caught:
        load_experiment(path)
    assert message in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(ValidationError) as invalid:
        Http.model_validate({"url": url, "results": "hits", "id": "id", **_parsed(more)})
    assert "s3cr3t" not in str(invalid.value)


def _parsed(flow: str) -> dict[str, object]:
    import yaml

    return dict(yaml.safe_load(f"{{{flow}}}"))
