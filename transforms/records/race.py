"""A race: configurations that are significantly worse than the best at a look get no further queries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, StringArray

ALPHA = 0.05  # the probability of dropping the best one in a race that states none
_SALT = np.uint64(0x9E3779B97F4A7C15)  # an order unlike those of buckets and of the bootstrap's weights


def order_of(query_ids: StringArray) -> HashArray:
    """uint64[n]: the queries are asked in the ascending order of these numbers, in any experiment.

    >>> import pyarrow as pa
    >>> bool((order_of(pa.array(["a", "b"])) == order_of(pa.array(["x", "a", "b"]))[1:]).all())
    True
    """
    return hashing.mix(hashing.hash_strings(query_ids) ^ _SALT)


def first_of(queries: pa.RecordBatch, last: int | None) -> pa.RecordBatch:
    """The queries up to a position in the race's order; all if it is None."""
    return queries if last is None else queries.filter(pa.array(order_of(queries["query_id"]) <= np.uint64(last)))


class Look(NamedTuple):
    """One look at the remaining configurations."""

    queries: int
    level: float


@dataclass(frozen=True)
class Race:
    """The rules of a race."""

    metric: str
    alpha: float
    looks: tuple[int, ...]

    def schedule(self, queries: int) -> Iterator[Look]:
        """The looks before all queries are asked. Each spends alpha in proportion to its share of new queries.

        So all levels together are at most alpha, and by the union bound no dependence between looks matters.

        >>> list(Race("AP", 0.05, (50, 100, 500)).schedule(200))
        [Look(queries=50, level=0.0125), Look(queries=100, level=0.0125)]
        """
        before = 0
        for look in self.looks:
            if look < queries:
                yield Look(look, self.alpha * (look - before) / queries)
                before = look

    def described(self, queries: int, least: float) -> str:
        """The looks, and the lowest share of the calls that the race makes, as text.

        >>> Race("AP", 0.05, (50, 100, 500)).described(200, 0.27)
        'race by AP: drops configurations after 50, 100 of 200 queries, so 27% to 100% of the calls above are made'
        """
        looks = [look.queries for look in self.schedule(queries)]
        if not looks:
            return f"race by {self.metric}: no look before all {queries:,} queries are asked, so nothing is saved"
        after = ", ".join(f"{look:,}" for look in looks)
        summary = f"race by {self.metric}: drops configurations after {after} of {queries:,} queries"
        share = "all" if least > 0.99 else f"{least:.0%} to 100%"
        return f"{summary}, so {share} of the calls above are made"
