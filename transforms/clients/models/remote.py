"""Models behind a network: their keys, temperatures, addresses and batch jobs."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.models.base import PrefixedModel, prompt_of
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.secrets import (
    LEAST_SECRET,
    REFERENCE,
    Secrets,
    check_references,
    refuse_literal,
    resolve,
)
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt


def _validate_key(value: str) -> str:
    check_references(value)
    refuse_literal("api_key", value)
    return value


ApiKey = Annotated[str, AfterValidator(_validate_key)]
"""A key, as `${env:NAME}` or `${secret:…}`: the experiment's text is written to the runs table."""


def places_of(api_key: str | None) -> dict[str, str]:
    """The references in a key, each with the name of its setting for messages."""
    return {match[0]: "api_key" for match in REFERENCE.finditer(api_key or "")}


async def resolve_key(api_key: str | None) -> tuple[str | None, Secrets]:
    """The value of a key on this machine, and secrets to hide, without short ones: `EMPTY` may occur in answers."""
    if api_key is None:
        return None, Secrets({})
    values = (await resolve(places_of(api_key))).values
    hidden = {name: value for name, value in values.items() if len(value) >= LEAST_SECRET}
    return REFERENCE.sub(lambda match: values[match[0]], api_key), Secrets(hidden)


class Network(Enum):
    """Kind of network between this machine and an address."""

    MACHINE = "this machine"
    PRIVATE = "a private network"
    PUBLIC = "any network"


def network_of(host: str) -> Network:
    """The network of a host; private addresses, and names without a dot, are on private networks.

    >>> [network_of(host).name for host in ("localhost", "10.0.0.1", "vllm", "llm.example.com", "8.8.8.8", "134744072")]
    ['MACHINE', 'PRIVATE', 'PRIVATE', 'PUBLIC', 'PUBLIC', 'PUBLIC']
    """
    name = host.rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        if name == "localhost" or name.endswith(".localhost"):
            return Network.MACHINE
        is_number = name[:1].isdigit() and "." not in name  # an IP address in another notation
        return Network.PUBLIC if "." in name or is_number else Network.PRIVATE
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback:
        return Network.MACHINE
    return Network.PUBLIC if address.is_global else Network.PRIVATE


ITEM = "item"  # the field in which an answer repeats the item that identifies its request

_DURATION = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)([mhd])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}


def _checked_duration(value: str) -> str:
    if (match := _DURATION.fullmatch(value)) is None or not float(match[1]):
        raise ValueError("write a number of minutes, hours or days, such as 90m, 26h or 2d")
    return value


class Batch(Parameters):
    """Settings of batch jobs.

    Attributes:
        min_calls: minimum number of calls of a step for a job; steps with fewer calls are made online.
        deadline: longest wait for a job, such as 90m, 26h or 2d; after it the job is cancelled, and the answers that it
            already has are used.
        otherwise: treatment of calls that a job did not answer: "online" makes them one by one, at full price; "fail"
            counts them as failed.
        answers: if true, jobs also make calls whose answers have no schema (answers of `generate`, embeddings). Only
            the service's own key then shows which request an answer belongs to.
        staging: folder in Cloud Storage for the files of jobs, such as gs://BUCKET/FOLDER; only for Vertex AI, which
            requires it.
    """

    min_calls: Annotated[int, Field(ge=1)] = 200
    deadline: Annotated[str, AfterValidator(_checked_duration)] = "26h"
    otherwise: Literal["online", "fail"] = "online"
    answers: bool = False
    staging: Annotated[str, Field(pattern=r"^gs://[^/]+(/.*)?$")] | None = None

    @property
    def deadline_s(self) -> float:
        """The longest wait, in seconds.

        >>> Batch(deadline="90m").deadline_s, Batch().deadline_s
        (5400.0, 93600.0)
        """
        match = _DURATION.fullmatch(self.deadline)
        assert match is not None  # noqa: S101  it was validated
        return float(match[1]) * _SECONDS[match[2]]


def can_prove(prompt: Prompt) -> bool:
    """Return whether an answer can repeat its request's item, because it is an object with fields."""
    properties = (prompt.schema or {}).get("properties")
    return isinstance(properties, Mapping) and ITEM not in properties


