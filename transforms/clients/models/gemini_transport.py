"""The HTTP session of google-genai: it follows no redirect, keeps no cookie, and receives replies of limited size.

The library's own session would send the key in `x-goog-api-key` wherever a redirect leads.
"""

import json
from typing import Any

import aiohttp

from rankbeam.transforms.clients.models.replies import MOST_BYTES, too_large, unreadable

REQUEST_OPTIONS = {"allow_redirects": False}
"""Options of aiohttp for every request."""


class _Response(aiohttp.ClientResponse):
    """A response that is read as the library reads it: an answer by `text`, a refusal by `json`."""

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """The body of an answer.

        Raises:
            CallError: it is too large, or no text.
        """
        try:
            return (await self._received()).decode(encoding or "utf-8", errors)
        except UnicodeDecodeError as error:
            raise unreadable(error) from None

    async def json(self, **_: Any) -> Any:
        """The body of a refusal, in the form that the library expects of it."""
        body = await self._received()
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, dict) and isinstance(value.get("error"), dict):
            return value
        return {"message": body.decode(errors="replace"), "status": self.reason}

    async def _received(self) -> bytes:
        parts, size = [], 0
        async for part in self.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                self.close()
                raise too_large()
        return b"".join(parts)


def session() -> aiohttp.ClientSession:
    """A session with any number of connections; called on the loop that makes the calls."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=_Response,
        trust_env=True,
    )
