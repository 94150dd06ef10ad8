"""Calls of the http retriever, against small servers that answer as real ones do when they misbehave."""

import asyncio
import gzip
import json
import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.odd_server import (
    GOOD,
    Behaviour,
    Seen,
    Server,
    ask,
    cut,
    failure,
    hang,
    http,
    reset,
    saying,
    served,
    whole,
)
from support.standins import Faults, serve

from rankbeam.transforms.clients.http.transport import retry_after_s
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.queries import Ranking


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
    url = urlsplit(seen.target)
    assert (seen.method, seen.body, unquote(url.path)) == ("GET", b"", "/in/a&b/ü?")
    assert parse_qsl(url.query) == [("k", "10"), ("q", "is a&b/ü?"), ("n", "3"), ("x", "true")]


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
                await connection.call(payload_of(text, SearchDepth(10)), 20.0, 1)
            await connection.close()
            return server.seen

    for text, seen in zip(texts, asyncio.run(run()), strict=True):
        url = urlsplit(seen.target)
        assert unquote(url.path) == f"/in/{text}/end"
        assert parse_qsl(url.query, keep_blank_values=True) == [("u", text), ("p", f"<{text}>")]
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
    assert error.message == "HTTP 302 Found to http://elsewhere.invalid/login, which is not followed; correct the url"


def test_retry_after_is_seconds_or_a_date() -> None:
    assert failure(saying(b"", "429 Slow", "Retry-After: 7")).retry_after_s == 7.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3600), usegmt=True)
    wait = failure(saying(b"", "503 Oh", f"Retry-After: {later}")).retry_after_s
    assert wait is not None
    assert 3000 < wait <= 3600
    past = {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}
    assert retry_after_s(past) == 0.0
    beyond = ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 +99999999999999")
    assert [retry_after_s({"retry-after": value}) for value in ("", "soon", "-1", "nan", "²", *beyond)] == [None] * 7


def test_a_date_counts_from_the_date_of_the_response_whatever_this_machines_clock_says() -> None:
    headers = ("Date: Fri, 01 Jan 2100 00:00:00 GMT", "Retry-After: Fri, 01 Jan 2100 00:00:07 GMT")
    assert failure(saying(b"", "429 Slow", *headers)).retry_after_s == 7.0


def test_a_limit_that_may_not_be_used_up_is_no_reason_for_another_refusal() -> None:
    reset = "x-ratelimit-reset-requests: 6m0s"
    assert failure(saying(b"", "503 Oh", reset)).retry_after_s is None
    assert failure(saying(b"", "503 Oh", reset, "x-ratelimit-remaining-requests: 0")).retry_after_s == 360.0


@pytest.mark.parametrize(
    ("header", "body", "wait_s"),
    [
        ("Retry-After: 0.3s", "{}", 0.3),
        ("retry-after-ms: 250", "{}", 0.25),
        ("retry-after-ms: 1500ms", "{}", 1.5),
        ("x-ratelimit-reset-requests: 6m0s", "{}", 360.0),
        ("x-ratelimit-remaining-requests: 5\r\nx-ratelimit-reset-requests: 6m0s", "{}", None),
        ("x-ratelimit-reset-tokens: 6", "{}", 6.0),
        ("x: y", '[{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "3.5s"}]}}]', 3.5),
        ("Retry-After: 9s soon", "{}", None),
    ],
)
def test_other_hints_of_a_pause_are_read(header: str, body: str, wait_s: float | None) -> None:
    assert failure(saying(body.encode(), "429 Slow", header)).retry_after_s == wait_s


@pytest.mark.parametrize("behave", [cut, reset])
def test_a_broken_connection_is_unavailable(behave: Behaviour) -> None:
    assert failure(behave).kind == FailureKind.UNAVAILABLE


def test_nobody_listening_is_unavailable() -> None:
    async def run() -> None:
        async with served(reset) as server:
            url = server.url
        connection = await http(api_endpoint=url).connect()
        await connection.call(payload_of("who?", SearchDepth(10)), 20.0, 1)

    with pytest.raises(CallError) as caught:
        asyncio.run(run())
    assert caught.value.kind == FailureKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("SSL_CERT_FILE", "missing.pem", "SSL_CERT_FILE.*No such file or directory"),
        ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE.*no certificate"),
        ("ALL_PROXY", "socks://user:s3cr3t@127.0.0.1:1080", "ALL_PROXY.*Unknown scheme for proxy"),
        ("HTTP_PROXY", "http://127.0.0.1:port", "HTTP_PROXY.*Invalid port"),
    ],
)
def test_settings_of_the_environment_that_cannot_be_used_are_refused_before_any_call(
    name: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=problem) as refused:
        asyncio.run(http().connect())
    assert "s3cr3t" not in str(refused.value)


