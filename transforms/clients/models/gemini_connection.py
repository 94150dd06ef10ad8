"""Calls of the `gemini` model: one request through google-genai on aiohttp, and its reply.

The library is set to make one attempt, as it would retry by itself: pacing and retries are the fan-out's task.
"""

import asyncio
import json
import math
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import aiohttp
import httpx

from rankbeam.transforms.clients.clock import time_limit
from rankbeam.transforms.clients.google.channels import address_of, default_credentials
from rankbeam.transforms.clients.http.transport import usable_environment
from rankbeam.transforms.clients.models import gemini_transport
from rankbeam.transforms.clients.models.base import MAX_TOKENS, STOP, Stored
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.gemini_transport import message_of, translated
from rankbeam.transforms.clients.models.model_connection import ModelConnection, ModelRequest, RequestPart
from rankbeam.transforms.clients.models.remote import resolve_key
from rankbeam.transforms.clients.models.replies import ReportedUsage, unreadable
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind, Unreachable
from rankbeam.transforms.records.judging.answers import estimated_tokens
from rankbeam.transforms.records.reply import Reply, Tokens

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_FINISHES = {"STOP": STOP, "MAX_TOKENS": MAX_TOKENS}
_BLOCKS = {
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION", "MODEL_ARMOR", "JAILBREAK",
}  # fmt: skip
"""Reasons for which a prompt is refused each time; after others, it may be sent again."""


async def connect(parameters: Gemini) -> "GeminiConnection":
    key, secrets = await resolve_key(parameters.api_key)
    genai = await asyncio.to_thread(import_module, "google.genai")  # takes a second
    warnings.filterwarnings("ignore", message=".* is not a valid .*", module=r"google\.genai\..*")  # new reasons
    warnings.filterwarnings("ignore", message=r"batches\.create_embeddings\(\) is experimental")
    with usable_environment():
        httpx.Client().close()  # the library makes one
    session = gemini_transport.session()
    options: dict[str, Any] = {
        "retry_options": {"attempts": 1},
        "aiohttp_client": session,
        "async_client_args": gemini_transport.REQUEST_OPTIONS,
    }
    credentials = None
    if parameters.api_endpoint is not None:
        address = await address_of(parameters.api_endpoint)
        options["base_url"] = f"{'https' if address.secure else 'http'}://{address.target}"
        credentials = None if address.secure else _no_credentials()
    try:
        if not parameters.on_vertex:
            client = genai.Client(vertexai=False, api_key=key, http_options=options)
        else:
            credentials = credentials or await asyncio.to_thread(default_credentials, _SCOPES)
            location = {"project": parameters.project, "location": parameters.location}
            client = genai.Client(vertexai=True, credentials=credentials, http_options=options, **location)
    except BaseException:
        await session.close()
        raise
    return GeminiConnection(parameters, secrets, client, session)


