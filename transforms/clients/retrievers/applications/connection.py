"""Calls of applications: one request, whose duration is measured and stored with the reply."""

import asyncio
import codecs
import io
import json
import secrets
from collections import Counter as Tally
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from rankbeam.transforms.clients.http.transport import MOST_BYTES, BodySize
from rankbeam.transforms.clients.retrievers.applications.ask import AdkApplication
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.http_connection import HttpConnection
from rankbeam.transforms.clients.retrievers.http_connection import connect as connect_http
from rankbeam.transforms.records.conversations import HISTORY
from rankbeam.transforms.records.errors import CallError, FailureKind, pluralize
from rankbeam.transforms.records.reply import Reply

_DELETE_S = 5.0
_FIELDS = {"", "data", "event", "id", "retry"}
_RECORD = "\x1e"  # begins each record of application/json-seq
_DONE = object()  # the end of a stream that says so


async def connect(parameters: HttpApplication) -> "ApplicationConnection":
    opened = await connect_http(parameters)
    kind = AdkConnection if isinstance(parameters, AdkApplication) else ApplicationConnection
    return kind(parameters, opened.secrets, opened.values, opened.clients)


@dataclass(frozen=True)
class ApplicationConnection(HttpConnection):
    """An open client of an application."""

    parameters: HttpApplication
    tokens: Tally[str] = field(default_factory=Tally, init=False)  # of all replies, by the names in `usage`
    unanswered: Tally[str] = field(default_factory=Tally, init=False)  # attempts without a reply, by payload

    @property
    def warnings(self) -> list[str]:
        """Warnings of token counts that no reply has, and that would silently be 0."""
        paths = self.parameters.usage
        advice = "so they count as 0 in costs and in the table usage; correct the path, or leave it out"
        return [
            f"{self.parameters.url}: no reply has {name} tokens at {paths[name]} (usage: {name}), {advice}"
            for name, total in self.tokens.items()
            if total == 0 and name != "cached"  # a service may have cached nothing
        ]

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt; the reply holds the application's own, and the seconds until it was complete."""
        clock = asyncio.get_running_loop().time
        began = clock()
        number = attempt + self.unanswered[payload]
        try:
            reply = await super().call(json.dumps({**json.loads(payload), "attempt": number}), timeout_s, number)
        except BaseException:  # the application may have begun to answer
            self.unanswered[payload] += 1
            raise
        seconds = round(clock() - began, 6)
        answer = f'{{"seconds":{seconds},"reply":{reply.answer}}}'
        tokens = self.parameters.tokens_of(answer)
        for name in self.parameters.usage:
            self.tokens[name] += getattr(tokens, name)
        return Reply(answer, tokens)

    async def _body(self, client: httpx.AsyncClient, request: httpx.Request) -> bytes:
        parameters = self.parameters
        if not parameters.stream:
            return await super()._body(client, request)
        clock = asyncio.get_running_loop().time
        began, first, is_done = clock(), None, False
        events: list[Any] = []
        async with self._response(client, request) as response, BodySize() as size:
            async for event in self._events(response, size):
                is_done = event is _DONE
                if not is_done:
                    events.append(event)
                    first = clock() if first is None and parameters.has_text(event) else first
        if not parameters.has_ended(events, is_done):
            problem = f"the stream ended in the middle, after {pluralize(len(events), 'event')}"
            if not events:
                raise CallError(FailureKind.UNAVAILABLE, problem)
            # Malformed: with a wrong `end`, no attempt at any call would succeed.
            last = self._shown(json.dumps(events[-1], ensure_ascii=False))
            raise CallError(FailureKind.MALFORMED, f"{problem}: none has {parameters.ending}, and the last is {last}")
        seconds = None if first is None else round(first - began, 6)
        return json.dumps({"first_token_s": seconds, "events": events}).encode()

    async def _events(self, response: httpx.Response, size: BodySize) -> AsyncIterator[Any]:
        """The events of a stream before "[DONE]", and `_DONE` if it is there.

        An event has lines of data up to an empty line; without empty lines, each line is an event.
        """
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        are_json_lines = "json" in kind and kind != "application/json"
        data: list[str] = []
        is_done, is_error, has_begun, other = False, False, False, ""
        async for line in _lines(response, size):  # to its end, so that the connection can be used again
            line = line.removeprefix(_RECORD) if are_json_lines else line
            name, _, value = line.partition(":")
            if are_json_lines and name not in _FIELDS:
                name, value = "data", line
            is_error = is_error or (name == "event" and value.strip() == "error" and not is_done)
            is_done = is_done or (name == "data" and value.strip() == "[DONE]")
            other = other or ("" if name in _FIELDS else line)
            if is_error and not line:
                break
            if is_done or (line and name != "data"):
                continue
            data += [value] if line else []
            if not is_error and (len(data) == 1 or (data and not line)):
                try:
                    event = json.loads("\n".join(data))
                except (ValueError, RecursionError) as error:
                    if line:
                        continue
                    raise CallError(FailureKind.MALFORMED, f"an event of the stream is not JSON: {error}") from error
                is_error = isinstance(event, dict) and bool(event.get("error"))
                if is_error:
                    break
                data.clear()
                has_begun = True
                yield event
        self._refuse_rest(data, "" if has_begun else other, is_error=is_error)
        if is_done:
            yield _DONE

    def _refuse_rest(self, data: Sequence[str], other: str, *, is_error: bool) -> None:
        """Refuse a stream that ends with an error, within an event, or without any event."""
        if is_error:  # of a server that failed after the first events
            problem = f"the stream holds an error: {self._shown(' '.join(data).strip())}"
            raise CallError(FailureKind.UNAVAILABLE, problem)
        if data:
            raise CallError(FailureKind.UNAVAILABLE, "the stream ended in the middle of an event")
        if other:
            problem = f"the reply is not a stream of server-sent events, found {self._shown(other)!r}"
            advice = "; JSON lines need the content type application/x-ndjson" if other.startswith("{") else ""
            raise CallError(FailureKind.MALFORMED, problem + advice)

    def _request(self, client: httpx.AsyncClient, payload: Mapping[str, Any]) -> httpx.Request:
        texts = {name: "" if value is None else value for name, value in payload.items()}
        request = super()._request(client, texts)
        if not (history := payload.get(HISTORY)) or not request.content:
            return request
        body = self.parameters.with_history(json.loads(request.content), history)
        headers, content = _without_length(request.headers), json.dumps(body, ensure_ascii=False).encode()
        return client.build_request(request.method, request.url, headers=headers, content=content)