async def dropped(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize(
    ("scheme", "proxy", "problem"),
    [
        ("https", "http://127.0.0.1:{port}", r"ProxyError: 407 No; the environment names a proxy \(HTTPS_PROXY"),
        ("http", "http://127.0.0.1:{port}", "HTTP 407 No"),
        ("http", "http://127.0.0.1:1", r"attempts failed; the environment names a proxy \(HTTP_PROXY"),
        ("https", None, "ConnectError: .*SSL"),
    ],
)
def test_a_proxy_that_refuses_and_a_server_without_tls_refuse_every_call_with_the_reason(
    scheme: str, proxy: str | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> bool:
        async with (
            served(saying(b"", "407 No")) as server,
            await asyncio.start_server(dropped, "127.0.0.1", 0) as plain,
        ):
            address = f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}"
            if proxy is not None:
                address = f"{scheme}://search.test"
                monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy.format(port=urlsplit(server.url).port))
            service = http(api_endpoint=address)
            connection = await service.connect()
            try:
                with pytest.raises(CallError, match=problem) as refused:
                    await connection.call(payload_of("who?", SearchDepth(10)), 20.0, 1)
                return service.access.is_refused(refused.value)
            finally:
                await connection.close()

    assert asyncio.run(run())


def test_a_hung_call_ends_at_its_timeout_even_when_bytes_still_trickle() -> None:
    error = failure(hang, timeout_s=0.3)
    assert (error.kind, error.message) == (FailureKind.TIMEOUT, "no complete answer within 0.3 s")


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "message"),
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
def test_an_answer_that_cannot_be_read_is_malformed(body: bytes, message: str) -> None:
    error = failure(saying(body))
    assert error.kind == FailureKind.MALFORMED
    assert message in error.message
    assert len(error.message) < 400


def test_a_body_that_cannot_be_unpacked_is_malformed() -> None:
    assert failure(saying(b"no gzip", "200 OK", "Content-Encoding: gzip")).kind == FailureKind.MALFORMED


@pytest.mark.parametrize("encoding", ["zstd", "gzip, gzip", "br"])
def test_a_body_that_could_fill_the_memory_when_it_is_unpacked_is_refused(encoding: str) -> None:
    error = failure(saying(b"", "200 OK", f"Content-Encoding: {encoding}"))
    assert error.message == f"DecodingError: the answer has Content-Encoding {encoding}; it may be gzip or deflate"


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


@pytest.mark.long
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
            await asyncio.gather(*(connection.call(payload_of(f"{i}", SearchDepth(10)), 60.0, 1) for i in range(200)))
            await asyncio.gather(*(connection.call(payload_of(f"{i}", SearchDepth(10)), 60.0, 1) for i in range(50)))
            await connection.close()
            return server

    server = asyncio.run(run())
    assert server.connections == 200
    assert sorted(json.loads(seen.body)["query"] for seen in server.seen[:200]) == sorted(map(str, range(200)))
    assert not any("cookie" in seen.headers for seen in server.seen)


@pytest.mark.parametrize("before", [whole(b""), b"HTTP/1.1 204 No Content\r\n\r\n"], ids=["two answers", "204"])
def test_bytes_after_an_answer_do_not_answer_the_next_call(before: bytes) -> None:
    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(before + whole(json.dumps({"hits": [{"id": json.loads(seen.body)["query"]}]}).encode()))

    async def run() -> list[str]:
        async with served(behave) as server:
            connection = await http(api_endpoint=server.url).connect()
            answers = []
            for text in ("one", "two"):
                with suppress(CallError):
                    answers.append((await connection.call(payload_of(text, SearchDepth(10)), 20.0, 1)).answer)
            await connection.close()
            return answers

    assert asyncio.run(run()) == []


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
            await connection.call(payload_of("who?", SearchDepth(10)), 2.0, 1)
        answer = (await connection.call(payload_of("who?", SearchDepth(10)), 20.0, 1)).answer
        await connection.close()
        return caught.value, parameters.read(answer)

    for kind, expected in kinds.items():
        with serve("http", answers=answers, faults=Faults(first=1, kinds=(kind,), hint_s=3.0)) as server:
            error, ranking = asyncio.run(run(server.url))
        assert (kind, error.kind) == (kind, expected)
        assert error.retry_after_s == (3.0 if kind == "quota_hint" else None)
        assert ranking == Ranking(("d2", "d1"), (3.0, 1.5), ("two", "one"))
