"""The budget that the calls of one pool share."""

import math
from dataclasses import dataclass

from rankbeam.transforms.records.reply import Tokens

MOST_IN_FLIGHT = 1000  # calls that one process can have in flight at once


@dataclass(frozen=True)
class Prices:
    """Prices of a million tokens, in the currency that the user counts in.

    Attributes:
        input: price of input tokens that the service had not cached.
        cached: price of input tokens that it had cached.
        output: price of tokens of the answer, thinking included.
    """

    input: float
    cached: float
    output: float

    def cost(self, tokens: Tokens) -> float:
        """The cost of tokens.

        >>> Prices(input=1.0, cached=0.25, output=4.0).cost(Tokens(input=1_000_000, cached=400_000, output=100_000))
        1.1
        >>> Prices(input=1.0, cached=0.25, output=4.0).cost(Tokens(input=1_000_000, output=100_000).in_batch())
        0.7
        """
        fresh = (tokens.input - tokens.cached) * self.input
        full = fresh + tokens.cached * self.cached + tokens.output * self.output
        batch = tokens.batch_input * self.input + tokens.batch_output * self.output
        return (full - batch / 2) / 1_000_000

    def saved(self, tokens: int) -> float:
        """The cost that a number of input tokens saves if they are cached."""
        return max(0.0, self.input - self.cached) * tokens / 1_000_000


@dataclass(frozen=True)
class ImportQuota:
    """The budget of imports of files into the corpora of one project and region.

    The defaults are those of RAG Engine: https://cloud.google.com/vertex-ai/generative-ai/docs/quotas

    Attributes:
        concurrent_calls: imports that may run at once.
        embeddings_per_minute: requests for embeddings of all imports with one model together.
        price_per_million: price of a million embedded tokens; None if there is none.
        give_up_after_s: time without progress after which rankbeam stops waiting for an import.
    """

    concurrent_calls: int = 3
    embeddings_per_minute: int = 1400
    price_per_million: float | None = None
    give_up_after_s: float = 6 * 3600.0


@dataclass(frozen=True)
class Quota:
    """The budget that the calls of one pool share, and the limits of each call.

    Attributes:
        requests_per_minute: most calls begun in any minute; every attempt counts.
        concurrent_calls: most calls in flight at once; None for as many as the full rate leads to.
        timeout_s: time limit of one attempt.
        attempts: most attempts at one call.
        give_up_after_s: time after which no further attempt begins, pauses included.
        lanes: streams that each own an equal share of the budget; one, unless one process cannot make the calls of the
            full rate.
        price_per_1000: price of a thousand calls, in the currency that the user counts in; None if there is none.
        tokens_per_minute: most tokens of calls begun in any minute; None if calls are not charged by the token.
        prices: prices of tokens; None if there are none.
    """

    requests_per_minute: float
    concurrent_calls: int | None = None
    timeout_s: float = 60.0
    attempts: int = 9
    give_up_after_s: float = 600.0
    lanes: int = 1
    price_per_1000: float | None = None
    tokens_per_minute: float | None = None
    prices: Prices | None = None

    def cost(self, calls: int, tokens: Tokens) -> float | None:
        """The cost of calls and their tokens; None without a price.

        >>> Quota(600, price_per_1000=1.5).cost(2000, Tokens()), Quota(600).cost(2000, Tokens())
        (3.0, None)
        """
        if not self.has_price:
            return None
        token_cost = 0.0 if self.prices is None else self.prices.cost(tokens)
        return calls * (self.price_per_1000 or 0.0) / 1000 + token_cost

    @property
    def has_price(self) -> bool:
        return self.price_per_1000 is not None or self.prices is not None

    @property
    def most_lanes(self) -> int:
        """The most lanes that can each begin a call every second and have one in flight.

        >>> Quota(1500).most_lanes, Quota(1500, concurrent_calls=3).most_lanes
        (25, 3)
        """
        per_second = math.ceil(self.requests_per_minute / 60)
        return per_second if self.concurrent_calls is None else min(per_second, self.concurrent_calls)

    def slots(self, lane: int) -> int:
        """The most calls that a lane may have in flight.

        >>> quota = Quota(1500, concurrent_calls=10, lanes=4)
        >>> [quota.slots(lane) for lane in range(4)]
        [3, 3, 2, 2]
        """
        if self.concurrent_calls is None:
            return MOST_IN_FLIGHT
        return self.concurrent_calls // self.lanes + (lane < self.concurrent_calls % self.lanes)
