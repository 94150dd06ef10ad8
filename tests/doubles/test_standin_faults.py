"""Faults of the stand-ins, through the client libraries that rankbeam uses."""

import asyncio
from typing import Any

import grpc
import httpx
import pytest
from google.api_core import exceptions
from google.rpc.error_details_pb2 import RetryInfo
from support.standin_clients import ANSWERS, RAG, _outcome, hits, post, question, rag, scored_documents, search
from support.standins import DEFAULT_KINDS, Faults, serve

GRPC_ERRORS = {
    "quota": exceptions.ResourceExhausted,
    "quota_hint": exceptions.ResourceExhausted,
    "unavailable": exceptions.ServiceUnavailable,
    "internal": exceptions.InternalServerError,
    "timeout": exceptions.DeadlineExceeded,
    "request_timeout": exceptions.DeadlineExceeded,
    "reset": exceptions.ServiceUnavailable,
    "partial": exceptions.DataLoss,
    "permission": exceptions.PermissionDenied,
    "not_found": exceptions.NotFound,
    "invalid": exceptions.InvalidArgument,
}
HTTP_STATUSES = {
    "quota": 429,
    "quota_hint": 429,
    "unavailable": 503,
    "internal": 500,
    "timeout": 504,
    "request_timeout": 408,
    "permission": 403,
    "not_found": 404,
    "invalid": 400,
}


# What goes wrong


def test_grpc_faults_are_the_errors_of_the_client_library() -> None:
    faults = Faults(rate=0.9, kinds=tuple(GRPC_ERRORS), hint_s=0.25)
    kinds = [faults.of(number, "who") for number in range(1, 81)]
    assert set(kinds) == {*GRPC_ERRORS, None}
    with serve("rag_engine", answers=ANSWERS, faults=faults) as server:
        outcomes = rag(server, *[question()] * len(kinds))
        stats = server.stats()
    assert [type(outcome) for outcome in outcomes] == [
        GRPC_ERRORS.get(str(kind), type(outcomes[kinds.index(None)])) for kind in kinds
    ]
    assert {len(scored_documents(outcome)) for outcome, kind in zip(outcomes, kinds, strict=True) if kind is None} == {
        3
    }
    assert stats.faults == {kind: kinds.count(kind) for kind in GRPC_ERRORS}
    assert (stats.calls, stats.answered) == (len(kinds), kinds.count(None))


def test_a_dropped_connection_ends_every_call_on_it() -> None:
    faults = Faults(kinds=("drop_connection",), only="drop")
    with serve("rag_engine", faults=faults, latency_s=1.5) as server:

        async def ask() -> list[Any]:
            channel = grpc.aio.insecure_channel(server.address)
            client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
            async with channel:
                dropping = asyncio.create_task(_outcome(client.retrieve_contexts({"query": question("drop")})))
                await asyncio.sleep(0.1)
                return [await _outcome(client.retrieve_contexts({"query": question("other")})), await dropping]

        outcomes = asyncio.run(ask())
        assert [type(outcome) for outcome in outcomes] == [exceptions.ServiceUnavailable] * 2
        assert len(rag(server, question("later"))[0].contexts.contexts) == 10


def test_only_hints_say_when_to_come_again() -> None:
    faults = Faults(kinds=("quota", "quota_hint"), rate=1.0, hint_s=0.25)
    kinds = [faults.of(number, "who") for number in range(1, 11)]
    with serve("rag_engine", faults=faults) as server:
        hints = [
            [detail for detail in error.details if isinstance(detail, RetryInfo)]
            for error in rag(server, *[question()] * 10)
        ]
    assert hints == [[RetryInfo(retry_delay={"nanos": 250_001_000})] if kind == "quota_hint" else [] for kind in kinds]
    assert set(kinds) == {"quota", "quota_hint"}


def test_a_hanging_call_ends_at_the_clients_timeout() -> None:
    with serve("rag_engine", faults=Faults(kinds=("hang",), first=1)) as server:
        (error,) = rag(server, question(), timeout_s=0.3)
        assert isinstance(error, exceptions.DeadlineExceeded)
    with (
        serve("http", faults=Faults(kinds=("hang",), first=1)) as server,
        pytest.raises(httpx.ReadTimeout),
    ):
        post(server, timeout_s=0.3)


def test_malformed_answers_of_google() -> None:
    faults = Faults(kinds=("malformed",), first=1)
    with serve("rag_engine", answers=ANSWERS, faults=faults) as server:
        (answer,) = rag(server, question())
        assert {(context.source_uri, context.source_display_name) for context in answer.contexts.contexts} == {("", "")}
        assert server.stats().answered == 0
    with serve("vertex_search", answers=ANSWERS, faults=faults) as server:
        (result,) = search(server, query="who").results
        assert (result.id, result.document.id, result.chunk.id) == ("", "", "")


def test_http_faults_are_statuses() -> None:
    faults = Faults(rate=0.9, kinds=tuple(HTTP_STATUSES), hint_s=2)
    kinds = [faults.of(number, "who") for number in range(1, 81)]
    assert set(kinds) == {*HTTP_STATUSES, None}
    with serve("http", faults=faults) as server:
        responses = [post(server) for _ in kinds]
        stats = server.stats()
    assert [response.status_code for response in responses] == [HTTP_STATUSES.get(str(kind), 200) for kind in kinds]
    assert [response.headers.get("retry-after") for response in responses] == [
        "2" if kind == "quota_hint" else None for kind in kinds
    ]
    assert stats.faults == {kind: kinds.count(kind) for kind in HTTP_STATUSES}


@pytest.mark.parametrize(
    ("kind", "error"),
    [("reset", httpx.ReadError), ("drop_connection", httpx.ReadError), ("partial", httpx.RemoteProtocolError)],
)
def test_http_connections_break(kind: str, error: type[Exception]) -> None:
    with serve("http", faults=Faults(kinds=(kind,), first=1)) as server:
        with pytest.raises(error):
            post(server)
        assert len(hits(post(server))) == 10


def test_http_answers_that_are_no_json() -> None:
    with (
        serve("http", faults=Faults(kinds=("malformed",), first=1)) as server,
        pytest.raises(ValueError, match="delim"),
    ):
        post(server).json()


@pytest.mark.parametrize(("kind", "expected"), [("empty", []), ("wrong_order", [("a", 1.0), ("b", 2.0), ("c", 3.0)])])
def test_legal_answers_that_differ(kind: str, expected: list[tuple[str, float]]) -> None:
    answers = {"who": [{"id": "a", "score": 3.0}, {"id": "b", "score": 2.0}, {"id": "c", "score": 1.0}]}
    assert kind not in DEFAULT_KINDS
    with serve("http", answers=answers, faults=Faults(kinds=(kind,), rate=1.0)) as server:
        assert hits(post(server)) == expected
        assert server.stats().answered == 1


def test_only_the_named_query_fails_and_always() -> None:
    with serve("http", faults=Faults(kinds=("permission",), only="secret")) as server:
        statuses = [post(server, query).status_code for query in ("a secret", "open", "a secret")]
        assert (statuses, server.stats().queries) == ([403, 200, 403], {"a secret": 2, "open": 1})


def test_the_share_of_faults_is_as_asked_and_no_query_is_doomed() -> None:
    faults = Faults(rate=0.1)
    chosen = [faults.of(number, "q") for number in range(1, 10_001)]
    assert chosen == [faults.of(number, "other") for number in range(1, 10_001)]
    assert 900 < sum(kind is not None for kind in chosen) < 1100
    assert set(chosen) - {None} == set(DEFAULT_KINDS)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Faults(kinds=("nonsense",))
