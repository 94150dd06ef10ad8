"""Calls of the `openai` model: one request over httpx, and what it says."""

import asyncio
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from rankbeam.transforms.clients.http.connection import Clients, retry_after_s
from rankbeam.transforms.clients.models.attempts import Ask, Attempts
from rankbeam.transforms.clients.models.base import MAX_TOKENS, STOP, Stored, embedded_text, prompt_of
from rankbeam.transforms.clients.models.charges import Charges
from rankbeam.transforms.clients.models.keys import resolved
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.secrets import Secrets
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.reply import Reply, Tokens
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_SHOWN = 300
_KINDS = {
    401: FailureKind.PERMISSION,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.UNAVAILABLE,
    429: FailureKind.QUOTA,
    501: FailureKind.INVALID,
    504: FailureKind.TIMEOUT,
}
_FINISHES = {"stop": STOP, "length": MAX_TOKENS, "eos": STOP}
_ABOUT_FORM = re.compile(r"response_format|json_?schema|structured|guided|grammar", re.IGNORECASE)
_SPENT = re.compile(r"insufficient_quota|billing_hard_limit|per[ _-]day", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


async def connect(parameters: OpenAi) -> "OpenAiConnection":
    """Find the key and make a client.

    Raises:
        InputError: the key has no value here.
    """
    key, secrets = await resolved(parameters.api_key)
    headers = httpx.Headers({"User-Agent": "rankbeam", "Accept": "application/json"})
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return OpenAiConnection(parameters, Clients(headers), secrets, Charges(parameters.scope()))


@dataclass
class OpenAiConnection:
    """An open client of a service.

    Attributes:
        parameters: what is called.
        clients: keep their connections open from call to call.
        secrets: that no message may hold.
        charges: count the tokens of calls.
        attempts: what was wrong with earlier answers.
    """

    parameters: OpenAi
    clients: Clients = field(repr=False)
    secrets: Secrets
    charges: Charges
    attempts: Attempts = field(default_factory=Attempts)
    _takes_schema: bool = True

    @property
    def warnings(self) -> list[str]:
        """What users should see."""
        return self.charges.warnings

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt; see `services.Connection.call`."""
        prompt = prompt_of(payload)
        try:
            async with asyncio.timeout(timeout_s):
                if prompt.step == EMBED:
                    return await self._embedding(embedded_text(prompt))
                reply = await self._answer(self.attempts.ask(payload, prompt, attempt), prompt)
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, f"no whole answer within {timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The library's errors hold requests with their headers: only the message goes on, without secrets.
            said = self.secrets.hide(f"{type(error).__name__}: {error}")
            raise CallError(FailureKind.UNAVAILABLE, said) from None
        self.attempts.answered(payload, prompt, reply.answer)
        return reply

    async def close(self) -> None:
        """Close all connections."""
        await self.clients.close()

    async def _answer(self, ask: Ask, prompt: Prompt) -> Reply:
        takes_schema = self._takes_schema
        response = await self._post("/chat/completions", self._body(ask, prompt, takes_schema))
        if response.status_code == 400 and prompt.schema is not None and takes_schema and _is_about_form(response):
            self._give_up_schemas()
            raise CallError(FailureKind.INVALID, self._said(response), changes_form=True)
        body = self._value(response)
        stored = _stored(body, prompt)
        asked = ask.texts.system + ask.texts.user
        return Reply(stored.written(), self.charges.of(_tokens(body.get("usage")), asked, stored.text or ""))

    def _give_up_schemas(self) -> None:
        """Ask for JSON alone from now on; calls in flight each learn it by one attempt more."""
        if self._takes_schema:
            self._takes_schema = False
            self.warnings.append(
                f"{self.parameters.scope()} refuses JSON schemas: it is asked for a JSON object, with the schema in "
                "the prompt; answers are checked as before"
            )

    def _body(self, ask: Ask, prompt: Prompt, takes_schema: bool) -> dict[str, Any]:
        system = ask.texts.system
        form: dict[str, Any] = {}
        if prompt.schema is not None and takes_schema:
            named = {"name": prompt.step, "strict": True, "schema": prompt.schema}
            form = {"response_format": {"type": "json_schema", "json_schema": named}}
        elif prompt.schema is not None:
            system = f"{system}\n\nThe answer is a JSON object of this schema:\n{json.dumps(prompt.schema)}".strip()
            form = {"response_format": {"type": "json_object"}}
        messages = [{"role": "system", "content": system}] if system else []
        return {
            "model": self.parameters.model,
            "messages": [*messages, {"role": "user", "content": ask.texts.user}],
            "temperature": ask.temperature,
            self.parameters.limit_name: ask.max_output_tokens,
            **({} if ask.seed is None else {"seed": ask.seed}),
            **form,
        }

    async def _embedding(self, text: str) -> Reply:
        size = {} if self.parameters.dimensions is None else {"dimensions": self.parameters.dimensions}
        body = self._value(await self._post("/embeddings", {"model": self.parameters.model, "input": text, **size}))
        vector = _at(body, "data", 0, "embedding")
        is_vector = isinstance(vector, list) and all(isinstance(x, int | float) and math.isfinite(x) for x in vector)
        if not is_vector or not vector:
            raise CallError(FailureKind.MALFORMED, "the answer holds no embedding")
        stored = Stored(None, STOP, None, str(body.get("model") or ""), tuple(map(float, vector)))
        return Reply(stored.written(), self.charges.of(_tokens(body.get("usage")), text))

    async def _post(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        with self.clients.one() as client:
            content = json.dumps(body, ensure_ascii=False).encode()
            headers = {"Content-Type": "application/json"}
            return await client.post(f"{self.parameters.base_url}{path}", content=content, headers=headers)

    def _value(self, response: httpx.Response) -> dict[str, Any]:
        """The answer's JSON object.

        Raises:
            CallError: it is a refusal, or no JSON object.
        """
        if not response.is_success:
            raise self._refusal(response)
        try:
            body = response.json()
        except ValueError as error:
            raise CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise CallError(FailureKind.MALFORMED, "the answer is no JSON object")
        return body

    def _refusal(self, response: httpx.Response) -> CallError:
        status, text = response.status_code, response.text
        kind = _KINDS.get(status, FailureKind.UNAVAILABLE if status >= 500 else FailureKind.INVALID)
        is_quota = kind is FailureKind.QUOTA
        wait_s = _wait_s(response.headers) if is_quota or kind is FailureKind.UNAVAILABLE else None
        return CallError(
            kind, self._said(response), retry_after_s=wait_s, stops_pool=is_quota and bool(_SPENT.search(text))
        )

    def _said(self, response: httpx.Response) -> str:
        return self.secrets.hide(f"HTTP {response.status_code} {response.text}".strip())[:_SHOWN]


def _stored(body: Mapping[str, Any], prompt: Prompt) -> Stored:
    """What a response holds. A refusal is an answer, except where a form was asked for."""
    version = str(body.get("model") or "")
    choice = _at(body, "choices", 0)
    if not isinstance(choice, dict):
        raise CallError(FailureKind.MALFORMED, "the answer holds no choice", tokens=_tokens(body.get("usage")))
    message = choice.get("message") or {}
    finish = str(choice.get("finish_reason") or STOP)
    if finish == "content_filter":
        return Stored(None, finish, finish, version)
    refusal = message.get("refusal")
    if refusal and prompt.schema is not None:
        return Stored(None, finish, f"refusal: {refusal}", version)
    text = message.get("content") or refusal
    return Stored(text if isinstance(text, str) else None, _FINISHES.get(finish, finish), None, version)


def _tokens(usage: Any) -> Tokens:
    """Of a response; services leave out what they do not count."""
    if not isinstance(usage, dict):
        return Tokens()
    cached = _at(usage, "prompt_tokens_details", "cached_tokens")
    return Tokens(
        *(int(number or 0) for number in (usage.get("prompt_tokens"), cached, usage.get("completion_tokens")))
    )


def _at(value: Any, *path: str | int) -> Any:
    """What lies at a path of a JSON value; None where nothing does.

    >>> _at({"a": [{"b": 1}]}, "a", 0, "b"), _at({"a": []}, "a", 0)
    (1, None)
    """
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _is_about_form(response: httpx.Response) -> bool:
    return _ABOUT_FORM.search(response.text) is not None


def _wait_s(headers: Mapping[str, str]) -> float | None:
    """After how many seconds the service wants to be asked again; None where it does not say.

    >>> _wait_s({"retry-after-ms": "1500"}), _wait_s({"retry-after": "2"})
    (1.5, 2.0)
    >>> _wait_s({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s"})
    62.5
    """
    milliseconds = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d{1,9}(\.\d+)?", milliseconds, re.ASCII):
        return float(milliseconds) / 1000
    found = retry_after_s(headers.get("retry-after"), datetime.now(UTC))
    if found is not None:
        return found
    spent = [name for name in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{name}") == "0"]
    waits = [_seconds(headers.get(f"x-ratelimit-reset-{name}", "")) for name in spent]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str) -> float | None:
    parts = _DURATION.findall(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None
