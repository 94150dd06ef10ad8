"""References to values outside of the experiment: `${env:NAME}` and `${secret:projects/P/secrets/S/versions/V}`.

An experiment's text is stored in the `runs` table, so it holds references to secrets, never their values. A reference
is to a secret if it names one of Secret Manager, or if its place or its own name says so (`secret_names`). Secrets are
resolved on the machine that makes the calls, and are hidden in everything that leaves that machine. Other references
are resolved when the experiment is loaded: they decide what a call requests, so their values are part of its key.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from rankbeam.transforms.clients.extras import SECRETS, missing
from rankbeam.transforms.clients.secret_names import names_secret
from rankbeam.transforms.records.errors import InputError

REFERENCE = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|secret:projects/[^/{}\s]+/secrets/[\w-]+/versions/[\w-]+)\}")
FORMS = "${env:NAME} or ${secret:projects/P/secrets/S/versions/latest}"
HIDDEN = "***"

_SCHEMES = re.compile(
    "apikey|apitoken|basic|bearer|bot|digest|dpop|geniekey|jwt|key|negotiate|oauth|pat|"
    "privatetoken|session|snowflake|splunk|ssws|token"
)
_NO_LITERAL = re.compile(r"""["':.]*|[\w-]+=["']?""")
_ACCESS_TIMEOUT_S = 30.0


def is_secret(reference: str) -> bool:
    """Return whether a reference is to a secret, whatever its place.

    >>> is_secret("${env:SEARCH_TOKEN}"), is_secret("${env:INDEX}")
    (True, False)
    """
    kind, _, name = reference[2:-1].partition(":")
    return kind == "secret" or names_secret(name)


def env_name(reference: str) -> str:
    """The environment variable of a reference; "" for a secret of Secret Manager, which workers ask.

    >>> env_name("${env:KEY}"), env_name("${secret:projects/p/secrets/s/versions/1}")
    ('KEY', '')
    """
    kind, _, name = reference[2:-1].partition(":")
    return name if kind == "env" else ""


def check_references(text: str) -> None:
    """Refuse text that looks like a reference but is not a valid one."""
    if "${" in REFERENCE.sub("", text):
        raise ValueError(f"holds a ${{…}} that is not a reference; write {FORMS}")


def refuse_literal(place: str, text: str) -> None:
    """Refuse a literal secret, or a literal part of one beside a reference."""
    if not REFERENCE.search(text):
        raise ValueError(
            f"{place} must come from the environment or Secret Manager: {FORMS}; "
            "the experiment's text is written to the runs table"
        )
    words = re.split(r"[\s,;]+", REFERENCE.sub(" ", text).strip())
    first = _SCHEMES.fullmatch(words[0].lower().replace("-", "")) is not None
    if not all(map(_NO_LITERAL.fullmatch, words[first:])):
        raise ValueError(
            f"{place} holds a literal beside its reference: store the whole value under the reference; "
            "the experiment's text is written to the runs table"
        )


def variable(reference: str, place: str) -> str:
    """An environment variable of this machine, stripped: values from files end in newlines."""
    name = reference.removeprefix("${env:").removesuffix("}")
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"{place} needs the environment variable {name}, which is not set here")
    return value


class Secrets:
    """The values of references to secrets; hides them in texts."""

    def __init__(self, values: Mapping[str, str], derived: Iterable[str] = ()) -> None:
        self.values = dict(values)
        forms = {form for value in (*values.values(), *derived) for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.values)})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("secrets stay in the process that resolved them")

    def hide(self, text: str) -> str:
        """A text without any of the values.

        >>> Secrets({"${env:KEY}": "a b"}).hide("/search?key=a%20b, a b")
        '/search?key=***, ***'
        """
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def hide_in(self, value: Any) -> Any:
        """A JSON value without any of the values in its texts and keys."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(key): self.hide_in(item) for key, item in value.items()}
        return value


def _forms(value: str) -> set[str]:
    """The spellings of a value in texts, URLs and JSON."""
    return {
        value,
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    }


def _secret_manager() -> Any:
    if problem := missing("google.cloud.secretmanager", SECRETS, "Secret Manager"):
        raise InputError(problem)
    from google.cloud import secretmanager  # slow to import, and few experiments need it

    return secretmanager.SecretManagerServiceClient()


async def resolve(places: Mapping[str, str], connect: Callable[[], Any] = _secret_manager) -> Secrets:
    """Resolve references on this machine, each with its place for messages; values are stripped of white space."""
    values = {}
    for reference, place in places.items():
        kind, _, name = reference[2:-1].partition(":")
        is_variable = kind == "env"
        values[reference] = (
            variable(reference, place) if is_variable else await asyncio.to_thread(_secret, name, place, connect)
        )
    return Secrets(values)


def _secret(name: str, place: str, connect: Callable[[], Any]) -> str:
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        with connect() as client:
            answer = client.access_secret_version(name=name, timeout=_ACCESS_TIMEOUT_S)
        value = str(answer.payload.data.decode()).strip()
    except GoogleAuthError as error:
        hint = "log in with `gcloud auth application-default login`, or run with a service account"
        raise InputError(
            f"{place} needs {name}, but there are no credentials for Secret Manager: {error}; {hint}"
        ) from error
    except GoogleAPIError as error:
        hint = "it must exist and be enabled, and you need the role roles/secretmanager.secretAccessor"
        raise InputError(f"{place} needs {name}, which Secret Manager refused: {error}; {hint}") from error
    except UnicodeDecodeError:
        raise InputError(f"{place} needs {name}, which is not text") from None  # the error would show the secret
    if not value:
        raise InputError(f"{place} needs {name}, which is empty")
    return value
