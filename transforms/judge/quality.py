"""The quality of a judge by step: counts that merge in any order to the same numbers.

An item is a question about one query. Some are asked several times, to show how far the judge repeats itself; known
items are counted apart.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import Claim, ClaimsStep
from rankbeam.transforms.judge.steps.criterion import CriterionStep, in_both_orders
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.kernels.statistics.agreement import pair_agreement, value_variance
from rankbeam.transforms.records.judging.evaluated import Evaluated, Judgement
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens


@dataclass(frozen=True)
class StepQuality:
    """The quality of the judge in one step."""

    items: int = 0
    failed: int = 0
    repeated: int = 0
    compared: int = 0
    agreement: Fraction = Fraction()
    variance: Fraction = Fraction()  # sum over these of the variance of their values, from 0 to 1
    versions: Mapping[str, int] = field(default_factory=dict)
    tokens: Tokens = NO_TOKENS
    known: Mapping[str, str | None] = field(default_factory=dict)
    claims: int = 0
    unplaced: int = 0
    pairs: int = 0  # of answers that were compared in both orders
    changed: int = 0  # of them, those whose verdict changed with the order

    def merge(self, other: "StepQuality") -> "StepQuality":
        return StepQuality(
            self.items + other.items,
            self.failed + other.failed,
            self.repeated + other.repeated,
            self.compared + other.compared,
            self.agreement + other.agreement,
            self.variance + other.variance,
            Counter(self.versions) + Counter(other.versions),
            self.tokens + other.tokens,
            {**self.known, **other.known},
            self.claims + other.claims,
            self.unplaced + other.unplaced,
            self.pairs + other.pairs,
            self.changed + other.changed,
        )


class JudgeOfStep(NamedTuple):
    """A step, and the service of a judge that it was asked of."""

    step: str
    judge: str = ""


@dataclass(frozen=True)
class Quality:
    """The quality of the judges, by step and service."""

    steps: Mapping[JudgeOfStep, StepQuality] = field(default_factory=dict)
    doubtful_references: int = 0

    @classmethod
    def of(cls, evaluated: Evaluated) -> "Quality":
        """The counts from the judgements of one query, or of known items."""
        items: defaultdict[tuple[JudgeOfStep, Any, Any], list[Judgement]] = defaultdict(list)
        steps: defaultdict[JudgeOfStep, StepQuality] = defaultdict(StepQuality)
        for judgement in evaluated.judgements:
            key = JudgeOfStep(judgement.step, judgement.judge)
            if judgement.known is not None:
                steps[key] = steps[key].merge(_of_known(judgement))
            elif not step_named(judgement.step).embeds:
                items[key, judgement.texts, judgement.items].append(judgement)
        for (key, _, _), judgements in items.items():
            steps[key] = steps[key].merge(_of_item(judgements))
        for key in [key for key in steps if key.step.startswith(f"{CriterionStep.name}:")]:
            pairs, changed = in_both_orders(one for one in evaluated.judgements if (one.step, one.judge) == key)
            steps[key] = replace(steps[key], pairs=pairs, changed=changed)
        is_doubtful = any(value.reason == Undefined.REFERENCE_REFUSES for value in evaluated.values)
        return cls(dict(steps), int(is_doubtful))

    def merge(self, other: "Quality") -> "Quality":
        merged = dict(self.steps)
        for step, quality in other.steps.items():
            merged[step] = merged.get(step, StepQuality()).merge(quality)
        return Quality(merged, self.doubtful_references + other.doubtful_references)

    @property
    def versions(self) -> Mapping[str, int]:
        total: Counter[str] = Counter()
        for quality in self.steps.values():
            total.update(quality.versions)
        return dict(sorted(total.items()))


def _of_known(judgement: Judgement) -> StepQuality:
    assert judgement.known is not None  # noqa: S101  as the caller made sure
    answer = None if judgement.said is None else step_named(judgement.step).known_class(judgement.said)
    return StepQuality(known={judgement.known.id: answer})


def _of_item(judgements: Sequence[Judgement]) -> StepQuality:
    versions = Counter(judgement.model_version for judgement in judgements if judgement.model_version)
    of_claims = [judgement.said or () for judgement in judgements if judgement.step == ClaimsStep.name]
    claims: list[Claim] = [claim for of_claim in of_claims for claim in of_claim]
    counted = StepQuality(
        items=1,
        failed=int(any(judgement.said is None for judgement in judgements if not judgement.is_repeat)),
        versions=versions,
        tokens=sum((judgement.tokens for judgement in judgements), NO_TOKENS),
        claims=len(claims),
        unplaced=sum(claim.start is None for claim in claims),
    )
    step = step_named(judgements[0].step)
    verdicts = [step.verdicts(judgement.said) for judgement in judgements if judgement.said is not None]
    if not step.judges or len(verdicts) < 2 or not all(verdicts):
        return counted
    parts = list(zip(*verdicts, strict=True))
    return replace(
        counted,
        repeated=1,
        compared=len(parts),
        agreement=sum((pair_agreement([one.name for one in part]) for part in parts), Fraction()),
        variance=sum((value_variance([one.score for one in part]) for part in parts), Fraction()),
    )
