"""Calls of the `gemini` model: one request, through google-genai on aiohttp, and what it says.

The library asks again by itself unless it is told to make one attempt: pacing and retries are the fan-out's.
"""

import asyncio
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.google.addresses import address_of
from rankbeam.transforms.clients.google.channels import default_credentials
from rankbeam.transforms.clients.models.attempts import Ask, Attempts
from rankbeam.transforms.clients.models.base import MAX_TOKENS, STOP, Stored, embedded_text, prompt_of
from rankbeam.transforms.clients.models.charges import Charges
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.gemini_errors import translated
from rankbeam.transforms.clients.models.keys import resolved
from rankbeam.transforms.clients.secrets import Secrets
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.reply import Reply, Tokens
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_FINISHES = {"STOP": STOP, "MAX_TOKENS": MAX_TOKENS}
_BLOCKS = {
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION", "MODEL_ARMOR", "JAILBREAK",
}  # fmt: skip
"""Reasons for which the same question is refused each time; after others it may be asked again."""


async def connect(parameters: Gemini) -> "GeminiConnection":
    """Find credentials and make a client.

    Raises:
        InputError: there are no credentials, or the key has no value here.
    """
    key, secrets = await resolved(parameters.api_key)
    genai = await asyncio.to_thread(_library)
    warnings.filterwarnings("ignore", message=".* is not a valid .*", module=r"google\.genai\..*")  # new reasons
    options: dict[str, Any] = {"retry_options": {"attempts": 1}}
    credentials = None
    if parameters.api_endpoint is not None:
        address = await address_of(parameters.api_endpoint)
        options["base_url"] = f"{'https' if address.secure else 'http'}://{address.target}"
        credentials = None if address.secure else _no_credentials()
    if not parameters.on_vertex:
        client = genai.Client(vertexai=False, api_key=key, http_options=options)
    else:
        credentials = credentials or await asyncio.to_thread(default_credentials, _SCOPES)
        where = {"project": parameters.project, "location": parameters.location}
        client = genai.Client(vertexai=True, credentials=credentials, http_options=options, **where)
    return GeminiConnection(parameters, client, secrets, Charges(parameters.scope()))


@dataclass(frozen=True)
class GeminiConnection:
    """An open client of the service.

    Attributes:
        parameters: what is called.
        client: the library's.
        secrets: that no message may hold.
        charges: count the tokens of calls.
        attempts: what was wrong with earlier answers.
    """

    parameters: Gemini
    client: Any
    secrets: Secrets
    charges: Charges
    attempts: Attempts = field(default_factory=Attempts)

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
                    return await self._embedding(embedded_text(prompt), timeout_s)
                reply = await self._answer(self.attempts.ask(payload, prompt, attempt), prompt, timeout_s)
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, f"no whole answer within {timeout_s:g} s") from None
        except _errors() as error:
            problem = translated(error, self._thinking(prompt))
            # The library's errors hold requests with their headers: only the message goes on, without secrets.
            said, wait_s = self.secrets.hide(problem.message), problem.retry_after_s
            raise CallError(problem.kind, said, retry_after_s=wait_s, stops_pool=problem.stops_pool) from None
        self.attempts.answered(payload, prompt, reply.answer)
        return reply

    async def close(self) -> None:
        """Close all connections."""
        await self.client.aio.aclose()

    def _thinking(self, prompt: Prompt) -> int | None:
        return self.parameters.thinking if prompt.thinking is None else prompt.thinking

    async def _answer(self, ask: Ask, prompt: Prompt, timeout_s: float) -> Reply:
        from google.genai import types

        budget = self._thinking(prompt)
        config = types.GenerateContentConfig(
            system_instruction=ask.texts.system or None,
            temperature=ask.temperature,
            seed=ask.seed,
            max_output_tokens=ask.max_output_tokens,
            thinking_config=None if budget is None else types.ThinkingConfig(thinking_budget=budget),
            response_mime_type=None if prompt.schema is None else "application/json",
            response_schema=None if prompt.schema is None else types.Schema(**_schema(prompt.schema)),
            http_options=types.HttpOptions(timeout=round(timeout_s * 1000)),
        )
        response = await self.client.aio.models.generate_content(
            model=self.parameters.model, contents=ask.texts.user, config=config
        )
        stored, asked = _stored(response), ask.texts.system + ask.texts.user
        return Reply(stored.written(), self.charges.of(_tokens(response.usage_metadata), asked, stored.text or ""))

    async def _embedding(self, text: str, timeout_s: float) -> Reply:
        from google.genai import types

        options = types.HttpOptions(timeout=round(timeout_s * 1000))
        config = types.EmbedContentConfig(output_dimensionality=self.parameters.dimensions, http_options=options)
        response = await self.client.aio.models.embed_content(model=self.parameters.model, contents=text, config=config)
        found = response.embeddings[0] if response.embeddings else None
        if found is None or not found.values:
            raise CallError(FailureKind.MALFORMED, "the answer holds no embedding")
        used = getattr(found.statistics, "token_count", None)
        tokens = self.charges.of(Tokens(input=int(used or 0)), text)
        return Reply(Stored(None, STOP, None, self.parameters.model, tuple(found.values)).written(), tokens)


def _stored(response: Any) -> Stored:
    """What a response holds; a reason is compared by its value, since new ones come."""
    version = response.model_version or ""
    feedback = response.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        return Stored(None, "prompt", _value(feedback.block_reason), version)
    if not response.candidates:
        raise CallError(FailureKind.MALFORMED, "the answer holds no candidate", tokens=_tokens(response.usage_metadata))
    candidate = response.candidates[0]
    reason = _value(candidate.finish_reason)
    parts = (candidate.content.parts if candidate.content is not None else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return Stored(text or None, _FINISHES.get(reason, reason), reason if reason in _BLOCKS else None, version)


def _value(reason: Any) -> str:
    return str(getattr(reason, "value", reason) or "unspecified")


def _tokens(usage: Any) -> Tokens:
    """Thinking is paid as output, and counted apart from the answer."""
    if usage is None:
        return Tokens()
    output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return Tokens(usage.prompt_token_count or 0, usage.cached_content_token_count or 0, output)


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema in the service's own form, which knows the order of properties."""
    found: dict[str, Any] = {"type": str(schema["type"]).upper()}
    names = {
        "enum": "enum",
        "minimum": "minimum",
        "maximum": "maximum",
        "minItems": "min_items",
        "maxItems": "max_items",
    }
    found |= {ours: schema[name] for name, ours in names.items() if name in schema}
    if "items" in schema:
        found["items"] = _schema(schema["items"])
    if "properties" in schema:
        found["properties"] = {name: _schema(child) for name, child in schema["properties"].items()}
        found["required"], found["property_ordering"] = schema["required"], list(schema["properties"])
    return found


def _library() -> Any:
    from google import genai  # takes a second to import

    return genai


def _errors() -> tuple[type[Exception], ...]:
    import aiohttp
    from google.auth.exceptions import GoogleAuthError
    from google.genai.errors import APIError

    return APIError, aiohttp.ClientError, GoogleAuthError, json.JSONDecodeError, OSError


def _no_credentials() -> Any:
    """For a server without TLS, such as a stand-in: it gets no token of Google's."""
    from google.oauth2.credentials import Credentials

    return Credentials(token="none")  # noqa: S106  it says that there is none
