"""Selection of written items: no near-duplicates, no more than the plan asks for, nothing answered elsewhere."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.records.items import Made, Pooled, Reason, State
from rankbeam.transforms.goldens.records.types import UNANSWERABLE
from rankbeam.transforms.kernels.judged import USEFUL_GRADE
from rankbeam.transforms.kernels.minhash import first_alike
from rankbeam.transforms.kernels.search.nearest import Vectors, first_near


@dataclass(frozen=True)
class Likeness:
    """The near-duplicate questions: those with similar wording, or with similar embeddings where these exist."""

    vectors: Vectors = field(default_factory=dict)
    least_cosine: float = 1.0

    def first(self, questions: Sequence[str]) -> list[int]:
        """For every question the place of the first one that it is a near-duplicate of; else its own."""
        return first_near(questions, self.vectors, self.least_cosine, first_alike(questions))


_WORDING = Likeness()


def screened(
    plan: GoldensPlan,
    before: Sequence[Made],
    accepted: Sequence[Made],
    new: Sequence[Made],
    likeness: Likeness = _WORDING,
) -> list[Made]:
    """New items, of which near-duplicates and those above the quotas are rejected."""
    candidates = sorted((item for item in new if item.state is State.ACCEPTED), key=lambda item: item.item_id)
    every = [*accepted, *candidates]
    same = likeness.first([item.question for item in every])[len(accepted) :]
    lacking = Counter(plan.shortfalls(before, {item.item_id for item in accepted}))
    verdicts: dict[str, Made] = {}
    for item, (place, first) in zip(candidates, enumerate(same, start=len(accepted)), strict=True):
        if first != place:
            detail = f"a near-duplicate of {every[first].item_id}: {every[first].question}"
            verdicts[item.item_id] = rejected(item, Reason.DUPLICATE, detail)
        elif lacking[plan.cell(item)] <= 0:
            verdicts[item.item_id] = rejected(item, Reason.SURPLUS, "its stratum has all the questions of its type")
        else:
            lacking[plan.cell(item)] -= 1
    return [verdicts.get(item.item_id, item) for item in new]


def graded(new: Sequence[Made], pooled: Mapping[str, Pooled]) -> list[Made]:
    """New items, of which those called unanswerable that some passage answers are rejected."""
    return [_graded(item, pooled[item.item_id]) if item.item_id in pooled else item for item in new]


def _graded(item: Made, pooled: Pooled) -> Made:
    failed = next((one for one in pooled.grades if one.failure is not None), None)
    if failed is not None:
        detail = f"the grade of {failed.span}: {failed.failure}: {failed.reason}"
        return replace(item, state=State.FAILED, detail=detail, failure=failed.failure)
    answering = next((one for one in pooled.grades if (one.grade or 0) >= USEFUL_GRADE), None)
    if item.type == UNANSWERABLE and answering is not None:
        detail = f"{answering.span} has grade {answering.grade}: {answering.reason}"
        return rejected(item, Reason.ANSWERED_ELSEWHERE, detail)
    return item


def rejected(item: Made, reason: Reason, detail: str) -> Made:
    return replace(item, state=State.REJECTED, reason=reason, detail=detail)
