"""The stand-ins count arrivals, enforce a quota, and speak TLS."""

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
from google.rpc.error_details_pb2 import RetryInfo
from support.standin_clients import ANSWERS, RAG, _outcome, post, question, rag
from support.standins import serve
from support.standins.quota import Meter

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
    refused = [answer for answer in answers if isinstance(answer, exceptions.ResourceExhausted)]
    hints = [hint for answer in refused for hint in answer.details if isinstance(hint, RetryInfo)]
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

        failed = [outcome for outcome in asyncio.run(ask()) if isinstance(outcome, Exception)]
        assert (failed, server.stats().answered) == ([], 1500)


def test_arrivals_are_on_the_clock_of_all_processes() -> None:
    with serve("http", latency_s=0.2) as server:
        before = time.monotonic()
        post(server)
        (arrival,) = server.stats().arrivals
        assert before < arrival < time.monotonic() - 0.2


# Credentials, and the end


@pytest.mark.long
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