def with_item(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the field for the item to a schema; the result is the same for all requests of a step.

    >>> with_item({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})["required"]
    ['item', 'a']
    """
    properties = {ITEM: {"type": "string"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": [ITEM, *schema.get("required", ())]}


class RemoteModel(PrefixedModel):
    """The parameters of models that are called over a network; a subclass adds its own.

    Attributes:
        api_key: API key as `${env:NAME}` or `${secret:…}`.
        allow_http: if true, send the key unencrypted to an address outside private networks.
        temperature: sampling temperature that overrides `generate:` and the judge's prompts; some models accept only 1.
        texts_per_request: maximum number of texts in one embedding request; the default depends on the type of service.
        batch: make calls in the service's batch jobs, at half price and within a day.
        jobs_module: module whose `connect` reaches the service's batch jobs; None if it has none.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # the invalid value may be a secret

    api_key: ApiKey | None = None
    allow_http: bool = False
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    texts_per_request: Annotated[int, Field(ge=1, le=2048)] | None = None
    batch: Batch | None = None

    operational: ClassVar[frozenset[str]] = PrefixedModel.operational | {"allow_http", "texts_per_request", "batch"}
    added: ClassVar[frozenset[str]] = PrefixedModel.added | {"temperature"}
    referring: ClassVar[frozenset[str]] = frozenset({"api_key"})
    jobs_module: ClassVar[str | None] = None

    @property
    def embeds_in_batches(self) -> bool:
        """True if the service's batch jobs embed texts."""
        return False

    def unbatchable(self) -> str | None:
        """The reason why the service cannot use batch jobs; None if it can."""
        if self.jobs_module is None:
            return "rankbeam makes no batch jobs of this service; take it out"
        is_staged = self.batch is not None and self.batch.staging is not None
        return "staging is for Gemini on Vertex AI only; take it out" if is_staged else None

    def waits(self, payload: str) -> bool:
        """Return whether a call may wait for a batch job: its answer can prove which call it is for, or need not."""
        if self.batch is None:
            return False
        prompt = prompt_of(payload)
        may_embed = prompt.step != EMBED or self.embeds_in_batches
        return (self.batch.answers and may_embed) or can_prove(prompt)

    @property
    def most_texts(self) -> int:
        return self.texts_per_request or 1

    @property
    def url(self) -> str:
        """The service's address, with its scheme if that is configured; "" for the public address."""
        return ""

    @property
    def access(self) -> Access:
        """The address and model that calls go to, and the references in the key."""
        return Access(f"{self.url or 'the service'}, model {self.model!r}", tuple(self.secret_places()))

    @model_validator(mode="after")
    def _no_key_in_the_open(self) -> "RemoteModel":
        if self._plain_network() is Network.PUBLIC:
            raise ValueError(
                f"the key would go to {urlsplit(self.url).netloc} without encryption; write https://, or "
                "allow_http: true if nobody else can read that network"
            )
        return self

    def sampled(self, prompt: Prompt) -> Prompt:
        """The prompt with the service's temperature, if that is configured.

        >>> class Any(RemoteModel): ...
        >>> prompt = Prompt("answer", {}, temperature=0.5)
        >>> Any().sampled(prompt).temperature, Any(temperature=1.0).sampled(prompt).temperature
        (0.5, 1.0)
        """
        return prompt if self.temperature is None else replace(prompt, temperature=self.temperature)

    def warnings(self) -> list[str]:
        if self._plain_network() is not Network.PRIVATE:
            return []
        place = urlsplit(self.url).netloc
        advice = "write https://, or allow_http: true if nobody else can read that network"
        return [f"the key of {self.model} goes to {place} without encryption: {advice}"]

    def secret_places(self) -> dict[str, str]:
        return places_of(self.api_key)

    def _plain_network(self) -> Network | None:
        """The network that the key would cross unencrypted; None if it is not sent unencrypted, or allowed to be."""
        parts = urlsplit(self.url)
        if self.api_key is None or self.allow_http or parts.scheme != "http":
            return None
        return network_of(parts.hostname or "")
