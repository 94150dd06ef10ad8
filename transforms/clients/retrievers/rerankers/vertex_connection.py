"""Calls of Vertex AI's Ranking API: one request with the environment's credentials."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from rankbeam.transforms.clients.google.channels import address_of, default_credentials
from rankbeam.transforms.clients.google.errors import call_error, refusal
from rankbeam.transforms.clients.http.transport import kind_of_status, retry_after_s
from rankbeam.transforms.clients.retrievers.http_connection import HttpConnection
from rankbeam.transforms.clients.retrievers.http_connection import connect as connect_http
from rankbeam.transforms.clients.retrievers.rerankers.vertex import VertexRanking
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


async def connect(parameters: VertexRanking) -> "RankingConnection":
    """Find the credentials and create the connection; a server without TLS gets none."""
    address = await address_of(parameters.endpoint)
    base = f"{'https' if address.secure else 'http'}://{address.target}"
    opened = await connect_http(parameters.form.model_copy(update={"api_endpoint": base}))
    credentials = await asyncio.to_thread(default_credentials, _SCOPES) if address.secure else None
    return RankingConnection(opened.parameters, opened.secrets, opened.values, opened.clients, credentials)


@dataclass(frozen=True)
class RankingConnection(HttpConnection):
    """An open client of the API."""

    credentials: Any = field(default=None, repr=False)
    _renewing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        request = json.loads(payload)
        records = [{"id": str(place), "content": text} for place, text in enumerate(request["documents"])]
        values = {"query": request["query"], "records": records, "token": await self._token()}
        return await super().call(json.dumps(values), timeout_s, attempt)

    async def _token(self) -> str | None:
        if self.credentials is None:
            return None
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        async with self._renewing:
            if not self.credentials.valid:
                try:
                    await asyncio.to_thread(self.credentials.refresh, Request())
                except GoogleAuthError as error:
                    raise call_error(error) from None
        return str(self.credentials.token)

    def _request(self, client: httpx.AsyncClient, payload: Mapping[str, Any]) -> httpx.Request:
        request = super()._request(client, {name: payload[name] for name in ("query", "records")})
        if payload["token"] is not None:
            request.headers["Authorization"] = f"Bearer {payload['token']}"
        if (project := getattr(self.credentials, "quota_project_id", None)) is not None:
            request.headers["X-Goog-User-Project"] = project
        return request

    def _refusal(self, response: httpx.Response, body: bytes) -> CallError:
        wait = retry_after_s(response.headers)
        return refusal(kind_of_status(response.status_code), response.status_code, body, wait)
