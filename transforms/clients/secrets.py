"""References to values outside the experiment: `${env:NAME}` and `${secret:projects/P/secrets/S/versions/V}`.

An experiment's text is stored in the `runs` table, so it holds references to secrets, never their values. A reference
is to a secret if it names one in Secret Manager, or if its place or its own name says so (`names_secret`). Secrets are
resolved on the machine that makes the calls, and are hidden in all data that leaves that machine. Other references are
resolved when the experiment is loaded: they change the requests of calls, so their values are part of the calls' keys.

Names: the rule covers families of names instead of a list, because every service invents its own headers, and a secret
whose name the rule misses would be written to the `runs` table. A name is split into words. It names a secret if its
last word is `key`, or if it has a word such as `token`, `secret` or `auth`, unless another word shows that the value is
something else: `sort_key`, `page_token`, `token_type`.
"""

import asyncio
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from rankbeam.transforms.clients.extras import SECRETS, missing_extra
from rankbeam.transforms.records.errors import InputError

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ENDINGS = ("key", "token", "secret", "password", "passwd", "signature", "credential", "credentials")
_ENGLISH = re.compile(r"donkey|hockey|hotkey|jockey|latchkey|monkey|turkey|turnkey|whiskey")

_SECRET = re.compile(
    "auth|authentication|authorization|bearer|cookie|cookies|credential|credentials|creds|jwt|oauth|"
    "passcode|passphrase|passwd|password|passwords|pwd|secret|secrets|signature|token"
)
_HARMLESS_ENDS = re.compile(
    "alg|algorithm|budget|chars|config|count|domain|email|enabled|endpoint|expires|expiry|field|"
    "fields|filter|filters|format|graph|hint|index|length|level|limit|method|mode|name|overlap|"
    "path|policy|position|positions|provider|pruning|ratio|realm|required|role|roles|scheme|scope|"
    "scopes|separators|size|source|strategy|threshold|ttl|type|uri|url|usage|user|username|version|"
    "weight|weights|window"
)
_PLAIN_KEYS = re.compile(
    "attribute|bucket|cache|collapse|composite|content|continuation|cursor|dedup|deduplication|"
    "distinct|doc|document|edge|embedding|end|evaluated|external|facet|field|filter|foreign|group|"
    "grouping|hash|idempotency|index|item|join|json|kms|label|lang|language|last|locale|lookup|map|"
    "meta|metadata|natural|nested|next|node|object|order|page|partition|prev|previous|primary|"
    "property|public|range|record|result|results|route|routing|row|shard|sort|sorting|start|"
    "surrogate|tag|text|translation|unique|value|vector|websocket"
)
_PLAIN_TOKENS = re.compile(
    "bos|cancellation|cls|continuation|cursor|end|eos|first|input|last|mask|max|min|next|output|"
    "pad|page|prev|previous|sep|special|start|stop|sync|unk"
)
_FIELD = re.compile(r"[A-Za-z_@]+\d{0,2}(?:[._-][A-Za-z_]+\d{0,2})*")
_LONGEST_FIELD = 40


def names_secret(name: str) -> bool:
    """Return whether a name is the name of a secret.

    >>> [names_secret(name) for name in ("X-RapidAPI-Key", "apikey", "client_secret", "AUTH", "X-Hub-Signature")]
    [True, True, True, True, True]
    >>> [names_secret(name) for name in ("max_tokens", "keyword", "kms_key", "pageToken", "access_key_id", "author")]
    [False, False, False, False, False, False]
    """
    words = _words(name)
    if not words or _HARMLESS_ENDS.fullmatch(words[-1]):
        return False
    return _ends_in_key(words) or any(
        _SECRET.fullmatch(word) and not (word == "token" and _PLAIN_TOKENS.fullmatch(before))
        for before, word in zip(["", *words], words, strict=False)
    )


def names_secret_parameter(name: str) -> bool:
    """Return whether a URL parameter with this name holds a secret.

    >>> names_secret_parameter("sig"), names_secret_parameter("code"), names_secret_parameter("country_code")
    (True, True, False)
    """
    return name.lower() in ("sig", "code", "pass") or names_secret(name)


def holds_secret(path: Sequence[str | int], text: str) -> bool:
    """Return whether a text in a request body is a secret.

    Filters and sort orders also use `key`, for a field name. So under a `key` that is not part of a credential, a text
    that looks like a field name is not a secret.

    >>> holds_secret(["key"], "city"), holds_secret(["auth", "key"], "city"), holds_secret(["must", 0, "key"], "city")
    (True, True, False)
    >>> holds_secret(["must", 0, "key"], "sk-12a34b")
    True
    """
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return False
    if any(names_secret(name) and _words(name) != ["key"] for name in names[:-1]):
        return not any(map(_HARMLESS_ENDS.fullmatch, _words(names[-1])[-1:]))
    is_field = len(path) > 1 and len(text) <= _LONGEST_FIELD and _FIELD.fullmatch(text) is not None
    return names_secret(names[-1]) and not (is_field and _words(names[-1]) == ["key"])


