"""Failed calls as typed records, of which none is dropped."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FailureKind(StrEnum):
    """The reason why a call has no result.

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
        """True if the same request may succeed later."""
        return self in _TRANSIENT


_TRANSIENT = {FailureKind.QUOTA, FailureKind.TIMEOUT, FailureKind.UNAVAILABLE, FailureKind.MALFORMED}


@dataclass(frozen=True)
class Failure:
    """One call that failed after all its retries."""

    stage: str
    kind: FailureKind
    query_id: str  # id of the call's query
    attempts: int
    message: str
    # Whether the call has an answer after all, which only configurations with a distance threshold cannot use.
    only_thresholds: bool = False


class FailedCall(NamedTuple):
    """The text of a warning about a failure."""

    kind: str
    attempts: int
    message: str
    query_id: str  # id of the call's query
    metric: str | None = None


def failure_warnings(calls: Iterable[FailedCall]) -> list[str]:
    """Warnings about failures: for each kind, how many queries or judged values it concerns, and one message.

    A query counts once, however many configurations have no answer to it.

    >>> slow, late = FailedCall("quota", 3, "slow down", "q1"), FailedCall("timeout", 1, "too late", "q1")
    >>> failure_warnings([slow, FailedCall("quota", 9, "wait", "q2"), slow, late])
    ['2 queries have no answer (quota): wait', '1 query has no answer (timeout): too late']
    >>> failure_warnings([slow._replace(metric="Faithfulness"), slow._replace(metric="ClaimRecall")])
    ['2 judged values are missing (quota): slow down']
    """
    counts: Counter[tuple[str, bool]] = Counter()
    queries: defaultdict[str, set[str]] = defaultdict(set)
    messages: dict[tuple[str, bool], tuple[int, str]] = {}
    for call in calls:
        key = call.kind, call.metric is not None
        counts[key] += call.metric is not None or call.query_id not in queries[call.kind]
        if call.metric is None:
            queries[call.kind].add(call.query_id)
        messages[key] = max(messages.get(key, (0, "")), (call.attempts, call.message))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        f"{_missing(count, of_judge=of_judge)} ({kind}): {messages[kind, of_judge][1]}"
        for (kind, of_judge), count in ordered
    ]


def _missing(count: int, *, of_judge: bool) -> str:
    if of_judge:
        return "1 judged value is missing" if count == 1 else f"{count:,} judged values are missing"
    return "1 query has no answer" if count == 1 else f"{count:,} queries have no answer"
