"""The stand-ins, through the client libraries that rankbeam uses: they do as a test tells them, and count right."""

import asyncio
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1, discoveryengine_v1
from google.rpc.error_details_pb2 import RetryInfo
from support.standins import DEFAULT_KINDS, Faults, Standin, serve
from support.standins.quota import Meter

TRUST = ssl.create_default_context()  # httpx would make one for every request
RAG = aiplatform_v1.VertexRagServiceAsyncClient
SEARCH = discoveryengine_v1.SearchServiceAsyncClient
ANSWERS = {"who": [{"id": "a", "score": 0.1, "text": "A"}, {"id": "b", "score": 0.2}, {"id": "c", "score": 0.4}]}
CONFIG = "projects/p/locations/global/collections/default_collection/engines/e/servingConfigs/default_search"
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


def rag(server: Standin, *asked: dict[str, Any], timeout_s: float = 10) -> list[Any]:
    """The answers of the RAG Engine, in the order asked; errors as values."""

    async def ask() -> list[Any]:
        channel = grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
        requests = [{"parent": "projects/p/locations/l", "query": each} for each in asked]
        async with channel:
            return [await _outcome(client.retrieve_contexts(each, timeout=timeout_s)) for each in requests]

    return asyncio.run(ask())


def question(text: str = "who", **config: Any) -> dict[str, Any]:
    """A query of the RAG Engine."""
    return {"text": text, "rag_retrieval_config": config}


def found(answer: Any) -> list[tuple[str, float]]:
    """URIs and scores of the RAG Engine's answer."""
    return [(each.source_uri, each.score) for each in answer.contexts.contexts]


def search(server: Standin, **asked: Any) -> Any:
    """The first page of Vertex AI Search, or the error."""

    async def ask() -> Any:
        channel = grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        client = SEARCH(transport=SEARCH.get_transport_class("grpc_asyncio")(channel=channel))
        async with channel:
            return await _outcome(client.search({"serving_config": CONFIG, **asked}, timeout=10, retry=None))

    return asyncio.run(ask())


def post(server: Standin, query: str = "who", top_k: int = 10, timeout_s: float = 10) -> httpx.Response:
    return httpx.post(f"{server.url}/search", json={"query": query, "top_k": top_k}, timeout=timeout_s, verify=TRUST)


def hits(response: httpx.Response) -> list[tuple[str, float]]:
    return [(each["_id"], each["_score"]) for each in response.json()["hits"]["hits"]]


async def _outcome(call: Any) -> Any:
    try:
        return await call
    except exceptions.GoogleAPICallError as error:
        return error


# What is found


def test_the_rag_engine_gives_what_a_test_wrote_down() -> None:
    with serve("rag_engine", answers=ANSWERS) as server:
        (answer,) = rag(server, question(top_k=2))
    assert found(answer) == [("gs://bucket/a.txt", 0.1), ("gs://bucket/b.txt", 0.2)]
    assert [(each.text, each.source_display_name) for each in answer.contexts.contexts] == [
        ("A", "a.txt"),
        ("Text of b.", "b.txt"),
    ]


def test_thresholds_are_strict() -> None:
    with serve("rag_engine", answers={"who": [{"id": "a", "score": 0.25}, {"id": "b", "score": 0.5}]}) as server:
        filters = [
            {"vector_distance_threshold": 0.5},
            {"vector_distance_threshold": 0.75},
            {"vector_similarity_threshold": 0.5},
            {"vector_similarity_threshold": 0.25},
        ]
        answers = rag(server, *(question(top_k=5, filter=each) for each in filters))
    assert [len(found(each)) for each in answers] == [1, 2, 1, 2]


def test_a_reranker_turns_the_order_and_leaves_the_scores() -> None:
    with serve("rag_engine", answers=ANSWERS) as server:
        rerankers = [{"rank_service": {"model_name": "m"}}, {"llm_ranker": {"model_name": "m"}}]
        for answer in rag(server, *(question(top_k=2, ranking=each) for each in rerankers)):
            assert found(answer) == [("gs://bucket/b.txt", 0.2), ("gs://bucket/a.txt", 0.1)]


