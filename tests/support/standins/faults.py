"""What goes wrong: decided by a request's running number, so that the same query succeeds when it is asked again."""

import hashlib
from dataclasses import dataclass

DEFAULT_KINDS = (
    "quota",
    "quota_hint",
    "unavailable",
    "internal",
    "timeout",
    "request_timeout",
    "reset",
    "hang",
    "malformed",
    "partial",
)
"""What may happen to a call that succeeds later, with the answer that it would have had."""

KINDS = (*DEFAULT_KINDS, "drop_connection", "empty", "wrong_order", "permission", "not_found", "invalid")
"""All that can go wrong.

Over gRPC, `reset` ends one call as UNAVAILABLE, because calls share a connection; `drop_connection` closes the
connection, and with it every call that is in the air on it. `partial` is DATA_LOSS there, `request_timeout` is
`timeout`. Over HTTP, `partial` is a body that ends before its Content-Length, and the other two reset the connection.
`wrong_order` leaves the results in their places and turns the scores around. `empty` and `wrong_order` are legal
answers, so nobody asks again.
"""


@dataclass(frozen=True)
class Faults:
    """A script of faults.

    Attributes:
        rate: share of the requests that go wrong. With `first`, 0 means each of those.
        kinds: what may happen to one that does.
        first: only that many requests go wrong, from the first; None for no end.
        only: requests whose query contains this text always go wrong, and no others.
        hint_s: what `quota_hint` asks clients to wait.
        hang_s: how long `hang` says nothing, before it answers as usual.
        seed: of the choice.
    """

    rate: float = 0.0
    kinds: tuple[str, ...] = DEFAULT_KINDS
    first: int | None = None
    only: str | None = None
    hint_s: float = 1.0
    hang_s: float = 3600.0
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = set(self.kinds) - set(KINDS)
        if unknown or not self.kinds:
            raise ValueError(f"no kinds of fault: {sorted(unknown)}; there are {', '.join(KINDS)}")

    def of(self, number: int, query: str) -> str | None:
        """What happens to a request; None for nothing.

        Args:
            number: how many requests came, with this one.
            query: what it asks.
        """
        if self.first is not None and number > self.first:
            return None
        if self.only is not None:
            return self._kind(number) if self.only in query else None
        rate = 1.0 if self.first is not None and self.rate == 0 else self.rate
        return self._kind(number) if fraction(self.seed, number, "whether") < rate else None

    def _kind(self, number: int) -> str:
        return self.kinds[int(fraction(self.seed, number, "kind") * len(self.kinds))]


def fraction(*parts: object) -> float:
    """A number in [0, 1) that is a hash of the parts.

    >>> fraction(0, 1, "kind") == fraction(0, 1, "kind") != fraction(0, 2, "kind")
    True
    """
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48
