"""The `http` retriever: any service that is asked over HTTP and answers in JSON.

The experiment says what is sent, as templates, and where results, ids and scores stand in the answer, as JMESPath.
How a call is made stands in `rankbeam.transforms.clients.http.connection`, how an answer is read in `http_answers`.
"""

import json
import logging
import re
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from rankbeam.transforms.clients import secrets
from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.http.answers import Reader, check_path
from rankbeam.transforms.clients.http.template import (
    PLACEHOLDERS,
    URL,
    Path,
    Text,
    in_body,
    in_headers,
    in_parameters,
    in_url,
    texts_in,
)
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.clients.storage.json_values import value_of
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.suggestions import did_you_mean

for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # they log URLs and headers, secrets and all

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_Path = Annotated[str, Field(min_length=1)]


class Http(RemoteRetriever):
    """What is sent, and where things stand in the answer.

    In `url`, `params` and `body`, `{query}` and `{top_k}` stand for the query's text and the number of results wanted.
    In `headers` too, `${env:NAME}` and `${secret:projects/P/secrets/S/versions/V}` stand for values from elsewhere.
    `transforms/clients/secrets.py` says which of them are secrets; the values of others are part of the calls' keys.

    Attributes:
        url: of the search; what is put into it is percent-encoded.
        api_endpoint: another address to send it to, such as "http://127.0.0.1:9200", instead of the one in `url`.
        method: of the request.
        headers: of the request, besides those that JSON needs.
        params: added to the query string of `url`.
        body: JSON. A text that is nothing but a placeholder becomes the value with its type. By default a POST or PUT
            sends the query as "query" and the number of results as "top_k", and a GET sends no body.
        results: where the list of results stands in the answer, best first.
        results_required: whether an answer without that list is malformed. By default it is an empty ranking, as
            services leave empty lists out, where `results` is names alone and the answer is an object without error.
        id: where a document's id stands in a result; a number counts as its digits.
        score: where the score stands in a result.
        text: where what the document says stands in a result.
        lower_is_better: the scores are distances.
        derive: whether fewer results are the first of more. Say false where the service reranks what it returns.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # what is refused may be a secret

    url: str
    api_endpoint: str | None = None
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    params: dict[str, StrictStr | StrictInt | StrictBool] = Field(default_factory=dict)
    body: JsonValue = None
    results: _Path
    id: _Path
    score: _Path | None = None
    text: _Path | None = None
    lower_is_better: bool = False
    derive: bool = True
    results_required: bool = False
    _environment: dict[str, str] | None = PrivateAttr(default=None)

    # Nobody knows the quota of a foreign service: ten calls a second disturb few.
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=600, timeout_s=30)
    reading: ClassVar[frozenset[str]] = frozenset(
        {"results", "id", "score", "text", "lower_is_better", "results_required"}
    )
    added: ClassVar[frozenset[str]] = frozenset({"results_required"})

    @field_validator("url")
    @classmethod
    def _usable_url(cls, value: str) -> str:
        secrets.check_references(value)
        found = URL.fullmatch(value)
        if found is None or not _is_address(found["host"]):
            raise ValueError(
                "write http:// or https://, a host, and what follows it, without spaces and #; "
                "placeholders and references stand behind the host"
            )
        plain = secrets.REFERENCE.sub("", value)
        unknown = [each for each in re.findall(r"\{\w*\}", plain) if each not in PLACEHOLDERS]
        if unknown:
            raise ValueError(f"unknown placeholder {unknown[0]}; {did_you_mean(unknown[0], PLACEHOLDERS)}")
        _check(in_url(value))
        return value

    @field_validator("api_endpoint")
    @classmethod
    def _usable_endpoint(cls, value: str | None) -> str | None:
        found = URL.fullmatch(value or "http://none")
        if found is None or found["user"] is not None or found["rest"] not in (None, "/"):
            raise ValueError("write http:// or https:// and a host, with a port if need be, and nothing else")
        if not _is_address(found["host"]):
            raise ValueError("is no host with a port")
        return None if value is None else value.rstrip("/")

    @field_validator("headers")
    @classmethod
    def _usable_headers(cls, value: dict[str, str]) -> dict[str, str]:
        _check(in_headers(value))
        for name, text in value.items():
            if not (_HEADER_NAME.fullmatch(name) and text.isascii() and text.isprintable()):
                raise ValueError(f"header {name!r} holds characters that no header may have")
        return value

    @field_validator("params")
    @classmethod
    def _usable_params(cls, value: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        _check(in_parameters(value))
        return value

    @field_validator("body")
    @classmethod
    def _usable_body(cls, value: JsonValue) -> JsonValue:
        _check(in_body(value))
        try:
            json.dumps(value, allow_nan=False)
        except ValueError as error:
            raise ValueError("holds a number that JSON cannot write") from error
        return value

    @field_validator("results", "id", "score", "text")
    @classmethod
    def _usable_path(cls, value: str | None) -> str | None:
        if value is not None:
            check_path(value)
        return value

    @model_validator(mode="after")
    def _asks_the_query(self) -> "Http":
        texts = (self.url, *map(str, self.params.values()), *(text for _, text in texts_in(self.template)))
        if not any("{query}" in text for text in texts):
            raise ValueError("neither url nor params nor body holds {query}: every query would get the same answer")
        return self

    @property
    def template(self) -> JsonValue:
        """What is sent as body, with placeholders; None for nothing."""
        if self.body is None and self.method != "GET":
            return {"query": "{query}", "top_k": "{top_k}"}
        return self.body

    def texts(self) -> Iterator[Text]:
        """All that is sent."""
        return chain(in_url(self.url), in_headers(self.headers), in_parameters(self.params), in_body(self.template))

    def secret_places(self) -> dict[str, str]:
        """By reference to a secret, where it stands, for people."""
        return {
            reference: text.place
            for text in self.texts()
            for reference in text.references()
            if text.is_secret or secrets.is_secret(reference)
        }

    def public_texts(self) -> dict[str, Text]:
        """By reference that is no secret's anywhere, the first text with it."""
        hidden = self.secret_places()
        texts = [(reference, text) for text in self.texts() for reference in text.references()]
        return {reference: text for reference, text in reversed(texts) if reference not in hidden}

    @property
    def environment(self) -> dict[str, str]:
        """By reference that is no secret's, its value: of this machine, or of the one where it was `resolved`.

        Raises:
            InputError: one has none here.
        """
        if self._environment is not None:
            return self._environment
        return {reference: secrets.variable(reference, text.place) for reference, text in self.public_texts().items()}

    def unset(self) -> Iterator[tuple[Path, str]]:
        """The references that are no secrets' and have no value here."""
        for reference, text in self.public_texts().items():
            try:
                secrets.variable(reference, text.place)
            except InputError as error:
                yield text.path, error.problem

    def resolved(self, folder: str) -> "Http":  # noqa: ARG002  it names no file
        """The same parameters, which take the values of this machine's environment to whatever machine they go."""
        resolved = self.model_copy()
        resolved._environment = self.environment
        return resolved

    def identity(self, kind: str) -> dict[str, Any]:
        """As of all, with the values of references that are no secrets'."""
        values = {"environment": self.environment} if self.environment else {}
        return super().identity(kind) | values

    def scope(self) -> str:
        """The address that is called, such as "https://search.example.com:443"."""
        found = urlsplit(self.address())
        host = f"[{found.hostname}]" if ":" in (found.hostname or "") else found.hostname
        return f"{found.scheme}://{host}:{found.port or (443 if found.scheme == 'https' else 80)}"

    def address(self) -> str:
        """Scheme, host and port that are called."""
        found = URL.fullmatch(self.url)
        assert found is not None, self.scope  # noqa: S101  the validator has seen to it
        return self.api_endpoint or f"{found['scheme'].lower()}://{found['host']}"

    def is_prefix(self) -> bool:
        """As the experiment says."""
        return self.derive

    async def connect(self) -> Connection:
        """Find the secrets and make a client."""
        from rankbeam.transforms.clients.http.connection import connect  # httpx is needed only where calls are made

        return await connect(self)

    def read(self, answer: str) -> Ranking:
        """The ranking in an answer."""
        try:
            value = value_of(answer)
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"the answer is not JSON: {error}") from error
        return self.ranking(value)

    def ranking(self, answer: Any) -> Ranking:
        """As `read`, of an answer that is parsed."""
        return Reader(self.results, self.id, self.score, self.text, self.results_required).ranking(answer)


def _check(texts: Iterator[Text]) -> None:
    for text in texts:
        text.check()


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(f"http://{text}")
        return bool(found.hostname) and found.port != 0
    except ValueError:  # its message may quote a password
        return False
