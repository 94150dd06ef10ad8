"""The `openai` model: any service that is compatible with OpenAI's API, such as vLLM, Ollama, llama.cpp or a gateway.

`openai_connection` makes the calls.
"""

import re
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from rankbeam.transforms.clients.calls.services import Connection, open_connection
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.clients.secrets import names_secret

_OWN_FIELDS = {
    "model", "messages", "input", "temperature", "seed", "max_tokens", "max_completion_tokens", "response_format",
    "reasoning_effort", "dimensions", "encoding_format", "stream", "n",
}  # fmt: skip
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")


def _checked_url(value: str) -> str:
    if _URL.fullmatch(value) is None or not urlsplit(value).hostname:
        raise ValueError("write http:// or https://, a host, and the path before /chat/completions, such as /v1")
    return value.rstrip("/")


def _checked_body(value: dict[str, Any]) -> dict[str, Any]:
    for name in value:
        if name in _OWN_FIELDS:
            raise ValueError(f"extra_body may not have {name}, which rankbeam sets itself")
        if names_secret(name):
            raise ValueError(f"extra_body may not have {name}: the experiment's text is written to the runs table")
    return value


class OpenAi(RemoteModel):
    """A model behind an endpoint that is compatible with OpenAI's, for text or for embeddings.

    Attributes:
        base_url: address of the API without `/chat/completions` or `/embeddings`.
        model: the service's name for the model.
        api_key: API key as `${env:NAME}` or `${secret:…}`; omit it if the service needs none.
        limit_name: request field that limits output tokens; newer OpenAI models require `max_completion_tokens`.
        dimensions: embedding dimensions; by default the model's own.
        reasoning_effort: reasoning effort in the service's own terms, such as "low".
        schema_in: place of a reply's JSON schema: the `request`, or the `prompt` for services that ignore it elsewhere.
        key_header: header with the key; `Authorization` sends it as a bearer token, other headers unchanged.
        extra_body: additional fields for every request, such as `{top_p: 0.9}`.
    """

    base_url: Annotated[str, AfterValidator(_checked_url)]
    model: Annotated[str, Field(min_length=1)]
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    dimensions: Annotated[int, Field(ge=1, le=65_536)] | None = None
    reasoning_effort: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")] | None = None
    extra_body: Annotated[dict[str, Any], AfterValidator(_checked_body)] = {}  # noqa: RUF012  pydantic copies it
    schema_in: Literal["request", "prompt"] = "request"
    key_header: Annotated[str, Field(pattern=r"^[A-Za-z-]{1,40}$")] = "Authorization"

    # Elsewhere, the same name may be another model, or a quantized one: base_url is part of the identity.
    operational: ClassVar[frozenset[str]] = RemoteModel.operational | {"limit_name", "key_header"}
    jobs_module: ClassVar[str | None] = "rankbeam.transforms.clients.models.batches.openai_jobs"
    added: ClassVar[frozenset[str]] = RemoteModel.added | {"reasoning_effort", "extra_body", "schema_in"}

    @property
    def most_texts(self) -> int:
        """The most texts that one request embeds; some servers take no more than 32."""
        return self.texts_per_request or 32

    @property
    def url(self) -> str:
        return self.base_url

    def scope(self) -> str:
        return f"{self.base_url} {self.model}"

    @property
    def embeds_in_batches(self) -> bool:
        return True

    async def connect(self) -> Connection:
        return await open_connection("rankbeam.transforms.clients.models.openai_connection", self)
