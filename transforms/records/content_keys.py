"""Hashes of the content of requests, by which the ledger finds their answers."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
"""One encoder for all texts; `json.dumps` would make one each time."""


def content_key(request: Mapping[str, Any]) -> str:
    """A hash of a request's content: equal requests have the same key, in any process and any run.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    return _hash(_JSON.encode(request))


def content_keys(request: Mapping[str, Any], name: str, texts: Iterable[str]) -> list[str]:
    """The `content_key` of requests that differ in one text, in a third of the time.

    >>> content_keys({"a": 1, "z": 2}, "b", ["x"]) == [content_key({"a": 1, "b": "x", "z": 2})]
    True
    """
    before = {key: value for key, value in request.items() if key < name}
    after = {key: value for key, value in request.items() if key > name}
    begin = _JSON.encode({**before, name: ""})[:-3]
    end = _JSON.encode({name: "", **after})[len(_JSON.encode({name: ""})) - 1 :]
    return [_hash(f"{begin}{encode_basestring(text)}{end}") for text in texts]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
