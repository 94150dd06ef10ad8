"""Calls of ADK's API server: a session is created, the agent runs, and the session is deleted."""

import json
import secrets
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from rankbeam.transforms.clients.retrievers.applications.adk import AdkApplication
from rankbeam.transforms.clients.retrievers.applications.connection import ApplicationConnection
from rankbeam.transforms.clients.retrievers.http_connection import connect as connect_http
from rankbeam.transforms.records.conversations import HISTORY


async def connect(parameters: AdkApplication) -> "AdkConnection":
    """Resolve the secrets and create the connection."""
    opened = await connect_http(parameters)
    return AdkConnection(parameters, opened.secrets, opened.values, opened.clients)


@dataclass(frozen=True)
class AdkConnection(ApplicationConnection):
    """An open client of an API server."""

    async def _body(self, client: httpx.AsyncClient, request: httpx.Request) -> bytes:
        message = json.loads(request.content)
        session = f"rankbeam-{secrets.token_hex(8)}"
        names = (message["appName"], message["userId"], session)
        base = str(request.url).removesuffix("/run")
        place = f"{base}/apps/{{}}/users/{{}}/sessions/{{}}".format(*(quote(name, safe="") for name in names))
        headers = _without_length(request.headers)
        events = message.pop(HISTORY, None)
        created = place if events is None else place.rpartition("/")[0]  # only this one takes events
        initial = {} if events is None else {"sessionId": session, "events": events}
        await super()._body(client, client.build_request("POST", created, headers=headers, json=initial))
        try:
            content = json.dumps({**message, "sessionId": session}).encode()
            run = client.build_request("POST", request.url, headers=headers, content=content)
            return await super()._body(client, run)
        finally:
            deleted = client.build_request("DELETE", place, headers=headers)
            await (await client.send(deleted, stream=True)).aclose()


def _without_length(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "content-length"}