def test_fewer_made_results_are_the_first_of_more() -> None:
    with serve("rag_engine") as server:
        few, many, other = rag(server, question("x", top_k=5), question("x", top_k=100), question("y", top_k=5))
    assert found(few) == found(many)[:5] != found(other)
    scores = [score for _, score in found(many)]
    assert scores == sorted(scores)
    assert len(set(found(many))) == len({uri for uri, _ in found(many)}) == 100


def test_a_small_corpus_is_found_whole_and_once() -> None:
    with serve("http", documents=["a", "b", "c", "d"]) as server:
        for query in "pqrst":
            assert sorted(doc_id for doc_id, _ in hits(post(server, query))) == ["a", "b", "c", "d"]


def test_http_answers_post_and_get() -> None:
    answers = {"who": [{"id": "a", "score": 2.0, "text": "A"}, {"id": "b", "score": 1.0}]}
    with serve("http", answers=answers) as server:
        posted = post(server)
        asked = httpx.get(f"{server.url}/search", params={"q": "who", "k": 1}, headers={"X-Key": "k"})
        elsewhere = httpx.get(f"{server.url}/elsewhere")
        seen = server.stats().requests
    assert hits(posted) == [("a", 2.0), ("b", 1.0)]
    assert asked.json()["hits"]["hits"][0]["_source"]["text"] == "A"
    assert (len(hits(asked)), elsewhere.status_code) == (1, 404)
    assert [each["query"] for each in seen] == ["who", "who"]
    assert seen[1]["headers"]["x-key"] == "k"


def test_vertex_search_finds_documents_in_pages() -> None:
    answers = {"who": [{"id": "a", "score": 0.9, "text": "A"}, {"id": "b", "score": 0.8}, {"id": "c", "score": 0.7}]}
    with serve("vertex_search", answers=answers) as server:
        first = search(server, query="who", page_size=2)
        one_page = server.stats()
        second = search(server, query="who", page_size=2, page_token=first.next_page_token)
        both = server.stats()
    assert [(each.id, each.document.id) for each in first.results] == [("a", "a"), ("b", "b")]
    assert first.results[0].document.derived_struct_data["link"] == "gs://bucket/a.txt"
    assert [each.id for each in second.results] == ["c"]
    assert (bool(first.next_page_token), second.next_page_token) == (True, "")
    assert (one_page.second_pages, both.second_pages) == (0, 1)


def test_vertex_search_finds_chunks_with_their_neighbours() -> None:
    spec = {"search_result_mode": "CHUNKS", "chunk_spec": {"num_previous_chunks": 2, "num_next_chunks": 1}}
    answers = {"who": [{"id": "a", "score": 0.9, "text": "A", "title": "T"}]}
    with serve("vertex_search", answers=answers) as server:
        (result,) = search(server, query="who", content_search_spec=spec).results
    chunk = result.chunk
    assert chunk.name.endswith("/branches/0/documents/a/chunks/c3")
    assert (chunk.content, chunk.document_metadata.uri, chunk.document_metadata.title) == (
        "A",
        "gs://bucket/a.txt",
        "T",
    )
    assert [each.id for each in chunk.chunk_metadata.previous_chunks] == ["c1", "c2"]
    assert [each.id for each in chunk.chunk_metadata.next_chunks] == ["c4"]


def test_what_a_client_sends_can_be_seen() -> None:
    with serve("rag_engine") as server:
        rag(server, question(top_k=3, filter={"metadata_filter": "year > 2000"}))
        (request,) = server.stats().requests
    config = request["message"]["query"]["rag_retrieval_config"]
    assert config == {"top_k": 3, "filter": {"metadata_filter": "year > 2000"}}
    assert request["metadata"]["x-goog-request-params"] == "parent=projects/p/locations/l"


# What goes wrong


