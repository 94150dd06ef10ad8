"""Faults, chosen by a request's running number, so that the same query succeeds when it is sent again."""

import hashlib
import re
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
"""Faults of calls that succeed later, with the answer that they would have had."""

KINDS = (*DEFAULT_KINDS, "drop_connection", "empty", "wrong_order", "permission", "not_found", "invalid")
"""All that can go wrong with any service.

Over gRPC, `reset` ends one call as UNAVAILABLE, because calls share a connection; `drop_connection` closes the
connection, and with it every call that is in the air on it. `partial` is DATA_LOSS there, `request_timeout` is
`timeout`. Over HTTP, `partial` is a body that ends before its Content-Length, and the other two reset the connection.
`wrong_order` leaves the results in their places and turns the scores around. `empty` and `wrong_order` are legal
answers, so nobody asks again.
"""


_NAMED = re.compile(r"fault=(\w+)")

MODEL_KINDS = (
    "quota_info", "quota_reset", "quota_day", "bad_gateway", "bad_key", "blocked_prompt", "safety", "recitation",
    "malformed_call", "unknown_finish", "refusal", "truncated", "truncated_thinking", "no_candidates", "empty_body",
    "prose", "fenced", "broken_json", "wrong_type", "wrong_enum", "missing_item", "no_json_schema",
    "no_usage", "no_number", "content_filter", "conflict", "too_early",
    "gpt5", "no_seed", "no_bounds", "no_bounds_anthropic", "no_temperature_extra", "no_form", "too_hot", "too_long",
    "no_system", "too_many_states", "one_vector", "few_texts", "poison",
    "fewer", "other_id", "odd_id", "twice", "no_score", "equal",
)  # fmt: skip
"""Further faults of models and rerankers; `gemini`, `openai` and `rerankers` define each of them."""


@dataclass(frozen=True)
class Faults:
    """A script of faults.

    Attributes:
        rate: share of the requests that go wrong. With `first`, 0 means each of those.
        kinds: faults of a request that fails.
        first: only that many requests go wrong, from the first; None for no end.
        after: number of requests that succeed first.
        only: requests whose query contains this text always go wrong, and no others.
        hint_s: seconds that `quota_hint` asks clients to wait.
        hang_s: seconds that `hang` is silent before it answers as usual.
        seed: seed of the choice.
        contents: share of the questions that always go wrong, chosen by their content: what a model blocks or cuts
            is the same however often, and in whatever order, it is asked.
        content_kinds: faults of those contents.
        named: a query that holds `fault=KIND` goes wrong in that way, and others do not.
    """

    rate: float = 0.0
    kinds: tuple[str, ...] = DEFAULT_KINDS
    first: int | None = None
    after: int = 0
    only: str | None = None
    hint_s: float = 1.0
    hang_s: float = 3600.0
    seed: int = 0
    contents: float = 0.0
    content_kinds: tuple[str, ...] = ("safety", "truncated")
    named: bool = False

    def __post_init__(self) -> None:
        unknown = {*self.kinds, *self.content_kinds} - {*KINDS, *MODEL_KINDS}
        if unknown or not self.kinds:
            raise ValueError(f"no kinds of fault: {sorted(unknown)}; there are {', '.join((*KINDS, *MODEL_KINDS))}")

    def of(self, number: int, query: str) -> str | None:
        """The fault of a request; None if it succeeds.

        Args:
            number: number of requests so far, including this one.
            query: the request's query.
        """
        if self.named:
            name = _NAMED.search(query)
            return name[1] if name else None
        content = query.partition(" ")[0]
        if fraction(self.seed, content, "content") < self.contents:
            return self.content_kinds[int(fraction(self.seed, content, "kind") * len(self.content_kinds))]
        if number <= self.after or (self.first is not None and number > self.after + self.first):
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