def _words(name: str) -> list[str]:
    """The words in a name, in lower case, without numbers.

    >>> _words("X-RapidAPI-Key"), _words("subscriptionkey")
    (['x', 'rapid', 'api', 'key'], ['subscription', 'key'])
    """
    return [word for part in _WORD.findall(name) for word in _split_ending(part.lower())]


def _split_ending(word: str) -> list[str]:
    end = next((end for end in _ENDINGS if word.endswith(end)), "")
    begin = word.removesuffix(end)
    return [word] if not begin or _ENGLISH.fullmatch(word) else [begin, end] if end else [word]


def _ends_in_key(words: Sequence[str]) -> bool:
    if words[-1] == "keys":
        return len(words) > 1 and words[-2] in ("api", "access", "secret", "private")
    return words[-1] == "key" and (len(words) == 1 or not _PLAIN_KEYS.fullmatch(words[-2]))


REFERENCE = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|secret:projects/[^/{}\s]+/secrets/[\w-]+/versions/[\w-]+)\}")
FORMS = "${env:NAME} or ${secret:projects/P/secrets/S/versions/latest}"
HIDDEN = "***"
LEAST_SECRET = 8
"""Characters from which a value is hidden in answers: a shorter one, such as `EMPTY`, is a word of answers, too."""

_SCHEMES = re.compile(
    "apikey|apitoken|basic|bearer|bot|digest|dpop|geniekey|jwt|key|negotiate|oauth|pat|"
    "privatetoken|session|snowflake|splunk|ssws|token"
)
_NO_LITERAL = re.compile(r"""["':.]*|[\w-]+=["']?""")
_ACCESS_TIMEOUT_S = 30.0


def is_secret(reference: str) -> bool:
    """Return whether a reference is to a secret, no matter where it occurs.

    >>> is_secret("${env:SEARCH_TOKEN}"), is_secret("${env:INDEX}")
    (True, False)
    """
    kind, _, name = reference[2:-1].partition(":")
    return kind == "secret" or names_secret(name)


def env_name(reference: str) -> str:
    """The environment variable of a reference; "" for a secret in Secret Manager, which workers request.

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
    """Refuse a literal secret, or a reference with a literal part of a secret next to it."""
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
    """The value of an environment variable on this machine, stripped: values from files end with newlines."""
    name = reference.removeprefix("${env:").removesuffix("}")
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"{place} needs the environment variable {name}, which is not set here")
    return value


class Secrets:
    """Values of references to secrets; `hide` removes them from texts."""

    def __init__(self, values: Mapping[str, str], derived: Iterable[str] = ()) -> None:
        self.values = dict(values)
        hidden = {*values.values(), *derived}
        self._pattern = _pattern_of(hidden)
        self._pattern_in_answers = _pattern_of({value for value in hidden if len(value) >= LEAST_SECRET})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.values)})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("secrets stay in the process that resolved them")

    def hide(self, text: str) -> str:
        """Replace all secret values in a text.

        >>> Secrets({"${env:KEY}": "a b"}).hide("/search?key=a%20b, a b")
        '/search?key=***, ***'
        """
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def hide_in(self, value: Any) -> Any:
        """Replace the secret values in the texts and keys of an answer, except short ones, which can be words."""
        if self._pattern_in_answers is None:
            return value
        if isinstance(value, str):
            return self._pattern_in_answers.sub(HIDDEN, value)
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        if isinstance(value, dict):
            return {self.hide_in(key): self.hide_in(item) for key, item in value.items()}
        return value


def _pattern_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of values in all their spellings; None without values."""
    spellings = ["".join(map(_spellings, value)) for value in sorted(values, key=len, reverse=True)]
    return re.compile("|".join(spellings)) if spellings else None


def _spellings(character: str) -> str:
    """A pattern of the spellings of a character in texts, URLs, JSON and HTML; other programs escape more than ours."""
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    forms = {character, f"\\{character}", json.dumps(character)[1:-1], f"\\u{code:04x}", f"&#{code};", f"&#x{code:x};"}
    forms |= {quote(character, safe=""), quote_plus(character), html.escape(character)}
    return f"(?i:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"


def _secret_manager() -> Any:
    if problem := missing_extra("google.cloud.secretmanager", SECRETS, "Secret Manager"):
        raise InputError(problem)
    from google.cloud import secretmanager  # slow to import, and few experiments need it

    return secretmanager.SecretManagerServiceClient()


async def resolve(places: Mapping[str, str], connect: Callable[[], Any] = _secret_manager) -> Secrets:
    """Resolve references on this machine and strip their values; `places` are the references' places, for messages."""
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
        raise InputError(f"{place} needs {name}, which is not text") from None  # that error would show the secret
    if not value:
        raise InputError(f"{place} needs {name}, which is empty")
    return value
