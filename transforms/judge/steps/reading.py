"""Replies with a verdict for each item, which `support` and `nugget_assign` share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from rankbeam.transforms.kernels.judged import HIGHEST_GRADE
from rankbeam.transforms.records.forms import TEXT, list_of, malformed, object_of, whole
from rankbeam.transforms.records.judging.steps import LONGEST_REASON
from rankbeam.transforms.records.suggestions import shortened

V = TypeVar("V", bound=StrEnum)

SUPPORTED_SHARE = 0.5
"""Share of a claim's words in a text from which the offline judge takes the claim for supported."""
LEVEL = whole(0, HIGHEST_GRADE)
"""The schema of a grade."""


@dataclass(frozen=True)
class ReasonedVerdict(Generic[V]):
    """A verdict with its reason."""

    verdict: V
    reason: str


class ItemForm(Protocol[V]):
    """The form of a verdict on one item."""

    id: int
    reason: str
    verdict: V


def reasoned(forms: Iterable[ItemForm[V]], count: int) -> tuple[ReasonedVerdict[V], ...]:
    """Verdicts in the order of their items; refuse ids that are not exactly 0 to count - 1."""
    in_order = sorted(forms, key=lambda form: form.id)
    check_ids([form.id for form in in_order], count, "verdicts")
    return tuple(ReasonedVerdict(form.verdict, shortened(form.reason, LONGEST_REASON)) for form in in_order)


def check_ids(ids: Sequence[int], count: int, name: str) -> None:
    """Refuse sorted ids that are not exactly 0 to count - 1."""
    if list(ids) == list(range(count)):
        return
    missing = sorted(set(range(count)) - set(ids))
    further = sorted({one for one in ids if not 0 <= one < count or ids.count(one) > 1})
    parts = [f"{what} {sorted(some)[:10]}" for what, some in (("missing", missing), ("further", further)) if some]
    raise malformed(f"{name}: the ids must be 0 to {count - 1}, each once; {', '.join(parts)}")


def one_of(values: Iterable[StrEnum]) -> dict[str, Any]:
    """The schema of one of some words."""
    return {"type": "string", "enum": [value.value for value in values]}


def verdicts_schema(values: type[StrEnum], count: int) -> Mapping[str, Any]:
    """The schema of a reason and a verdict for each of `count` items."""
    verdict = object_of(id=whole(0, count - 1), reason=TEXT, verdict=one_of(values))
    return object_of(verdicts=list_of(verdict, count))


def offline_verdicts(shares: Mapping[str, float], verdicts: Mapping[str, StrEnum]) -> Mapping[str, Any]:
    """The offline judge's verdicts on items, with the share of words that each has in common with a text."""
    return {
        "verdicts": [
            {"id": int(item), "reason": offline_reason(share), "verdict": verdicts[item]}
            for item, share in shares.items()
        ]
    }


def offline_reason(share: float) -> str:
    """The offline judge's reason."""
    return f"{share:.0%} of the words in common"


def offline_grade(share: float) -> int:
    """The offline judge's grade: one for each quarter of the words."""
    return min(HIGHEST_GRADE, int(share * (HIGHEST_GRADE + 1)))
