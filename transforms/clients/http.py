"""The `http` retriever: any service that is asked over HTTP and answers in JSON.

The experiment says what is sent, as templates, and where results, ids and scores stand in the answer, as JMESPath.
How a call is made stands in `transforms.clients.http_calls`.
"""

import json
import logging
import math
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import parse_qsl, urlsplit

import jmespath
from pydantic import ConfigDict, Field, JsonValue, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from transforms.clients import secrets
from transforms.clients.remote import RemoteRetriever
from transforms.clients.services import Connection
from transforms.records.calls import Quota
from transforms.records.errors import CallError
from transforms.records.evaluation import Ranking
from transforms.records.failures import FailureKind
from transforms.records.suggestions import did_you_mean

for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # they log URLs and headers, secrets and all

PLACEHOLDERS = ("{query}", "{top_k}", "{distance}")
URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>(?:\$\{[^}]*\}|[^/?#@\s])*)@)?(?P<host>[^/?#@\s{}$]+)(?P<rest>[/?][^#\s]*)?",
    re.IGNORECASE,
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_Path = Annotated[str, Field(min_length=1)]


class Http(RemoteRetriever):
    """What is sent, and where things stand in the answer.

    In `url`, `params` and `body`, `{query}` and `{top_k}` stand for the query's text and the number of results wanted.
    In `headers` too, `${env:NAME}` and `${secret:projects/P/secrets/S/versions/V}` stand for secrets.

    Attributes:
        url: of the search; what is put into it is percent-encoded.
        api_endpoint: another address to send it to, such as "http://127.0.0.1:9200", instead of the one in `url`.
        method: of the request.
        headers: of the request, besides those that JSON needs.
        params: added to the query string of `url`.
        body: JSON. A text that is nothing but a placeholder becomes the value with its type. By default a POST or PUT
            sends the query as "query" and the number of results as "top_k", and a GET sends no body.
        results: where the list of results stands in the answer, best first.
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

    # Nobody knows the quota of a foreign service: ten calls a second disturb few.
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=600, timeout_s=30)
    reading: ClassVar[frozenset[str]] = frozenset({"results", "id", "score", "text", "lower_is_better"})

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
        if found["user"] is not None:
            secrets.refuse_literal("user and password in the url", found["user"])
        plain = secrets.REFERENCE.sub("", value)
        unknown = [each for each in re.findall(r"\{\w*\}", plain) if each not in PLACEHOLDERS]
        if unknown:
            raise ValueError(f"unknown placeholder {unknown[0]}; {did_you_mean(unknown[0], PLACEHOLDERS)}")
        for name, text in parse_qsl(urlsplit(value).query):
            _check_parameter(name, text)
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
        for name, text in value.items():
            secrets.check_references(text)
            if secrets.names_secret_header(name):
                secrets.refuse_literal(f"header {name}", text)
            if not (_HEADER_NAME.fullmatch(name) and text.isascii() and text.isprintable()):
                raise ValueError(f"header {name!r} holds characters that no header may have")
        return value

    @field_validator("params")
    @classmethod
    def _usable_params(cls, value: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name, given in value.items():
            if isinstance(given, str):
                secrets.check_references(given)
                _check_parameter(name, given)
        return value

    @field_validator("body")
    @classmethod
    def _usable_body(cls, value: JsonValue) -> JsonValue:
        for name, text in texts_in(value):
            secrets.check_references(text)
            if secrets.names_secret_key(name):
                secrets.refuse_literal(f"{name} in the body", text)
        try:
            json.dumps(value, allow_nan=False)
        except ValueError as error:
            raise ValueError("holds a number that JSON cannot write") from error
        return value

    @field_validator("results", "id", "score", "text")
    @classmethod
    def _usable_path(cls, value: str | None) -> str | None:
        try:
            _ = value and _compiled(value)
            return value
        except jmespath.exceptions.JMESPathError as error:
            reason = str(error).splitlines()[0].rstrip(":")
            hint = 'names with other characters than letters, digits and _ need double quotes: "my-id"'
            raise ValueError(f"{value!r} is no JMESPath: {reason}; {hint}") from error

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

    def places(self) -> dict[str, str]:
        """By reference to a secret, where it stands, for people."""
        texts = [
            ("the url", self.url),
            *((f"header {name}", text) for name, text in self.headers.items()),
            *((f"parameter {name}", str(value)) for name, value in self.params.items()),
            *(("the body", text) for _, text in texts_in(self.template)),
        ]
        return {reference: place for place, text in texts for reference in secrets.REFERENCE.findall(text)}

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
        from transforms.clients.http_calls import connect  # httpx is needed only where calls are made

        return await connect(self)

    def read(self, answer: str) -> Ranking:
        """The ranking in an answer."""
        try:
            return self.ranking(json.loads(answer))
        except json.JSONDecodeError as error:
            raise _malformed(f"the answer is not JSON: {error}") from error

    def ranking(self, answer: Any) -> Ranking:
        """As `read`, of an answer that is parsed."""
        results = _found(self.results, answer)
        if not isinstance(results, list):
            raise _malformed(f"results: {self.results} is no list, found {_shown(results)}")
        doc_ids = tuple(self._doc_id(result) for result in results)
        scores = tuple(self._score(result) for result in results)
        return Ranking(doc_ids, scores, tuple(self._text(result) for result in results) if self.text else ())

    def _doc_id(self, result: Any) -> str:
        value = _found(self.id, result)
        if isinstance(value, str) and value:
            return value
        if _is_number(value):
            return str(value)
        raise _malformed(f"id: {self.id} is no text and no number, found {_shown(value)} in {_shown(result)}")

    def _score(self, result: Any) -> float:
        value = None if self.score is None else _found(self.score, result)
        if value is None:
            return math.nan
        if not _is_number(value):
            raise _malformed(f"score: {self.score} is no number, found {_shown(value)} in {_shown(result)}")
        return float(value)

    def _text(self, result: Any) -> str:
        value = None if self.text is None else _found(self.text, result)
        if value is None or isinstance(value, str):
            return value or ""
        raise _malformed(f"text: {self.text} is no text, found {_shown(value)}; JMESPath's join(' ', …) makes one")


def texts_in(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON value, and the key it stands under.

    >>> list(texts_in({"a": ["x", 1], "b": {"c": "y"}}))
    [('a', 'x'), ('c', 'y')]
    """
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts_in(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each, name)


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(f"http://{text}")
        return bool(found.hostname) and found.port != 0
    except ValueError:  # its message may quote a password
        return False


def _check_parameter(name: str, text: str) -> None:
    if secrets.names_secret_parameter(name) and text not in PLACEHOLDERS:
        secrets.refuse_literal(f"parameter {name}", text)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # not so for NaN


@cache
def _compiled(path: str) -> Any:
    return jmespath.compile(path)


def _found(path: str, value: Any) -> Any:
    try:
        return _compiled(path).search(value)
    except jmespath.exceptions.JMESPathError as error:
        raise _malformed(f"{path} does not fit the answer: {str(error).splitlines()[0]}") from error


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _malformed(message: str) -> CallError:
    return CallError(FailureKind.MALFORMED, message)
