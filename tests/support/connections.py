"""Calls through a retriever's connection, without a run."""

import asyncio

from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply


async def call(parameters: RemoteRetriever, *payloads: str, timeout_s: float = 30.0) -> list[str | CallError]:
    """The outcome of each call, all in flight at once."""
    connection = await parameters.connect()
    try:
        outcomes = await asyncio.gather(
            *(connection.call(payload, timeout_s, 1) for payload in payloads), return_exceptions=True
        )
    finally:
        await connection.close()
    assert [outcome for outcome in outcomes if not isinstance(outcome, Reply | CallError)] == []
    return [outcome.answer if isinstance(outcome, Reply) else outcome for outcome in outcomes]  # type: ignore[union-attr,misc]
