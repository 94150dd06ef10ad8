"""The work of one question after it was accepted: grade the passages of other documents that may answer it, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.goldens.asking import FINAL, Asking, Reading
from rankbeam.transforms.goldens.records.items import Pooled, PoolGrade
from rankbeam.transforms.goldens.records.types import SourceSpan
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply

STAGE = "grade"


@dataclass(frozen=True)
class GradingPool:
    """A question and the passages that a search finds for it."""

    item_id: str
    question: str
    passages: tuple[SourceSpan, ...]


@dataclass(frozen=True)
class GradePassages:
    """Grade passages for a question; a `Work` whose items are `GradingPool`s."""

    asking: Asking

    @property
    def stage(self) -> str:
        return STAGE

    @property
    def services(self) -> Sequence[str]:
        return [self.asking.checker.name]

    def steps(self, item: GradingPool) -> Steps[Pooled]:
        """Grade all passages; one whose call fails has no grade."""
        calls = [
            self.asking.call("grade", {"query": item.question, "context": passage.text}) for passage in item.passages
        ]
        outcomes = yield calls
        grades = (_grade(passage, outcome) for passage, outcome in zip(item.passages, outcomes, strict=True))
        spent = (outcome.asked for outcome in outcomes if isinstance(outcome, Reading))
        return Pooled(item.item_id, tuple(grades), tuple(spent))

    def read(self, call: Call, reply: Reply) -> Reading:
        return self.asking.read(call, reply)


def _grade(passage: SourceSpan, outcome: Any) -> PoolGrade:
    if isinstance(outcome, CallError):
        failure = None if outcome.kind in FINAL else outcome.kind
        return PoolGrade(passage.id, passage.doc_id, None, outcome.message, failure)
    return PoolGrade(passage.id, passage.doc_id, outcome.value.grade, outcome.value.reason)
