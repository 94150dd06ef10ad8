"""Several calls as one request, if a connection supports it: embeddings of texts.

Each call keeps its own key, answer and row in the ledger. A request that fails as a whole is made again in halves.
"""

import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rankbeam.transforms.clients.calls.driver import OpenCall
from rankbeam.transforms.clients.calls.health import NotAsked
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

MOST_CHARACTERS = 60_000  # the most characters of one request: some services take 20,000 tokens

_MOST_CANDIDATES = 1_000
_EMBED, _TEXT = '{"step":"embed"', '"text":'
_SPLITTING = {
    FailureKind.INVALID,
    FailureKind.MALFORMED,
    FailureKind.BLOCKED,
    FailureKind.TRUNCATED,
    FailureKind.TIMEOUT,
    FailureKind.OVER_BUDGET,
}


@dataclass(eq=False)
class CombinedCall(OpenCall):
    """Several calls in one request; other code handles them as one call without a key."""

    parts: Sequence[OpenCall] = ()  # the calls, at least two

    @classmethod
    def of(cls, parts: Sequence[OpenCall]) -> "CombinedCall":
        payload = json.dumps([part.call.payload for part in parts], ensure_ascii=False)
        return cls(
            replace(parts[0].call, key=None, payload=payload, positions=None, keeps_malformed=False), [], parts=parts
        )

    def positions(self) -> frozenset[int]:
        """The positions of the sources or configurations that need any of the calls."""
        return frozenset().union(*(part.positions() for part in self.parts))

    def splits_at(self, error: CallError) -> bool:
        """Return whether smaller requests may succeed at once after this error."""
        return error.kind in _SPLITTING and not error.changes_form and not isinstance(error, NotAsked)

    def read(self, reply: Reply, skip: int = 0) -> list[Any]:
        return [value for part, piece in zip(self.parts, reply.parts, strict=True) for value in part.read(piece, skip)]

    def parts_of(self, reply: Reply, outcomes: Sequence[Any]) -> Iterator[tuple[OpenCall, Reply, Sequence[Any]]]:
        """Each call with its reply and outcomes; attempts, and the tokens of failed ones, count for the first call."""
        parts = sum((part_reply.tokens for part_reply in reply.parts), start=Tokens())
        total, attempts, remaining = reply.tokens, reply.attempts, iter(outcomes)
        extra = Tokens(total.input - parts.input, total.cached - parts.cached, total.output - parts.output)
        for part, piece in zip(self.parts, reply.parts, strict=True):
            part_reply = replace(piece, tokens=piece.tokens + extra, attempts=attempts)
            yield part, part_reply, list(islice(remaining, len(part.requested_by)))
            extra, attempts = Tokens(), 0


class CallCombiner:
    """Chooses the calls of each request: fewer if their last request failed as a whole."""

    def __init__(self) -> None:
        self._most: dict[OpenCall, int] = {}

    def joined(self, first: OpenCall, waiting: MutableMapping[OpenCall, None], most: int) -> OpenCall:
        """A call alone, or one request for it and others."""
        parts, group = [first], _group(first)
        most = min(most, self._most.pop(first, most))
        characters = len(first.call.payload)
        for open_call in islice(waiting, _MOST_CANDIDATES):
            if len(parts) >= most or group is None:
                break
            fits = characters + len(open_call.call.payload) <= MOST_CHARACTERS
            if fits and _group(open_call) == group and self._most.get(open_call, most) >= most:
                characters += len(open_call.call.payload)
                parts.append(open_call)
        for part in parts[1:]:
            del waiting[part]
            self._most.pop(part, None)
        return first if len(parts) == 1 else CombinedCall.of(parts)

    def split(self, request: CombinedCall, error: CallError) -> bool:
        """Return whether the calls of a failed request are made again, in requests of half the size."""
        is_final = error.kind not in (*_SPLITTING, FailureKind.UNAVAILABLE)
        if is_final or error.stops_pool or isinstance(error, NotAsked):
            return False
        self._most |= dict.fromkeys(request.parts, (len(request.parts) + 1) // 2)
        return True


def divide_tokens(tokens: Tokens, lengths: Sequence[int]) -> list[Tokens]:
    """The tokens of a request, divided among its texts by length; their sum is exact.

    >>> divide_tokens(Tokens(10, 0, 0), [1, 1, 2])
    [Tokens(input=2, cached=0, output=0), Tokens(input=3, cached=0, output=0), Tokens(input=5, cached=0, output=0)]
    """
    fresh, cached, output = (
        _shares(number, lengths) for number in (tokens.input - tokens.cached, tokens.cached, tokens.output)
    )
    return [Tokens(new + old, old, out) for new, old, out in zip(fresh, cached, output, strict=True)]


def _shares(number: int, lengths: Sequence[int]) -> list[int]:
    total, before, ends = max(1, sum(lengths)), 0, []
    for length in lengths:
        before += length
        ends.append(number * before // total)
    ends[-1] = number
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _group(open_call: OpenCall) -> tuple[Any, ...] | None:
    """A key that is equal for calls that fit into one request; None for a call that is always made alone."""
    payload = open_call.call.payload
    if open_call.call.key is None or not payload.startswith(_EMBED):
        return None
    return open_call.call.service, payload.partition(_TEXT)[0]
