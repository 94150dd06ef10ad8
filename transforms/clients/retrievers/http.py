"""The `http` retriever: any service that takes requests over HTTP and answers in JSON.

The experiment gives templates of the request, and JMESPath expressions that locate results, ids and scores in the
answer. `http_connection` makes the calls, `rankbeam.transforms.clients.http.answers` reads the answers.
"""

import json
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import pyarrow as pa
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
from pydantic_core import from_json

from rankbeam.transforms.clients import secrets
from rankbeam.transforms.clients.calls.services import Access, Connection, open_connection
from rankbeam.transforms.clients.http.answers import Reader, UnexpectedAnswer
from rankbeam.transforms.clients.http.template import (
    PLACEHOLDERS,
    REPLACED,
    URL,
    Path,
    RequestText,
    in_body,
    in_headers,
    in_parameters,
    in_url,
    texts_in,
)
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.clients.storage.json_paths import check_path, value_of
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, did_you_mean
from rankbeam.transforms.records.queries import Ranking

for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # below that they log URLs and headers, which may hold secrets

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_Path = Annotated[str, Field(min_length=1)]


class Http(RemoteRetriever):
    """The request, and the places of results, ids, scores and texts in the answer.

    In `url`, `params` and `body`, `{query}` and `{top_k}` are replaced by the query's text and the number of results,
    and `{vector}` in `params` and `body` by the query's embedding. There and in `headers`, `${env:NAME}` and
    `${secret:projects/P/secrets/S/versions/V}` are replaced by the values that they refer to.
    `transforms/clients/secrets.py` says which references are secrets; the values of the others are part of the keys of
    calls.

    Attributes:
        url: URL of the service; inserted values are percent-encoded.
        api_endpoint: address to call instead of the one in `url`, such as "http://127.0.0.1:9200".
        method: HTTP method.
        headers: HTTP headers, besides those that JSON requires.
        params: parameters added to the query string of `url`.
        body: JSON body. A string that consists of one placeholder is replaced by the value in its own type. By default
            POST and PUT send the query as "query" and the number of results as "top_k", and GET sends no body.
        embedding_model: name of the model under `services:` that embeds the query, as in `dense`; the body, or a
            parameter, holds the vector as `{vector}`.
        results: JMESPath to the list of results in the answer, best first.
        results_required: if true, an answer without the list is malformed. By default it is an empty ranking, because
            many services omit empty lists; this requires that `results` consists of names only and that the answer is
            an object without an error.
        id: JMESPath to the document id in a result; a number is converted to its digits.
        score: JMESPath to the score in a result.
        text: JMESPath to the text in a result.
        lower_is_better: if true, scores are distances.
        derive: if true, the service's ranking for a smaller `top_k` is the beginning of a longer one, so a smaller
            `top_k` costs no call. Set it to false if the service reranks the results that it returns.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # a refused value may be a secret

    url: str
    api_endpoint: str | None = None
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    params: dict[str, StrictStr | StrictInt | StrictBool] = Field(default_factory=dict)
    body: JsonValue = None
    embedding_model: Annotated[str, Field(min_length=1)] | None = None
    results: _Path
    id: _Path
    score: _Path | None = None
    text: _Path | None = None
    lower_is_better: bool = False
    derive: bool = True
    results_required: bool = False
    _environment: dict[str, str] | None = PrivateAttr(default=None)

    # The quota of an arbitrary service is not known; ten calls a second are a cautious default.
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=600, timeout_s=30)
    reading: ClassVar[frozenset[str]] = frozenset(
        {"results", "id", "score", "text", "lower_is_better", "results_required"}
    )
    added: ClassVar[frozenset[str]] = frozenset({"results_required", "embedding_model"})
    service: ClassVar[str | None] = "embedding_model"
    referring: ClassVar[frozenset[str]] = frozenset({"url", "headers", "params", "body"})

    @field_validator("url")
    @classmethod
    def _usable_url(cls, value: str) -> str:
        secrets.check_references(value)
        match = URL.fullmatch(value)
        if match is None or not _is_address(match["host"]):
            raise ValueError(
                "write http:// or https://, a host, and a path, without spaces and #; "
                "placeholders and references come after the host"
            )
        plain = secrets.REFERENCE.sub("", value)
        unknown = [name for name in re.findall(r"\{\w*\}", plain) if name not in PLACEHOLDERS]
        if unknown:
            raise ValueError(f"unknown placeholder {unknown[0]}; {did_you_mean(unknown[0], PLACEHOLDERS)}")
        _check(in_url(value))
        return value

    @field_validator("api_endpoint")
    @classmethod
    def _usable_endpoint(cls, value: str | None) -> str | None:
        match = URL.fullmatch(value or "http://none")
        if match is None or match["user"] is not None or match["rest"] not in (None, "/"):
            raise ValueError("write http:// or https:// and a host, with a port if needed, and nothing else")
        if not _is_address(match["host"]):
            raise ValueError("is not a host with a port")
        return None if value is None else value.rstrip("/")

    @field_validator("headers")
    @classmethod
    def _usable_headers(cls, value: dict[str, str]) -> dict[str, str]:
        _check(in_headers(value))
        for name, text in value.items():
            if not (_HEADER_NAME.fullmatch(name) and text.isascii() and text.isprintable()):
                raise ValueError(f"header {name!r} holds characters that headers may not have")
            if placeholder := next((word for word in REPLACED if word in text), None):
                raise ValueError(f"header {name!r} holds {placeholder}, which only url, params and body replace")
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

    @field_validator("results", "id", "score", "text", check_fields=False)
    @classmethod
    def _usable_path(cls, value: str | None) -> str | None:
        if value is not None:
            check_path(value)
        return value

    @model_validator(mode="after")
    def _holds_the_query(self) -> "Http":
        texts = (self.url, *map(str, self.params.values()), *(text for _, text in texts_in(self.template)))
        has_vector = self.service is not None and any("{vector}" in text for text in texts)
        if has_vector and self.embedding_model is None:
            raise ValueError("{vector} is the query's embedding; name the service that makes it: embedding_model: NAME")
        if self.embedding_model is not None and not has_vector:
            raise ValueError("embedding_model has no effect: neither params nor body contains {vector}")
        if not (has_vector or any("{query}" in text for text in texts)):
            raise ValueError("neither url nor params nor body contains {query}: every query would get the same answer")
        return self

    @property
    def template(self) -> JsonValue:
        """The body that is sent, with placeholders; None for no body."""
        if self.body is None and self.method != "GET":
            return {"query": "{query}", "top_k": "{top_k}"}
        return self.body

    def texts(self) -> Iterator[RequestText]:
        return chain(in_url(self.url), in_headers(self.headers), in_parameters(self.params), in_body(self.template))

    def secret_places(self) -> dict[str, str]:
        """The place of each reference to a secret, for messages."""
        return {
            reference: text.place
            for text in self.texts()
            for reference in text.references()
            if text.is_secret or secrets.is_secret(reference)
        }

    def public_texts(self) -> dict[str, RequestText]:
        """For each reference that is nowhere a secret, the first text that holds it."""
        hidden = self.secret_places()
        texts = [(reference, text) for text in self.texts() for reference in text.references()]
        return {reference: text for reference, text in reversed(texts) if reference not in hidden}

    @property
    def environment(self) -> dict[str, str]:
        """The values of references that are not secrets, from this machine or from the one that called `resolved`."""
        if self._environment is not None:
            return self._environment
        return {reference: secrets.variable(reference, text.place) for reference, text in self.public_texts().items()}

    def unset(self) -> Iterator[tuple[Path, str]]:
        """The references that are not secrets and have no value here: their places, and what is wrong."""
        for reference, text in self.public_texts().items():
            try:
                secrets.variable(reference, text.place)
            except InputError as error:
                yield text.path, error.problem

    def resolved(self, folder: str) -> "Http":  # noqa: ARG002  no parameter is a path
        """The same parameters, with the values of this machine's environment, which travel with them to workers."""
        resolved = self.model_copy()
        resolved._environment = self.environment
        return resolved

    def identity(self, kind: str) -> dict[str, Any]:
        values = {"environment": self.environment} if self.environment else {}
        return super().identity(kind) | values

    def scope(self) -> str:
        """The address of the service with its port, such as "https://search.example.com:443"."""
        parts = urlsplit(self.address())
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"

    def address(self) -> str:
        match = URL.fullmatch(self.url)
        assert match is not None, self.scope  # noqa: S101  the validator has checked it
        return self.api_endpoint or f"{match['scheme'].lower()}://{match['host']}"

    @property
    def access(self) -> Access:
        """The URL without values of references; where the path names the query, a 404 may be about that query alone."""
        match = URL.fullmatch(self.url)
        rest = (match["rest"] if match else None) or "/"
        shared = {FailureKind.PERMISSION} | (set() if "{query}" in rest.partition("?")[0] else {FailureKind.NOT_FOUND})
        return Access(f"{self.address()}{rest}", tuple(self.secret_places()), frozenset(shared))

    def is_prefix(self) -> bool:
        return self.derive

    async def connect(self) -> Connection:
        return await open_connection("rankbeam.transforms.clients.retrievers.http_connection", self)

    def read(self, answer: str) -> Ranking:
        try:
            value = value_of(answer)
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"the answer is not JSON: {error}") from error
        return self.ranking(value)

    def recall(self, answers: Sequence[bytes]) -> pa.ListArray:
        """As every retriever; where all answers are as expected, in half the time."""
        try:
            return self._reader.rankings(from_json(answer, cache_strings="keys") for answer in answers)
        except (UnexpectedAnswer, ValueError, TypeError):
            return super().recall(answers)

    def has_hidden_ids(self, answer: Any, original: Any) -> bool:
        """Return whether an id of an answer, from which secrets are removed, differs from the original's."""
        return self.ranking(answer).doc_ids != self.ranking(original).doc_ids

    def ranking(self, answer: Any) -> Ranking:
        return self._reader.ranking(answer)

    @property
    def _reader(self) -> Reader:
        return Reader(self.results, self.id, self.score, self.text, self.results_required)


def _check(texts: Iterator[RequestText]) -> None:
    for text in texts:
        text.check()


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(f"http://{text}")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # its message may quote a password
        return False
