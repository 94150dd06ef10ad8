"""Calls of applications: one request, whose duration is measured and stored with the reply."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from rankbeam.transforms.clients.http.connection import HttpConnection
from rankbeam.transforms.clients.http.connection import connect as connect_http
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.records.calls.reply import Reply


async def connect(parameters: HttpApplication) -> "ApplicationConnection":
    """Resolve the secrets and create the connection."""
    opened = await connect_http(parameters)
    return ApplicationConnection(parameters, opened.secrets, opened.values, opened.clients)


@dataclass(frozen=True)
class ApplicationConnection(HttpConnection):
    """An open client of an application."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt; the reply holds the application's own, and the seconds until it was complete."""
        clock = asyncio.get_running_loop().time
        began = clock()
        reply = await super().call(json.dumps({**json.loads(payload), "attempt": attempt}), timeout_s, attempt)
        seconds = round(clock() - began, 6)
        return Reply(f'{{"seconds":{seconds},"reply":{reply.answer}}}', reply.tokens)

    def _request(self, client: httpx.AsyncClient, payload: Mapping[str, Any]) -> httpx.Request:
        texts = {name: "" if value is None else value for name, value in payload.items()}
        return super()._request(client, texts)
