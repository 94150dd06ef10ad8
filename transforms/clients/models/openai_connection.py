"""Calls of the `openai` model: one request over httpx, and its reply."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

import httpx

from rankbeam.transforms.clients.clock import time_limit
from rankbeam.transforms.clients.http.transport import Clients, error_of, kind_of_status, read_body, wait_in
from rankbeam.transforms.clients.models.base import MAX_TOKENS, STOP, Stored
from rankbeam.transforms.clients.models.model_connection import ModelConnection, ModelRequest, RequestPart
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.models.remote import resolve_key
from rankbeam.transforms.clients.models.replies import MOST_BYTES, ReportedUsage, found_among, object_of
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

_SHOWN, _MOST_BYTES_SHOWN = 300, 64 * 2**10
_FINISHES = {"stop": STOP, "length": MAX_TOKENS, "eos": STOP}
_BLOCKS = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
_MANY = re.compile(r"batch[ _-]?size|too many (?:inputs|texts|strings)|number of inputs", re.IGNORECASE)
_LIMIT_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_FORM = frozenset({RequestPart.SCHEMA, RequestPart.BOUNDS, RequestPart.JSON})
_SPENT = re.compile(r"insufficient_quota|billing_hard_limit|per[ _-]day", re.IGNORECASE)
_NO_MONEY = 402
_NO_BUDGET = re.compile(r'"type": ?"budget_exceeded"')  # LiteLLM, with status 400
_CACHED = (("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",), ("cache_read_input_tokens",))
"""Places of cached tokens in the usage of OpenAI, DeepSeek and gateways to Anthropic."""


async def connect(parameters: OpenAi) -> "OpenAiConnection":
    key, secrets = await resolve_key(parameters.api_key)
    headers = httpx.Headers({"User-Agent": "rankbeam", "Accept": "application/json"})
    if key is not None:
        is_bearer = parameters.key_header.lower() == "authorization"
        headers[parameters.key_header] = f"Bearer {key}" if is_bearer else key
    return OpenAiConnection(parameters, secrets, Clients(headers))


@dataclass(frozen=True)
class _Response:
    """A response, received in full."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(eq=False)
