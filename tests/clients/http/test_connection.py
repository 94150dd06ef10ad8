"""The http retriever, against small servers that answer as real ones do when they misbehave."""

import asyncio
import gzip
import json
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.campaigns import examples
from support.inputs import write
from support.standins import Faults, serve

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.http.connection import retry_after_s
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.retrievers.remote import payload_of
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.queries import Ranking

SECRET = "hidden-Zürich/7&+"  # noqa: S105  a made-up one, with all that URLs and JSON spell in another way
PATHS = {"results": "hits", "id": "id", "score": "score", "text": "text"}
GOOD = {"hits": [{"id": "d1", "score": 2.5, "text": "one"}, {"id": 17}]}


@dataclass(frozen=True)
class Seen:
    """One request, as a server sees it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server that answers each connection with the same bytes, and what it was asked."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0


Behaviour = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


def whole(content: bytes, status: str = "200 OK", *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]).encode() + content


def saying(answer: bytes | object, status: str = "200 OK", *headers: str) -> Behaviour:
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(content, status, *headers))

    return behave


async def cut(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(json.dumps(GOOD).encode())[:-10])
    writer.close()


async def reset(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def hang(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not writer.is_closing():  # a byte now and then, so that no single wait is long
        writer.write(b" ")
        await asyncio.sleep(0.02)


@asynccontextmanager
async def served(behave: Behaviour):
    server = Server()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                seen = Seen(*first.split(" ")[:2], headers, body)
                server.seen.append(seen)
                await behave(seen, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


def http(**parameters: object) -> Http:
    return Http.model_validate({"url": "http://none.invalid/search", **PATHS, **parameters})


def ask(behave: Behaviour, text: str = "who?", timeout_s: float = 20.0, **parameters: object) -> tuple[str, Seen]:
    """The answer to one call, which can be read, and the request that was made."""

    async def run() -> tuple[str, Seen]:
        async with served(behave) as server:
            service = http(api_endpoint=server.url, **parameters)
            connection = await service.connect()
            try:
                answer = (await connection.call(payload_of(text, Reach(10)), timeout_s, 1)).answer
                service.read(answer)
                return answer, server.seen[0]
            finally:
                await connection.close()

    return asyncio.run(run())


def failure(behave: Behaviour, **parameters: object) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(behave, **parameters)
    return caught.value


def test_a_post_says_query_and_number_and_the_answer_is_read() -> None:
    answer, seen = ask(saying(GOOD))
    assert (seen.method, seen.target, seen.headers["content-type"]) == ("POST", "/search", "application/json")
    assert json.loads(seen.body) == {"query": "who?", "top_k": 10}
    assert answer == json.dumps(GOOD, separators=(",", ":"))
    ranking = http().read(answer)
    assert (ranking.doc_ids, ranking.texts) == (("d1", "17"), ("one", ""))
    assert ranking.scores[0] == 2.5
    assert math.isnan(ranking.scores[1])


def test_a_get_has_no_body_and_says_all_in_its_url() -> None:
    _, seen = ask(
        saying(GOOD),
        "a&b/ü?",
        method="GET",
        url="http://none.invalid/in/{query}?k={top_k}",
        params={"q": "is {query}", "n": 3, "x": True},
    )
    found = urlsplit(seen.target)
    assert (seen.method, seen.body, unquote(found.path)) == ("GET", b"", "/in/a&b/ü?")
    assert parse_qsl(found.query) == [("k", "10"), ("q", "is a&b/ü?"), ("n", "3"), ("x", "true")]


def test_headers_replace_those_that_are_sent_anyway() -> None:
    _, seen = ask(saying(GOOD), headers={"accept": "application/x", "X-One": "1"}, method="PUT")
    assert (seen.method, seen.headers["accept"], seen.headers["x-one"]) == ("PUT", "application/x", "1")


@settings(max_examples=examples(25))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), min_size=1, max_size=20))
def test_any_query_arrives_as_it_is(texts: list[str]) -> None:
    parameters = {
        "url": "http://none.invalid/in/{query}/end?u={query}",
        "params": {"p": "<{query}>"},
        "body": {"typed": "{query}", "inside": ["a {query} {top_k}"], "k": "{top_k}", "d": "{distance}"},
    }

    async def run() -> list[Seen]:
        async with served(saying(GOOD)) as server:
            connection = await http(api_endpoint=server.url, **parameters).connect()
            for text in texts:
                await connection.call(payload_of(text, Reach(10)), 20.0, 1)
            await connection.close()
            return server.seen

    for text, seen in zip(texts, asyncio.run(run()), strict=True):
        found = urlsplit(seen.target)
        assert unquote(found.path) == f"/in/{text}/end"
        assert parse_qsl(found.query, keep_blank_values=True) == [("u", text), ("p", f"<{text}>")]
        assert json.loads(seen.body) == {"typed": text, "inside": [f"a {text} 10"], "k": 10, "d": None}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("301 Moved", FailureKind.INVALID),
        ("400 Bad", FailureKind.INVALID),
        ("401 No", FailureKind.PERMISSION),
        ("403 No", FailureKind.PERMISSION),
        ("404 None", FailureKind.NOT_FOUND),
        ("408 Late", FailureKind.TIMEOUT),
        ("410 Gone", FailureKind.NOT_FOUND),
        ("422 Bad", FailureKind.INVALID),
        ("429 Slow", FailureKind.QUOTA),
        ("500 Oh", FailureKind.UNAVAILABLE),
        ("501 Never", FailureKind.INVALID),
        ("502 Oh", FailureKind.UNAVAILABLE),
        ("503 Oh", FailureKind.UNAVAILABLE),
        ("504 Late", FailureKind.TIMEOUT),
        ("520 Oh", FailureKind.UNAVAILABLE),
    ],
)
def test_a_status_has_its_kind(status: str, kind: FailureKind) -> None:
    error = failure(saying(b"what is wrong" + b"x" * 1000, status))
    assert error.kind == kind
    assert error.message.startswith(f"HTTP {status} what is wrongx")
    assert len(error.message) < 250


def test_a_redirect_is_not_followed_but_named() -> None:
    error = failure(saying(b"", "302 Found", "Location: http://elsewhere.invalid/login"))
    assert error.message == "HTTP 302 Found to http://elsewhere.invalid/login"


def test_retry_after_is_seconds_or_a_date() -> None:
    assert failure(saying(b"", "429 Slow", "Retry-After: 7")).retry_after_s == 7.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3600), usegmt=True)
    wait = failure(saying(b"", "503 Oh", f"Retry-After: {later}")).retry_after_s
    assert wait is not None
    assert 3000 < wait <= 3600
    now = datetime(2026, 10, 21, 7, 28, 30, tzinfo=UTC)
    assert retry_after_s("Wed, 21 Oct 2026 07:28:00 GMT", now) == 0.0
    assert [retry_after_s(value, now) for value in (None, "", "soon", "-1", "nan", "²")] == [None] * 6


@pytest.mark.parametrize("behave", [cut, reset])
def test_a_broken_connection_is_unavailable(behave: Behaviour) -> None:
    assert failure(behave).kind == FailureKind.UNAVAILABLE


def test_nobody_listening_is_unavailable() -> None:
    async def run() -> None:
        async with served(reset) as server:
            url = server.url
        connection = await http(api_endpoint=url).connect()
        await connection.call(payload_of("who?", Reach(10)), 20.0, 1)

    with pytest.raises(CallError) as caught:
        asyncio.run(run())
    assert caught.value.kind == FailureKind.UNAVAILABLE


def test_a_hung_call_ends_at_its_timeout_even_when_bytes_still_trickle() -> None:
    error = failure(hang, timeout_s=0.3)
    assert (error.kind, error.message) == (FailureKind.TIMEOUT, "no whole answer within 0.3 s")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>busy</html>", "not JSON"),
        (b"", "not JSON"),
        (b'{"hits": [{"id": "a", "score": NaN}]}', "NaN is not a JSON number"),
        (b'{"hits": [{"id": "a", "score": -Infinity}]}', "-Infinity is not a JSON number"),
        (b'{"hits": [{"id": "a", "score": 1e999}]}', "score: score is not a number"),
        (b'{"hits": [{"id": "a", "score": "1"}]}', 'score: score is not a number, found "1"'),
        (b'{"hits": [{"id": "a", "score": true}]}', "found true"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        (b'{"hits": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"hits": 7}', "results: hits is not a list, found 7"),
        (b'{"hits": {"a": 1}}', 'results: hits is not a list, found {"a": 1}'),
        (b'{"hits": [{"id": null}]}', "id: id is neither text nor number, found null"),
        (b'{"hits": [{"id": ""}]}', 'found ""'),
        (b'{"hits": [{"id": true}]}', "found true"),
        (b'{"hits": [{"id": ["a"]}]}', 'found ["a"]'),
        (b'{"hits": [7]}', "found null in 7"),
        (b'{"hits": [{"id": "a", "text": ["b"]}]}', "text: text is not text"),
    ],
)
def test_an_answer_that_cannot_be_read_is_malformed(body: bytes, said: str) -> None:
    error = failure(saying(body))
    assert error.kind == FailureKind.MALFORMED
    assert said in error.message
    assert len(error.message) < 400


def test_a_body_that_cannot_be_unpacked_is_malformed() -> None:
    assert failure(saying(b"no gzip", "200 OK", "Content-Encoding: gzip")).kind == FailureKind.MALFORMED


def test_an_empty_list_is_an_answer() -> None:
    answer, _ = ask(saying({"hits": []}))
    assert http().read(answer) == Ranking((), (), ())


def test_a_huge_answer_is_refused_without_being_kept() -> None:
    error = failure(saying(gzip.compress(b" " * (70 * 2**20)), "200 OK", "Content-Encoding: gzip"), timeout_s=60.0)
    assert (error.kind, error.message) == (FailureKind.INVALID, "the answer has more than 64 MB; lower top_k")


def test_half_a_character_in_a_text_does_not_stop_the_answer_from_being_kept() -> None:
    answer, _ = ask(saying(b'{"hits": [{"id": "a", "text": "cut \\ud83d"}]}'))
    assert http().read(answer).texts == ("cut \ufffd",)
    assert answer.encode()


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
        said = [seen.target, json.dumps(seen.headers), seen.body.decode(), SECRET, json.dumps(SECRET)]
        answer = {"hits": [{"id": "d1", "text": "\n".join(said)}], "me": dict(seen.headers)}
        writer.write(whole(json.dumps(answer).encode(), status))

    return behave


def leaks(text: str) -> list[str]:
    basic = "bWU6aGlkZGVu"  # base64 of "me:hidden"
    return [each for each in ("hidden-Z", "plain-secret", basic) if each in text]


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


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("shift", range(0, 220, 20))
def test_secrets_are_hidden_in_errors_wherever_those_are_cut(shift: int) -> None:
    said = "x" * shift + SECRET
    for behave in (saying(said.encode(), "500 Oh"), saying(said.encode()), saying({"hits": said})):
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
def test_secrets_are_in_no_repr_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> str:
        async with served(saying(GOOD)) as server:
            connection = await http(api_endpoint=server.url, **SECRETIVE).connect()
            await connection.call(payload_of("who?", Reach(10)), 20.0, 1)
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


def test_two_hundred_calls_at_once_and_then_on_open_connections() -> None:
    arrived = 0

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        arrived += 1
        while arrived < 200:  # no call is answered before all have arrived
            await asyncio.sleep(0.005)
        writer.write(whole(json.dumps(GOOD).encode(), "200 OK", "Set-Cookie: a=b"))

    async def run() -> Server:
        async with served(behave) as server:
            connection = await http(api_endpoint=server.url).connect()
            await asyncio.gather(*(connection.call(payload_of(f"{i}", Reach(10)), 60.0, 1) for i in range(200)))
            await asyncio.gather(*(connection.call(payload_of(f"{i}", Reach(10)), 60.0, 1) for i in range(50)))
            await connection.close()
            return server

    server = asyncio.run(run())
    assert server.connections == 200
    assert sorted(json.loads(seen.body)["query"] for seen in server.seen[:200]) == sorted(map(str, range(200)))
    assert not any("cookie" in seen.headers for seen in server.seen)


def test_parameters_travel_and_the_paths_are_no_part_of_what_is_asked() -> None:
    one = http(headers={"Authorization": "Bearer ${env:RB_KEY}"})
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  our own bytes
    other = http(headers=one.headers, results="a", id="b", score=None, text=None, lower_is_better=True)
    keys = one.keys("http", ["who?"], Reach(10))
    assert other.keys("http", ["who?"], Reach(10)) == keys
    assert http(url="http://none.invalid/other").keys("http", ["who?"], Reach(10)) != keys


def test_one_that_reranks_is_asked_for_every_number_apart() -> None:
    keys = {
        derive: {http(derive=derive).keys("http", ["who?"], Reach(k))[0] for k in (5, 10)} for derive in (True, False)
    }
    assert [len(keys[True]), len(keys[False])] == [1, 2]
    assert [http(derive=derive).is_prefix() for derive in (True, False)] == [True, False]


def test_the_scope_is_the_address_that_is_called() -> None:
    assert http(url="HTTPS://Search.example.com/a").scope() == "https://search.example.com:443"
    assert http(url="http://u:${env:A}@[::1]/a").scope() == "http://[::1]:80"
    assert http(api_endpoint="http://127.0.0.1:9200/").scope() == "http://127.0.0.1:9200"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "ftp://h/"}, "write http:// or https://"),
        ({"url": "http://{query}/"}, "come after the host"),
        ({"url": "http://h:99999/"}, "write http:// or https://"),
        ({"url": "http://h/a b"}, "without spaces"),
        ({"url": "http://h/{topk}"}, "unknown placeholder {topk}; did you mean '{top_k}'"),
        ({"url": "http://h/${HOME}"}, "is not a reference"),
        ({"api_endpoint": "127.0.0.1:9"}, "write http:// or https:// and a host"),
        ({"api_endpoint": "http://h/path"}, "and nothing else"),
        ({"headers": {"X": "${query}"}}, "is not a reference"),
        ({"headers": {"X": "${secret:projects/p/secrets/s}"}}, "is not a reference"),
        ({"headers": {"X Y": "1"}}, "headers may not have"),
        ({"params": {"x": "${env:1}"}}, "is not a reference"),
        ({"body": {"q": "{query}", "x": ["${nope}"]}}, "is not a reference"),
        ({"body": {"q": "{query}", "x": math.nan}}, "JSON cannot write"),
        ({"body": {"size": 10}}, "neither url nor params nor body holds {query}"),
        ({"method": "GET"}, "neither url nor params nor body holds {query}"),
        ({"id": "document-id"}, "'document-id' is not valid JMESPath"),
        ({"results": "hits["}, "'hits[' is not valid JMESPath"),
    ],
)
def test_what_cannot_work_is_refused_before_any_call(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        http(**wrong)
    assert said in str(caught.value)


LITERAL = """\
name: e
dataset: {{queries: q.jsonl, qrels: qrels.tsv}}
configurations:
  - name: a
    retriever: {{type: http, url: "{url}", results: hits, id: id, {more}}}