@dataclass(eq=False)
class GeminiConnection(ModelConnection):
    """An open client of the service."""

    parameters: Gemini
    client: Any
    session: Any

    async def check(self, timeout_s: float) -> str:
        """Ask for the model's description, which costs nothing."""
        from google.genai import types

        async def send() -> Reply:
            config = types.GetModelConfig(http_options=_http_options(timeout_s))
            described = await self.client.aio.models.get(model=self.parameters.model, config=config)
            return Reply(f"the model exists: {self.secrets.hide(described.name or self.parameters.model)}")

        return (await self._send(send, "", timeout_s)).answer

    async def close(self) -> None:
        await self.client.aio.aclose()
        await self.session.close()

    async def answer(self, request: ModelRequest, prompt: Prompt, timeout_s: float) -> Reply:
        config = self.config(request, prompt, timeout_s)

        async def send() -> Reply:
            response = await self.client.aio.models.generate_content(
                model=self.parameters.model, contents=request.texts.user, config=config
            )
            return self.reply(response, request)

        return await self._send(send, request.text, timeout_s, self.parts(request, prompt), self._thinking(prompt))

    def reply(self, response: Any, request: ModelRequest) -> Reply:
        usage = _usage(response.usage_metadata)
        if (stored := _stored_answer(response, self.secrets.hide)) is None:
            problem = "the answer has no candidate"
            raise CallError(FailureKind.MALFORMED, problem, tokens=self.charges.of(usage, request.text))
        return self.reply_with(stored, usage, request)

    def _thinking(self, prompt: Prompt) -> int | None:
        return self.parameters.thinking if prompt.thinking is None else prompt.thinking

    def config(self, request: ModelRequest, prompt: Prompt, timeout_s: float) -> Any:
        from google.genai import types

        parts, thinking = self.parts(request, prompt), self._thinking(prompt)
        system, schema = self.system_and_schema(request, prompt, parts)
        return types.GenerateContentConfig(
            system_instruction=system or None,
            temperature=request.temperature if RequestPart.TEMPERATURE in parts else None,
            seed=request.seed if RequestPart.SEED in parts else None,
            max_output_tokens=request.max_output_tokens,
            thinking_config=None if thinking is None else types.ThinkingConfig(thinking_budget=thinking),
            response_mime_type="application/json" if parts & {RequestPart.SCHEMA, RequestPart.JSON} else None,
            response_schema=None if schema is None else types.Schema(**_schema(schema)),
            http_options=_http_options(timeout_s),
        )

    async def embed(self, texts: list[str], task_type: str | None, timeout_s: float) -> Reply:
        from google.genai import types

        config = types.EmbedContentConfig(
            output_dimensionality=self.parameters.dimensions,
            task_type=task_type,
            http_options=_http_options(timeout_s),
        )

        async def send() -> Reply:
            response = await self.client.aio.models.embed_content(
                model=self.parameters.model, contents=texts if len(texts) > 1 else texts[0], config=config
            )
            rows = response.embeddings or []
            statistics = [getattr(row, "statistics", None) for row in rows]
            if any(getattr(one, "truncated", False) for one in statistics):
                self.charges.warn("embeds only the beginning of some texts, which have more tokens than it takes")
            counts = [getattr(one, "token_count", None) for one in statistics]
            return self.embeddings([getattr(row, "values", None) for row in rows], counts, texts)

        return await self._send(send, "".join(texts), timeout_s)

    def embeddings(self, vectors: Sequence[Any], counts: Sequence[int | None], texts: list[str]) -> Reply:
        """The reply with some vectors; `counts` has the number of tokens of each text, if known."""
        known = [count for count in counts if count is not None]
        usage = ReportedUsage(sum(known) if len(known) == len(counts) else None)
        return self.reply_with_vectors(vectors, texts, usage, self.parameters.model)

    def translated(self, error: Exception) -> CallError:
        """A library error that is not about a call."""
        return translated(error, None, self.secrets.hide, Tokens())

    async def _send(
        self,
        send: Callable[[], Coroutine[Any, Any, Reply]],
        request: str,
        timeout_s: float,
        parts: frozenset[RequestPart] = frozenset(),
        thinking: int | None = None,
    ) -> Reply:
        """Send a request; if the reply cannot be read, the tokens of the texts in `request` are charged."""
        tokens = Tokens(estimated_tokens(request))
        try:
            async with time_limit(timeout_s):
                return await send()
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, f"no complete answer within {timeout_s:g} s") from None
        except CallError as error:
            problem = error if error.tokens.total else CallError(error.kind, error.message, tokens=tokens)
        except errors() as error:
            if getattr(error, "code", None) == 400 and self.refusals.learn(message_of(error), parts):
                raise CallError(FailureKind.INVALID, self.secrets.hide(message_of(error)), changes_form=True) from None
            problem = translated(error, thinking, self.secrets.hide, tokens)
            if isinstance(problem, Unreachable):
                raise problem from None
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            problem = CallError(FailureKind.MALFORMED, unreadable(error).message, tokens=tokens)
        # The library's errors contain requests with their headers: only the message is passed on, without secrets.
        raise CallError(
            problem.kind,
            self.secrets.hide(problem.message),
            retry_after_s=problem.retry_after_s,
            tokens=problem.tokens,
            stops_pool=problem.stops_pool,
        ) from None


def _http_options(timeout_s: float) -> Any:
    """Tell the service the time limit; the library's own would discard replies that arrived while a laptop slept."""
    from google.genai import types

    return types.HttpOptions(headers={"X-Server-Timeout": str(math.ceil(timeout_s))})


def _stored_answer(response: Any, hide: Callable[[str], str]) -> Stored | None:
    """The content of a response, if any; reasons are compared by value, since the library may not know new ones."""
    version = hide((response.model_version or "").removesuffix("@default"))  # Vertex AI's batch jobs add it
    feedback = response.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        return Stored(None, "prompt", hide(_value(feedback.block_reason)), version)
    if not response.candidates:
        return None
    candidate = response.candidates[0]
    reason = _value(candidate.finish_reason)
    parts = (candidate.content.parts if candidate.content is not None else None) or []
    text = hide("".join(part.text for part in parts if part.text and not part.thought))
    return Stored(text or None, hide(_FINISHES.get(reason, reason)), reason if reason in _BLOCKS else None, version)


def _value(reason: Any) -> str:
    return str(getattr(reason, "value", reason) or "unspecified")


def _usage(usage: Any) -> ReportedUsage:
    """The reported usage; thinking is charged as output, but counted separately."""
    if usage is None:
        return ReportedUsage()
    output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return ReportedUsage(usage.prompt_token_count, usage.cached_content_token_count, output)


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a JSON schema to the service's own form, which has an order of properties."""
    translated: dict[str, Any] = {"type": str(schema["type"]).upper()}
    names = {
        "enum": "enum",
        "minimum": "minimum",
        "maximum": "maximum",
        "minItems": "min_items",
        "maxItems": "max_items",
    }
    translated |= {ours: schema[name] for name, ours in names.items() if name in schema}
    if "items" in schema:
        translated["items"] = _schema(schema["items"])
    if "properties" in schema:
        translated["properties"] = {name: _schema(child) for name, child in schema["properties"].items()}
        translated["required"], translated["property_ordering"] = schema["required"], list(schema["properties"])
    return translated


def errors() -> tuple[type[Exception], ...]:
    from google.auth.exceptions import GoogleAuthError
    from google.genai.errors import APIError

    return APIError, aiohttp.ClientError, GoogleAuthError, json.JSONDecodeError, OSError


def _no_credentials() -> Any:
    """Credentials for a server without TLS, such as a stand-in, which must not get a Google token."""
    from google.oauth2.credentials import Credentials

    return Credentials(token="none")  # noqa: S106  it says that there is none