def test_grpc_faults_are_the_errors_of_the_client_library() -> None:
    faults = Faults(rate=0.9, kinds=tuple(GRPC_ERRORS), hint_s=0.25)
    kinds = [faults.of(number, "who") for number in range(1, 81)]
    assert set(kinds) == {*GRPC_ERRORS, None}
    with serve("rag_engine", answers=ANSWERS, faults=faults) as server:
        outcomes = rag(server, *[question()] * len(kinds))
        stats = server.stats()
    assert [type(each) for each in outcomes] == [
        GRPC_ERRORS.get(str(kind), type(outcomes[kinds.index(None)])) for kind in kinds
    ]
    assert {len(found(each)) for each, kind in zip(outcomes, kinds, strict=True) if kind is None} == {3}
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
        assert [type(each) for each in outcomes] == [exceptions.ServiceUnavailable] * 2
        assert len(rag(server, question("later"))[0].contexts.contexts) == 10


def test_only_hints_say_when_to_come_again() -> None:
    faults = Faults(kinds=("quota", "quota_hint"), rate=1.0, hint_s=0.25)
    kinds = [faults.of(number, "who") for number in range(1, 11)]
    with serve("rag_engine", faults=faults) as server:
        hints = [
            [each for each in error.details if isinstance(each, RetryInfo)] for error in rag(server, *[question()] * 10)
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
        assert {(each.source_uri, each.source_display_name) for each in answer.contexts.contexts} == {("", "")}
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
    assert [each.status_code for each in responses] == [HTTP_STATUSES.get(str(kind), 200) for kind in kinds]
    assert [each.headers.get("retry-after") for each in responses] == [
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


# How arrivals are counted


def test_the_meter_counts_a_pattern_that_was_counted_by_hand() -> None:
    meter = Meter(requests_per_minute=120)  # two a second
    waits_s = [meter.arrive(now_s) for now_s in (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 3.0)]
    # In the second before each, with itself: 1, 2, 3, 3 (0.0 is out at 1.0), 4, 4 (0.5 is out at 1.5), 1.
    assert (meter.second.busiest, meter.second.violations) == (4, 4)
    # Refused are 0.75 (room at 1.0), and 1.25 (room when 0.5 is out, at 1.5).
    assert waits_s == [0.0, 0.0, 0.25, 0.0, 0.25, 0.0, 0.0]
    assert (meter.minute.busiest, meter.minute.violations) == (7, 0)


def test_the_meter_counts_sliding_minutes() -> None:
    meter = Meter(requests_per_minute=3)
    waits_s = [meter.arrive(now_s) for now_s in (0.0, 20.0, 40.0, 59.0, 60.0, 70.0, 200.0)]
    # In the minute before each, with itself: 1, 2, 3, 4, 4 (0.0 is out at 60.0), 5, 1. What was refused at 59 is not in
    # the way later: at 70 there are 20, 40 and 60.
    assert (meter.minute.busiest, meter.minute.violations) == (5, 3)
    assert waits_s == [0.0, 0.0, 0.0, 1.0, 0.0, 10.0, 0.0]


def test_a_meter_of_minutes_alone_takes_what_comes_at_once() -> None:
    meter = Meter(requests_per_minute=2, by_second=False)
    assert [meter.arrive(now_s) for now_s in (0.0, 0.1, 0.2, 60.0)] == [0.0, 0.0, 59.8, 0.0]
    assert (meter.second.violations, meter.minute.violations) == (2, 2)


def test_an_enforced_quota_refuses_and_says_when_to_come_again() -> None:
    with serve("rag_engine", quota_per_minute=2, enforce=True) as server:
        answers = rag(server, *[question()] * 3)
        stats = server.stats()
    refused = [each for each in answers if isinstance(each, exceptions.ResourceExhausted)]
    hints = [hint for each in refused for hint in each.details if isinstance(hint, RetryInfo)]
    assert len(refused) == len(hints) == stats.faults["over_quota"] == 2  # one a second, and two a minute
    assert stats.calls == 3
    assert stats.violations_per_second >= 1


def test_calls_on_one_connection_are_capped() -> None:
    with serve("rag_engine", streams_per_connection=5, latency_s=0.05) as server:

        async def ask() -> None:
            channel = grpc.aio.insecure_channel(server.address)
            client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
            async with channel:
                await client.retrieve_contexts({"query": question()})
                await asyncio.gather(*(client.retrieve_contexts({"query": question(f"q{i}")}) for i in range(30)))

        asyncio.run(ask())
        stats = server.stats()
    assert (stats.answered, stats.most_streams_per_connection, stats.most_open) == (31, 5, 5)


def test_many_calls_at_once_are_all_answered() -> None:
    with serve("rag_engine", latency_s=(0.1, 0.2)) as server:

        async def ask() -> list[Any]:
            channel = grpc.aio.insecure_channel(server.address)
            client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
            async with channel:
                return await asyncio.gather(
                    *(_outcome(client.retrieve_contexts({"query": question(f"q{i}")})) for i in range(1500))
                )

        failed = [each for each in asyncio.run(ask()) if isinstance(each, Exception)]
        assert (failed, server.stats().answered) == ([], 1500)


def test_arrivals_are_on_the_clock_of_all_processes() -> None:
    with serve("http", latency_s=0.2) as server:
        before = time.monotonic()
        post(server)
        (arrival,) = server.stats().arrivals
        assert before < arrival < time.monotonic() - 0.2


# Credentials, and the end


def test_the_unmodified_client_reaches_a_server_that_speaks_tls() -> None:
    pytest.importorskip("cryptography")
    script = """
import asyncio, sys
from google.api_core.client_options import ClientOptions
from google.cloud.aiplatform_v1 import VertexRagServiceAsyncClient
from google.oauth2.credentials import Credentials

async def ask():
    options = ClientOptions(api_endpoint=sys.argv[1])
    client = VertexRagServiceAsyncClient(credentials=Credentials(token="a-token"), client_options=options)
    answer = await client.retrieve_contexts({"parent": "p", "query": {"text": "who"}}, timeout=10)
    print([each.source_uri for each in answer.contexts.contexts])

asyncio.run(ask())
"""
    with serve("rag_engine", answers=ANSWERS, tls=True) as server:
        environment = {**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(server.certificate)}
        done = subprocess.run(
            [sys.executable, "-c", script, server.address], env=environment, capture_output=True, text=True, check=False
        )
        (request,) = server.stats().requests
    assert done.stdout.strip() == str([f"gs://bucket/{name}.txt" for name in "abc"]), done.stderr[-2000:]
    assert request["metadata"]["authorization"] == "Bearer a-token"


def test_without_a_token_tls_servers_refuse() -> None:
    pytest.importorskip("cryptography")
    with serve("rag_engine", tls=True) as server:

        async def ask() -> Any:
            roots = grpc.ssl_channel_credentials(Path(str(server.certificate)).read_bytes())
            channel = grpc.aio.secure_channel(server.address, roots)
            client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
            async with channel:
                return await _outcome(client.retrieve_contexts({"query": question()}, timeout=10))

        assert isinstance(asyncio.run(ask()), exceptions.Unauthenticated)


def test_http_speaks_tls() -> None:
    pytest.importorskip("cryptography")
    with serve("http", tls=True) as server:
        trusting = ssl.create_default_context(cafile=server.certificate)
        assert httpx.get(f"{server.url}/search", params={"q": "x"}, verify=trusting).status_code == 200


def test_figures_remain_after_the_end() -> None:
    with serve("http") as server:
        post(server)
    assert server.stats().calls == 1
    assert _is_gone(server.pid)


def test_a_standin_dies_with_a_parent_that_is_killed() -> None:
    script = """
import time
from support.standins import serve

with serve("http") as server:
    print(server.pid, flush=True)
    time.sleep(99)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    assert any(_is_gone(pid) for _ in _moments(20))


def _moments(seconds: float) -> Iterator[None]:
    for _ in range(int(seconds * 10)):
        yield
        time.sleep(0.1)


def _is_gone(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    return True