class OpenAiConnection(ModelConnection):
    """An open client of a service."""

    parameters: OpenAi
    clients: Clients = field(repr=False)

    always: ClassVar[frozenset[RequestPart]] = ModelConnection.always | {RequestPart.LIMIT, RequestPart.SYSTEM}

    async def check(self, timeout_s: float) -> str | None:
        """Look for the model in the service's list of models, which is free; None if there is no list."""
        response = await self._send("GET", "/models", "", timeout_s)
        if response.status in (404, 405, 501):
            return None
        rows = self._object(response, "").get("data")
        names = [name for row in rows if isinstance(name := value_at(row, "id"), str)] if isinstance(rows, list) else []
        return found_among(self.parameters.model, [self.secrets.hide(name) for name in names])

    async def close(self) -> None:
        await self.clients.close()

    def parts(self, request: ModelRequest, prompt: Prompt) -> frozenset[RequestPart]:
        """As for every model, but without the form of replies if the service ignores it."""
        parts = super().parts(request, prompt)
        return parts - _FORM if self.parameters.schema_in == "prompt" else parts

    async def answer(self, request: ModelRequest, prompt: Prompt, timeout_s: float) -> Reply:
        parts = self.parts(request, prompt)
        response = await self._post("/chat/completions", self.body(request, prompt), request.text, timeout_s)
        if response.status in (400, 422):
            block = _block(response.body)
            if block is not None:
                stored = Stored(None, "prompt", self.secrets.hide(block), "")
                return Reply(stored.written(), Tokens(estimated_tokens(request.text)))
            if self.refusals.learn(_message(response.body), parts):
                raise CallError(FailureKind.INVALID, self._response_text(response), changes_form=True)
        return self.reply(self._object(response, request.text), request, prompt)

    def reply(self, body: Mapping[str, Any], request: ModelRequest, prompt: Prompt) -> Reply:
        return self.reply_with(self._stored_answer(body, prompt, request.text), _usage(body), request)

    def body(self, request: ModelRequest, prompt: Prompt) -> dict[str, Any]:
        parameters, form, parts = self.parameters, {}, self.parts(request, prompt)
        system, schema = self.system_and_schema(request, prompt, parts)
        if schema is not None:
            named = {"name": prompt.step, "strict": True, "schema": schema}
            form = {"response_format": {"type": "json_schema", "json_schema": named}}
        elif RequestPart.JSON in parts:
            form = {"response_format": {"type": "json_object"}}
        messages, user = ([{"role": "system", "content": system}] if system else []), request.texts.user
        if RequestPart.SYSTEM not in parts:
            messages, user = [], f"{system}\n\n{user}".strip()
        limit_name = parameters.limit_name if RequestPart.LIMIT in parts else _LIMIT_NAMES[parameters.limit_name]
        return {
            "model": parameters.model,
            "messages": [*messages, {"role": "user", "content": user}],
            limit_name: request.max_output_tokens,
            **({"temperature": request.temperature} if RequestPart.TEMPERATURE in parts else {}),
            **({"seed": request.seed} if RequestPart.SEED in parts else {}),
            **({} if parameters.reasoning_effort is None else {"reasoning_effort": parameters.reasoning_effort}),
            **form,
            **parameters.extra_body,
        }

    async def embed(self, texts: list[str], task_type: str | None, timeout_s: float) -> Reply:  # noqa: ARG002  no field for it
        request = "".join(texts)
        response = await self._post("/embeddings", self.embedding_body(texts), request, timeout_s)
        if response.status == 413 or (response.status in (400, 422) and _MANY.search(_message(response.body))):
            self.vectors.refused(len(texts))
        return self.embeddings(self._object(response, request), texts)

    def embedding_body(self, texts: list[str]) -> dict[str, Any]:
        model, inputs = self.parameters, texts if len(texts) > 1 else texts[0]
        size = {} if model.dimensions is None else {"dimensions": model.dimensions}
        return {"model": model.model, "input": inputs, **size, **model.extra_body}

    def embeddings(self, body: Mapping[str, Any], texts: list[str]) -> Reply:
        self._refuse_error(None if body.get("data") else body.get("error"))
        return self.reply_with_vectors(_rows(body.get("data")), texts, _usage(body), self._version(body))

    async def object(self, method: str, path: str, timeout_s: float = 120.0, **body: Any) -> dict[str, Any]:
        """Send a request with a body as httpx takes it, and receive an object."""
        return self._object(await self._send(method, path, "", timeout_s, **body), "")

    async def _post(self, path: str, body: Mapping[str, Any], request: str, timeout_s: float) -> _Response:
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return await self._send("POST", path, request, timeout_s, content=content)

    async def _send(self, method: str, path: str, request: str, timeout_s: float, **body: Any) -> _Response:
        """Send a request and receive its response, whatever its status; a response that breaks off may be charged."""
        url, tokens = f"{self.parameters.base_url}{path}", Tokens()
        headers = {"Content-Type": "application/json"} if "content" in body else {}
        try:
            async with time_limit(timeout_s):
                with self.clients.one() as client:
                    async with client.stream(method, url, headers=headers, **body) as response:
                        tokens = Tokens(estimated_tokens(request)) if response.is_success else tokens
                        received_body = await read_body(response.aiter_bytes(), MOST_BYTES)
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, f"no complete answer within {timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise error_of(error, self.secrets.hide, tokens) from None
        return _Response(response.status_code, response.headers, received_body)

    def _object(self, response: _Response, request: str) -> dict[str, Any]:
        if not 200 <= response.status < 300:
            raise self._refusal(response)
        try:
            return object_of(response.body)
        except CallError as error:
            tokens, message = Tokens(estimated_tokens(request)), error.message
            if error.kind is FailureKind.UNAVAILABLE:  # it is not JSON
                start = response.body[:_MOST_BYTES_SHOWN].decode(errors="replace")
                message = f"{message}, found {self.secrets.hide(start)[:_SHOWN]!r}"
            raise CallError(error.kind, self.secrets.hide(message), tokens=tokens) from None

    def _stored_answer(self, body: Mapping[str, Any], prompt: Prompt, request: str) -> Stored:
        """The content of a response. A refusal counts as an answer, unless the prompt has a schema."""
        choice = value_at(body, "choices", 0)
        is_error = body.get("object") == "error"
        self._refuse_error(value_at(choice, "error") if choice else body.get("error") or (body if is_error else None))
        message, finish = value_at(choice, "message"), value_at(choice, "finish_reason") or STOP
        if not isinstance(message, dict) or not isinstance(finish, str):
            lacks = "the answer has no choice" if choice is None else "a choice of the answer has another form"
            raise CallError(FailureKind.MALFORMED, lacks, tokens=self.charges.of(_usage(body), request))
        hide, version = self.secrets.hide, self._version(body)
        if finish == "content_filter":
            return Stored(None, finish, finish, version)
        refusal, text = message.get("refusal"), message.get("content")
        refusal = refusal if isinstance(refusal, str) and refusal else None
        if refusal is not None and prompt.schema is not None:
            return Stored(None, hide(finish), hide(f"refusal: {refusal}"), version)
        text = _join_texts(text) if isinstance(text, list) else text
        text = text if isinstance(text, str) and text else refusal
        return Stored(None if text is None else hide(text), hide(_FINISHES.get(finish, finish)), None, version)

    def _version(self, body: Mapping[str, Any]) -> str:
        version = body.get("model")
        return self.secrets.hide(version) if isinstance(version, str) else ""

    def _refusal(self, response: _Response) -> CallError:
        text = response.body.decode(errors="replace")
        return _failure(response.status, self._response_text(response), text, response.headers)

    def _refuse_error(self, error: Any) -> None:
        """Raise the error that a response with status 200 reports: gateways pass on those of their models so."""
        if error:
            text = json.dumps(error, ensure_ascii=False).encode(errors="replace").decode()
            code = value_at(error, "code")
            code = int(code) if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code) else code
            message = self.secrets.hide(f"the answer holds an error: {text}")[:_SHOWN]
            raise _failure(code if type(code) is int and code >= 400 else 500, message, text, {})

    def _response_text(self, response: _Response) -> str:
        redirect = f" redirects to {response.headers['location']}" if "location" in response.headers else ""
        text = f"HTTP {response.status}{redirect} {response.body.decode(errors='replace')}".strip()
        return self.secrets.hide(text)[:_SHOWN]  # in this order: half a secret would not be recognised


