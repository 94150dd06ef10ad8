"""Decide by a name whether its value is a secret.

The rule covers families of names, not a list: every service invents its own header, and a secret under a name that the
rule misses would be written to the `runs` table. A name is split into words. It names a secret if its last word is
`key`, or if it has a word such as `token`, `secret` or `auth`, unless another word says that the value is something
else: `sort_key`, `page_token`, `token_type`.
"""

import re
from collections.abc import Sequence

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
    "grouping|hash|idempotency|index|item|join|json|label|lang|language|last|locale|lookup|map|"
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
    """Return whether a name is that of a secret.

    >>> [names_secret(name) for name in ("X-RapidAPI-Key", "apikey", "client_secret", "AUTH", "X-Hub-Signature")]
    [True, True, True, True, True]
    >>> [names_secret(name) for name in ("max_tokens", "keyword", "sort_key", "pageToken", "access_key_id", "author")]
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
    """Return whether the value of a parameter of this name in a URL is a secret.

    >>> names_secret_parameter("sig"), names_secret_parameter("code"), names_secret_parameter("country_code")
    (True, True, False)
    """
    return name.lower() in ("sig", "code", "pass") or names_secret(name)


def holds_secret(path: Sequence[str | int], text: str) -> bool:
    """Return whether a text in the body of a request is a secret.

    Filters and sort orders also use `key`, for the name of a field. So under a `key` that is not inside a credential, a
    text that looks like the name of a field is not a secret.

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
    """The words of a name, in lower case, without numbers.

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