output: {{path: out}}
"""


@pytest.mark.parametrize(
    ("url", "more", "said"),
    [
        ("http://h/", "headers: {Authorization: Bearer s3cr3t}", "header Authorization must come from the environment"),
        ("http://h/", "headers: {X-My-Token: s3cr3t}", "header X-My-Token must come"),
        ("http://h/", "headers: {cookie: s3cr3t}", "header cookie must come"),
        ("http://h/", "headers: {X: [s3cr3t]}", "should be a valid string"),
        ("http://h/", "headers: s3cr3t", "should be a valid dictionary"),
        ("http://h/", "params: {api_key: s3cr3t}", "parameter api_key must come"),
        ("http://h/", "body: {q: '{query}', password: s3cr3t}", "password in the body must come"),
        ("http://h/?sig=s3cr3t", "method: POST", "parameter sig must come"),
        ("http://me:s3cr3t@h/", "method: POST", "user and password in the url must come"),
        ("http://me:s3cr3t", "method: POST", "write http:// or https://"),
        ("http://h/", "api_endpoint: 'http://me:s3cr3t@h'", "and nothing else"),
        ("http://h/", "headers: {Authorization: 's3cr3t ${env}'}", "is not a reference"),
        ("http://h/", "headers: {Authorization: '${env:A}', X: s3cr3t}, method: GET", "holds {query}"),
    ],
)
def test_a_secret_in_the_experiment_is_refused_and_not_repeated(tmp_path: Path, url: str, more: str, said: str) -> None:
    path = write(tmp_path / "e.yaml", LITERAL.format(url=url, more=more))
    with pytest.raises(InputError) as caught:
        load_experiment(path)
    assert said in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(ValidationError) as invalid:
        Http.model_validate({"url": url, "results": "hits", "id": "id", **_parsed(more)})
    assert "s3cr3t" not in str(invalid.value)


def _parsed(flow: str) -> dict[str, object]:
    import yaml

    return dict(yaml.safe_load(f"{{{flow}}}"))


def test_httpx_is_imported_only_where_calls_are_made() -> None:
    code = (
        "import sys, rankbeam.transforms.clients.retrievers.http; "
        "print(sorted({'httpx', 'google.cloud.secretmanager'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_service_as_elasticsearch_speaks_is_asked_until_every_fault_is_seen() -> None:
    kinds = {
        "quota_hint": FailureKind.QUOTA,
        "quota": FailureKind.QUOTA,
        "unavailable": FailureKind.UNAVAILABLE,
        "internal": FailureKind.UNAVAILABLE,
        "timeout": FailureKind.TIMEOUT,
        "request_timeout": FailureKind.TIMEOUT,
        "reset": FailureKind.UNAVAILABLE,
        "hang": FailureKind.TIMEOUT,
        "malformed": FailureKind.MALFORMED,
        "partial": FailureKind.UNAVAILABLE,
        "permission": FailureKind.PERMISSION,
        "not_found": FailureKind.NOT_FOUND,
        "invalid": FailureKind.INVALID,
    }
    paths = {"results": "hits.hits", "id": "_id", "score": "_score", "text": "_source.text"}
    answers = {"who?": [{"id": "d2", "score": 3.0, "text": "two"}, {"id": "d1", "score": 1.5, "text": "one"}]}

    async def run(url: str) -> tuple[CallError, Ranking]:
        parameters = Http.model_validate({"url": f"{url}/search", **paths})
        connection = await parameters.connect()
        with pytest.raises(CallError) as caught:
            await connection.call(payload_of("who?", Reach(10)), 2.0, 1)
        answer = (await connection.call(payload_of("who?", Reach(10)), 20.0, 1)).answer
        await connection.close()
        return caught.value, parameters.read(answer)

    for kind, expected in kinds.items():
        with serve("http", answers=answers, faults=Faults(first=1, kinds=(kind,), hint_s=3.0)) as server:
            error, ranking = asyncio.run(run(server.url))
        assert (kind, error.kind) == (kind, expected)
        assert error.retry_after_s == (3.0 if kind == "quota_hint" else None)
        assert ranking == Ranking(("d2", "d1"), (3.0, 1.5), ("two", "one"))
