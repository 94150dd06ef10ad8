"""Failed calls as typed records, of which none is dropped."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a call has no result.

    BLOCKED: a model or its safety filter refused to answer. TRUNCATED: the answer reached its limit of tokens.
    OVER_BUDGET: the call was not made, because it might have cost more than the rest of the budget.
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
    """One call that failed after all its retries.

    Attributes:
        stage: that made the call, such as "retrieve".
        kind: of the failure.
        query_id: of the call's query.
        attempts: how many were made.
        message: of the service.
        only_thresholds: whether the call has an answer after all, which only configurations with a distance threshold
            cannot use.
    """

    stage: str
    kind: FailureKind
    query_id: str
    attempts: int
    message: str
    only_thresholds: bool = False


def failure_warnings(rows: Iterable[tuple[str, int, str]]) -> list[str]:
    """Warnings about failures: for each kind, the number of queries and one message of the service.

    Args:
        rows: kind, attempts and message of each failure.

    >>> failure_warnings([("quota", 3, "slow down"), ("quota", 9, "wait"), ("timeout", 1, "too late")])
    ['2 queries have no answer (quota): wait', '1 query has no answer (timeout): too late']
    """
    counts: Counter[str] = Counter()
    messages: dict[str, tuple[int, str]] = {}
    for kind, attempts, message in rows:
        counts[kind] += 1
        messages[kind] = max(messages.get(kind, (0, "")), (attempts, message))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{_queries(count)} no answer ({kind}): {messages[kind][1]}" for kind, count in ordered]


def _queries(count: int) -> str:
    return "1 query has" if count == 1 else f"{count:,} queries have"
