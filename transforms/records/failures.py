"""Failed calls: typed, kept, never dropped."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a call has no result.

    BLOCKED: a model, or what guards it, would not answer. TRUNCATED: the answer reached its limit of tokens.
    OVER_BUDGET: the call was not made, since it might have cost more than is left.
    """

    INVALID = "invalid"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    MALFORMED = "malformed"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"
    OVER_BUDGET = "over_budget"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self in _TRANSIENT


_TRANSIENT = {FailureKind.QUOTA, FailureKind.TIMEOUT, FailureKind.UNAVAILABLE, FailureKind.MALFORMED}


@dataclass(frozen=True)
class Failure:
    """One call that failed for good.

    Attributes:
        stage: the stage that made the call, such as "retrieve".
        kind: why.
        query_id: the query that was asked.
        attempts: how often it was tried.
        message: what the service said.
        only_thresholds: it has an answer, which those configurations cannot use that have a distance threshold.
    """

    stage: str
    kind: FailureKind
    query_id: str
    attempts: int
    message: str
    only_thresholds: bool = False


def failure_warnings(rows: Iterable[tuple[str, int, str]]) -> list[str]:
    """What failed, for people: of each kind how many queries, and what the service said to one of them.

    Args:
        rows: of each failure kind, attempts and message.

    >>> failure_warnings([("quota", 3, "slow down"), ("quota", 9, "wait"), ("timeout", 1, "too late")])
    ['2 queries have no answer (quota): wait', '1 query has no answer (timeout): too late']
    """
    counts: Counter[str] = Counter()
    said: dict[str, tuple[int, str]] = {}
    for kind, attempts, message in rows:
        counts[kind] += 1
        said[kind] = max(said.get(kind, (0, "")), (attempts, message))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{_queries(count)} no answer ({kind}): {said[kind][1]}" for kind, count in ordered]


def _queries(count: int) -> str:
    return "1 query has" if count == 1 else f"{count:,} queries have"