async def _lines(response: httpx.Response, size: BodySize) -> AsyncIterator[str]:
    """The lines of server-sent events, which end with CR, LF or both; httpx's also end within JSON, at U+2028."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    begun: list[str] = []
    async for block in response.aiter_bytes():
        if await size.add(block) > MOST_BYTES:
            raise CallError(FailureKind.INVALID, f"the stream has more than {MOST_BYTES >> 20} MB")
        first, *others = decoder.decode(block).split("\n")
        begun.append(first)
        for line in others:
            yield "".join(begun)
            begun = [line]
    if last := "".join(begun):
        yield last


@dataclass(frozen=True)
class AdkConnection(ApplicationConnection):
    """An open client of ADK's API server: a session is created, the agent runs, and the session is deleted."""

    deletions: set[asyncio.Task[None]] = field(default_factory=set, init=False)  # no answer waits for them

    async def close(self) -> None:
        await asyncio.gather(*self.deletions)
        await super().close()

    async def _body(self, client: httpx.AsyncClient, request: httpx.Request) -> bytes:
        message = json.loads(request.content)
        session = f"rankbeam-{secrets.token_hex(8)}"
        names = (message["appName"], message["userId"], session)
        base, mark, query = request.url.raw_path.decode().partition("?")
        place = "{}/apps/{}/users/{}/sessions/{}".format(
            base.removesuffix("/run"), *(quote(name, safe="") for name in names)
        )
        headers = _without_length(request.headers)
        events = message.pop(HISTORY, None)
        created = place if events is None else place.rpartition("/")[0]  # only this one takes events
        initial = {} if events is None else {"sessionId": session, "events": events}

        def url(path: str) -> httpx.URL:
            return request.url.copy_with(raw_path=f"{path}{mark}{query}".encode())

        await super()._body(client, client.build_request("POST", url(created), headers=headers, json=initial))
        try:
            content = json.dumps({**message, "sessionId": session}).encode()
            run = client.build_request("POST", request.url, headers=headers, content=content)
            return await super()._body(client, run)
        finally:
            deletion = asyncio.create_task(_delete(client, client.build_request("DELETE", url(place), headers=headers)))
            self.deletions.add(deletion)
            deletion.add_done_callback(self.deletions.discard)


async def _delete(client: httpx.AsyncClient, request: httpx.Request) -> None:
    with suppress(httpx.HTTPError, TimeoutError):  # the session stays
        async with asyncio.timeout(_DELETE_S):
            await (await client.send(request, stream=True)).aclose()


def _without_length(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "content-length"}
