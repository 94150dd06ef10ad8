"""One request to a remote service, and the hash of its content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
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
    """

    service: str
    key: str | None
    payload: str
    reach: Reach | None = None


def content_key(request: Mapping[str, Any]) -> str:
    """A hash of a request's content: equal requests have the same key, in any process and any run.

    Args:
        request: all that determines the answer, as JSON values: service, parameters, text, version of the corpus.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = _JSON.encode(request)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
