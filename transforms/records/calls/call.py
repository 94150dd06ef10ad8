"""One request to a remote service, and the hash of its content."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from rankbeam.transforms.records.calls.reach import Reach

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
"""`json.dumps` would make one for each text."""


@dataclass(frozen=True)
class Call:
    """One request to a remote service.

    Attributes:
        service: its name in the job; the service says which pool pays.
        key: `content_key` of all that determines the answer, and of nothing else: the ledger finds the answer by it.
            None for a call whose answer is neither kept nor shared, such as a poll.
        payload: the request, as JSON that the service's connection understands; never edited afterwards.
        reach: how far into a ranking the call goes; None where an answer is whole.
        positions: of the configurations that the answer is for; None for those of the call's task.
        keeps_malformed: whether the ledger keeps a malformed answer, once no attempt is left: the next run is not to
            ask again.
        step: the kind of request, where a service answers several; a step whose answers are bad is given up alone.
    """

    service: str
    key: str | None
    payload: str
    reach: Reach | None = None
    positions: frozenset[int] | None = None
    keeps_malformed: bool = False
    step: str = ""


def content_key(request: Mapping[str, Any]) -> str:
    """A hash of a request's content: equal requests have the same key, in any process and any run.

    Args:
        request: all that determines the answer, as JSON values: service, parameters, text, version of the corpus.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    return _hash(_JSON.encode(request))


def content_keys(request: Mapping[str, Any], name: str, texts: Iterable[str]) -> list[str]:
    """The `content_key` of requests that differ in one text, in a third of the time.

    Args:
        request: what they share.
        name: of what they differ in.
        texts: of each request.

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
