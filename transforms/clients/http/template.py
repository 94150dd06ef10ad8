"""The texts in a request of the `http` retriever, their places, and which of them are secrets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from pydantic import JsonValue

from rankbeam.transforms.clients import secrets
from rankbeam.transforms.clients.secrets import holds_secret, names_secret, names_secret_parameter

PLACEHOLDERS = ("{query}", "{top_k}", "{distance}")
REPLACED = (*PLACEHOLDERS, "{vector}")
URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>(?:\$\{[^}]*\}|[^/?#@\s])*)@)?(?P<host>[^/?#@\s{}$]+)(?P<rest>[/?][^#\s]*)?",
    re.IGNORECASE,
)

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class RequestText:
    """One text of a request."""

    place: str
    path: Path
    value: str
    is_secret: bool

    def references(self) -> list[str]:
        return secrets.REFERENCE.findall(self.value)

    def check(self) -> None:
        """Refuse a secret that is written out."""
        secrets.check_references(self.value)
        if self.is_secret and self.value and self.value not in REPLACED:
            secrets.refuse_literal(self.place, self.value)


def in_url(url: str) -> Iterator[RequestText]:
    """The texts of a URL: user and password, path, and parameters."""
    match = URL.fullmatch(url)
    if match is None:
        return
    if match["user"] is not None:
        # The user name may be a literal before a reference to the password; without a password the name is the secret.
        user, password = _user_and_password(match["user"])
        names = "".join(secrets.REFERENCE.findall(user)) if password else user
        for value in filter(None, (password, names)):
            yield RequestText("user and password in the url", ("url",), value, is_secret=True)
    path, _, query = (match["rest"] or "").partition("?")
    yield RequestText("the url", ("url",), path, is_secret=False)
    for name, value in parse_qsl(query, keep_blank_values=True):
        yield RequestText("the url", ("url",), name, is_secret=False)
        is_secret = names_secret_parameter(name)
        yield RequestText(f"parameter {name}" if is_secret else "the url", ("url",), value, is_secret)


def in_headers(headers: Mapping[str, str]) -> Iterator[RequestText]:
    for name, value in headers.items():
        yield RequestText(f"header {name}", ("headers", name), value, names_secret(name))


def in_parameters(parameters: Mapping[str, str | int | bool]) -> Iterator[RequestText]:
    """The values of parameters; a number may also be a secret."""
    for name, value in parameters.items():
        if not isinstance(value, bool):
            yield RequestText(f"parameter {name}", ("params", name), str(value), names_secret_parameter(name))


def in_body(body: JsonValue) -> Iterator[RequestText]:
    for path, value in texts_in(body):
        names = [part for part in path if isinstance(part, str)]
        is_secret = holds_secret(path, value)
        yield RequestText(f"{names[-1]} in the body" if is_secret else "the body", ("body", *path), value, is_secret)


def texts_in(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text of a JSON value, and the path to it.

    >>> list(texts_in({"a": ["x", 1], "b": {"c": "y"}}))
    [(('a', 0), 'x'), (('b', 'c'), 'y')]
    """
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from texts_in(item, (*path, place))


def _user_and_password(text: str) -> tuple[str, str]:
    """User and password of a URL, split at the first colon outside of references."""
    colon = secrets.REFERENCE.sub(lambda match: "x" * len(match[0]), text).find(":")
    return (text, "") if colon < 0 else (text[:colon], text[colon + 1 :])
