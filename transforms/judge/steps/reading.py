"""Replies with a verdict for each item, shared by several steps, and the rules of the offline judge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

from rankbeam.transforms.kernels.judged import HIGHEST_GRADE
from rankbeam.transforms.records.errors import shortened
from rankbeam.transforms.records.forms import TEXT, Form, list_of, malformed, object_of, parse_form, whole
from rankbeam.transforms.records.judging.steps import LONGEST_REASON, Imagined, JudgeStep

V = TypeVar("V", bound=StrEnum)

SUPPORTED_SHARE = 0.5  # the offline judge regards a claim as supported if the text has this share of its words
LEVEL = whole(0, HIGHEST_GRADE)  # the schema of a grade


@dataclass(frozen=True)
class ReasonedVerdict(Generic[V]):
    """A verdict with its reason."""

    verdict: V
    reason: str


class _ItemVerdict(Form, Generic[V]):
    id: int
    reason: str
    verdict: V


class ItemVerdicts(Form, Generic[V]):
    """The schema of a reply with a verdict on each item."""

    verdicts: list[_ItemVerdict[V]]


class VerdictsStep(JudgeStep):
    """A step whose reply has a verdict and a reason for each item."""

    choices: ClassVar[type[StrEnum]]
    form: ClassVar[type[ItemVerdicts[Any]]]
    items: ClassVar[str]
    expected: ClassVar[StrEnum]  # the verdict that `plan` imagines

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        count = len(values[self.items])
        verdict = object_of(id=whole(0, count - 1), reason=TEXT, verdict=one_of(self.choices))
        return object_of(verdicts=list_of(verdict, count))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[ReasonedVerdict[Any], ...]:
        verdicts = sorted(parse_form(self.form, text).verdicts, key=lambda one: one.id)
        check_ids([one.id for one in verdicts], len(values[self.items]), "verdicts")
        return tuple(ReasonedVerdict(one.verdict, shortened(one.reason, LONGEST_REASON)) for one in verdicts)

    def imagined(self, imagined: Imagined) -> tuple[ReasonedVerdict[Any], ...]:
        return (ReasonedVerdict(self.expected, ""),) * imagined.items

    def decided(self, decisions: Sequence[str]) -> tuple[ReasonedVerdict[Any], ...]:
        return tuple(ReasonedVerdict(self.choices(decision), "") for decision in decisions)


def check_ids(ids: Sequence[int], count: int, name: str) -> None:
    """Refuse sorted ids that are not exactly 0 to count - 1."""
    if list(ids) == list(range(count)):
        return
    missing = sorted(set(range(count)) - set(ids))
    further = sorted({one for one in ids if not 0 <= one < count or ids.count(one) > 1})
    parts = [f"{what} {sorted(ids)[:10]}" for what, ids in (("missing", missing), ("further", further)) if ids]
    raise malformed(f"{name}: the ids must be 0 to {count - 1}, each once; {', '.join(parts)}")


def one_of(values: Iterable[StrEnum]) -> dict[str, Any]:
    return {"type": "string", "enum": [value.value for value in values]}


def offline_verdicts(shares: Mapping[str, float], verdicts: Mapping[str, StrEnum]) -> Mapping[str, Any]:
    """The offline judge's verdicts on items, by the share of each item's words that the text contains."""
    return {
        "verdicts": [
            {"id": int(item), "reason": offline_reason(share), "verdict": verdicts[item]}
            for item, share in shares.items()
        ]
    }


def offline_reason(share: float) -> str:
    return f"{share:.0%} of the words in common"


def offline_grade(share: float) -> int:
    """The offline judge's grade: one more for each quarter of the words."""
    return min(HIGHEST_GRADE, int(share * (HIGHEST_GRADE + 1)))
