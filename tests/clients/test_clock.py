"""Time limits of calls: a process that was stopped, as on a laptop that slept, reads the replies that arrived."""

import asyncio
import time
from typing import Any

import pytest
from support.model_calls import question
from support.standins import Faults, Standin, serve

from rankbeam.transforms.clients.clock import time_limit
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

LIMIT_S = 60.0
SEARCH = payload_of("who?", SearchDepth(1))
PROMPT = question("who?").payload()


def connecting(kind: str, server: Standin) -> tuple[Any, str]:
    """A service, and a payload for it."""
    if kind == "http":
        paths = {"results": "hits.hits", "id": "_id", "score": "_score"}
        return Http.model_validate({"url": f"{server.url}/search", **paths}), SEARCH
    if kind == "openai":
        return OpenAi(base_url=f"{server.url}/v1", model="m-001"), PROMPT
    return Gemini(model="gemini-x-001", project="p", location="l", api_endpoint=server.url), PROMPT


def jump(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Let the loop's clock jump, as if the process had been stopped."""
    loop.time = lambda: time.monotonic() + seconds  # type: ignore[method-assign]


def outcome_after_a_stop(kind: str, server: Standin) -> Reply | CallError:
    async def ask() -> Reply | CallError:
        service, payload = connecting(kind, server)
        connection = await service.connect()
        call = asyncio.create_task(connection.call(payload, LIMIT_S, 1))
        while not await asyncio.to_thread(lambda: server.stats().calls):
            await asyncio.sleep(0.01)
        while server.stats().calls > server.stats().answered + sum(server.stats().faults.values()):
            time.sleep(0.01)  # the loop does nothing meanwhile
        time.sleep(0.2)  # the reply travels
        jump(asyncio.get_running_loop(), 2 * LIMIT_S)
        try:
            return await call
        except CallError as error:
            return error
        finally:
            await connection.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", ["http", "openai", "gemini"])
def test_a_reply_that_arrived_while_the_process_was_stopped_is_read(kind: str) -> None:
    with serve(kind, latency_s=0.5) as server:
        assert isinstance(outcome_after_a_stop(kind, server), Reply)


def test_a_call_without_a_reply_ends_after_the_stop() -> None:
    with serve("http", faults=Faults(rate=1, kinds=("hang",))) as server:
        outcome = outcome_after_a_stop("http", server)
    assert isinstance(outcome, CallError)
    assert outcome.kind is FailureKind.TIMEOUT


def test_a_time_limit_ends_what_does_not_end() -> None:
    async def wait() -> None:
        async with time_limit(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(wait())