def _failure(status: int, message: str, text: str, headers: Mapping[str, str]) -> CallError:
    """The failure of a call that was refused with a status and a text; an account without money stops the pool."""
    has_no_money = status == _NO_MONEY or _NO_BUDGET.search(text) is not None
    kind = FailureKind.QUOTA if has_no_money else kind_of_status(status)
    is_quota = kind is FailureKind.QUOTA
    wait_s = wait_in(headers, text, status) if is_quota or kind is FailureKind.UNAVAILABLE else None
    is_spent = is_quota and (has_no_money or bool(_SPENT.search(text)))
    return CallError(kind, message, retry_after_s=wait_s, stops_pool=is_spent)


def _join_texts(parts: list[Any]) -> str:
    """The texts of a content in parts, without those of thinking."""
    texts = (value_at(part, "text") for part in parts if value_at(part, "type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _rows(data: Any) -> Any:
    """The embeddings of a response, in the order of the texts; None if their indexes do not number the texts.

    Services may leave out an index of 0, and some give every embedding the same index, or none.
    """
    if not isinstance(data, list):
        return None
    indexes = [value_at(row, "index") or 0 for row in data]
    if any(index != indexes[0] for index in indexes):
        if sorted(index for index in indexes if isinstance(index, int | float)) != list(range(len(data))):
            return None
        data = [row for _, row in sorted(zip(indexes, data, strict=True), key=itemgetter(0))]
    return [value_at(row, "embedding") for row in data]


def _usage(body: Mapping[str, Any]) -> ReportedUsage:
    """The usage that a response reports; services may leave out some counts."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return ReportedUsage(usage)
    cached = next((count for path in _CACHED if (count := value_at(usage, *path)) is not None), None)
    counts = usage.get("prompt_tokens"), cached, usage.get("completion_tokens"), usage.get("total_tokens")
    return ReportedUsage(*counts)


def _error(body: bytes) -> Any:
    """The error in a refusal; the whole body if it has another form."""
    try:
        value = object_of(body)
    except CallError:
        return body.decode(errors="replace")
    error = value.get("error")
    return error if isinstance(error, dict | str) else value


def _message(body: bytes) -> str:
    return message_of(_error(body))


def message_of(error: Any) -> str:
    """The message of an error; the whole error if it has none."""
    message = value_at(error, "message")
    return message if isinstance(message, str) else json.dumps(error, ensure_ascii=False)


def _block(body: bytes) -> str | None:
    """The reason why a content filter refused the prompt; None if no filter did."""
    error = _error(body)
    codes = [value_at(error, "code"), value_at(error, "innererror", "code"), value_at(error, "type")]
    return next((code for code in codes if isinstance(code, str) and code in _BLOCKS), None)


def value_at(value: Any, *path: str | int) -> Any:
    """The value at a path of a JSON value; None if there is none.

    >>> value_at({"a": [{"b": 1}]}, "a", 0, "b"), value_at({"a": []}, "a", 0)
    (1, None)
    """
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
