"""References to values outside of the experiment: `${env:NAME}` and `${secret:projects/P/secrets/S/versions/V}`.

An experiment's text is kept in the `runs` table, so it names where a secret is, never the secret. A reference is a
secret's where it names one of Secret Manager, and where its place or its own name says so (`secret_names`). Secrets
become values on the machine that makes the calls, and are hidden in whatever leaves it. Other references become values
when the experiment is loaded: they decide what is asked, so they are part of a call's key.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

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
    """Whether a reference is a secret's wherever it stands.

    >>> is_secret("${env:SEARCH_TOKEN}"), is_secret("${env:INDEX}")
    (True, False)
    """
    kind, _, name = reference[2:-1].partition(":")
    return kind == "secret" or names_secret(name)


def check_references(text: str) -> None:
    """Refuse whatever looks like a reference and is none.

    Raises:
        ValueError: without the text, which may hold a secret.
    """
    if "${" in REFERENCE.sub("", text):
        raise ValueError(f"holds a ${{…}} that is no reference; write {FORMS}")


def refuse_literal(place: str, text: str) -> None:
    """Refuse a secret that is written out, or a part of one beside a reference.

    Args:
        place: where it stands, for people.
        text: the secret; references in it may follow the name of a scheme, such as Bearer, and names with `=`.

    Raises:
        ValueError: without the text.
    """
    if not REFERENCE.search(text):
        raise ValueError(
            f"{place} must come from the environment or Secret Manager: {FORMS}; "
            "the experiment's text is written to the runs table"
        )
    words = re.split(r"[\s,;]+", REFERENCE.sub(" ", text).strip())
    first = _SCHEMES.fullmatch(words[0].lower().replace("-", "")) is not None
    if not all(map(_NO_LITERAL.fullmatch, words[first:])):
        raise ValueError(
            f"{place} holds a literal beside its reference: put the whole value where the reference points; "
            "the experiment's text is written to the runs table"
        )


def variable(reference: str, place: str) -> str:
    """The value of a variable of this machine's environment, without white space around it: files end in a newline.

    Args:
        reference: to it.
        place: where it stands, for people.

    Raises:
        InputError: it has none.
    """
    name = reference.removeprefix("${env:").removesuffix("}")
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"{place} needs the environment variable {name}, which is not set here")
    return value


class Secrets:
    """The values of references to secrets, and how they are hidden.

    Attributes:
        values: by reference.
    """

    def __init__(self, values: Mapping[str, str], derived: Iterable[str] = ()) -> None:
        """Keep the values.

        Args:
            values: by reference, none empty.
            derived: what else is to be hidden, being made of them.
        """
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
            return [self.hide_in(each) for each in value]
        if isinstance(value, dict):
            return {self.hide(key): self.hide_in(each) for key, each in value.items()}
        return value


def _forms(value: str) -> set[str]:
    """How a value is spelled in texts, URLs and JSON."""
    return {
        value,
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    }


def _secret_manager() -> Any:
    from google.cloud import secretmanager  # slow to import, and few experiments need it

    return secretmanager.SecretManagerServiceClient()


async def resolve(places: Mapping[str, str], connect: Callable[[], Any] = _secret_manager) -> Secrets:
    """The values of references, on this machine, without white space around them.

    Args:
        places: by reference, where it stands, for people.
        connect: makes a client of Secret Manager.

    Raises:
        InputError: one has no value here.
    """
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
        hint = "log in with `gcloud auth application-default login`, or run where a service account is"
        raise InputError(f"{place} needs {name}, and Secret Manager knows nobody here: {error}; {hint}") from error
    except GoogleAPIError as error:
        hint = "it must exist and be enabled, and you need the role roles/secretmanager.secretAccessor"
        raise InputError(f"{place} needs {name}, and Secret Manager does not give it: {error}; {hint}") from error
    except UnicodeDecodeError:
        raise InputError(f"{place} needs {name}, which is no text") from None  # the error would show the secret
    if not value:
        raise InputError(f"{place} needs {name}, which is empty")
    return value
