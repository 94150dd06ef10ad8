"""The `openai` model: any service that is compatible with OpenAI's API, such as vLLM, Ollama, llama.cpp or a gateway.

How a call is made stands in `openai_connection`.
"""

import re
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field

from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.models.keys import ApiKey, places_of
from rankbeam.transforms.records.calls.quota import Quota

_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")


def _checked_url(value: str) -> str:
    if _URL.fullmatch(value) is None or not urlsplit(value).hostname:
        raise ValueError("write http:// or https://, a host, and the path before /chat/completions, such as /v1")
    return value.rstrip("/")


class OpenAi(ModelParameters):
    """A model behind an endpoint that is compatible with OpenAI's, for text or for embeddings.

    Attributes:
        base_url: what stands before `/chat/completions` and `/embeddings`.
        model: as the service calls it.
        api_key: as `${env:NAME}` or `${secret:…}`; None where the service wants none.
        limit_name: how the request names the limit of tokens; newer models of OpenAI's want `max_completion_tokens`.
        dimensions: of embeddings; None for as many as the model has.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # what is refused may be a secret

    base_url: Annotated[str, AfterValidator(_checked_url)]
    model: Annotated[str, Field(min_length=1)]
    api_key: ApiKey | None = None
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    dimensions: Annotated[int, Field(ge=1, le=65_536)] | None = None

    # The same name may be another model elsewhere, or the same one with rounded weights: base_url is decisive.
    operational: ClassVar[frozenset[str]] = ModelParameters.operational | {"limit_name"}
    referring: ClassVar[frozenset[str]] = frozenset({"api_key"})
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=300, timeout_s=120.0)

    def secret_places(self) -> dict[str, str]:
        """The references in the key."""
        return places_of(self.api_key)

    def scope(self) -> str:
        """The address and the model."""
        return f"{self.base_url} {self.model}"

    async def connect(self) -> Connection:
        """Find the key and make a client."""
        from rankbeam.transforms.clients.models.openai_connection import connect

        return await connect(self)
