"""The quality of a judge by step: counts, which merge to the same numbers in any order, and warnings.

An item is a question about one query. Some are asked several times, to measure how consistent the judge is; known
items are counted separately.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.known_items import is_near_chance
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import Claim, ClaimsStep
from rankbeam.transforms.judge.steps.criterion import CriterionStep, in_both_orders, is_example
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.kernels.statistics.agreement import pair_agreement, value_variance
from rankbeam.transforms.kernels.wording import longest_common_run, words
from rankbeam.transforms.records.judging.answers import EvaluatedItem, Judgement
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens


@dataclass(frozen=True)
class StepQuality:
    """The quality of the judge in one step."""

    items: int = 0
    failed: int = 0
    repeated: int = 0
    compared: int = 0
    agreement: Fraction = Fraction()
    variance: Fraction = Fraction()  # sum over compared items of the variance of their values, from 0 to 1
    versions: Mapping[str, int] = field(default_factory=dict)
    tokens: Tokens = NO_TOKENS
    attempts: int = 0
    known: Mapping[str, str | None] = field(default_factory=dict)
    claims: int = 0
    unplaced: int = 0
    pairs: int = 0  # of answers that were compared in both orders
    changed: int = 0  # of them, those whose verdict changed with the order
    examples: int = 0  # items that are also examples in the prompt

    def merge(self, other: "StepQuality") -> "StepQuality":
        numbers = [entry.name for entry in fields(self) if entry.name not in ("versions", "known")]
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        versions = Counter(self.versions) + Counter(other.versions)
        return StepQuality(**sums, versions=versions, known={**self.known, **other.known})


class JudgeOfStep(NamedTuple):
    """A step, and the service of the judge that was asked."""

    step: str
    judge: str = ""


@dataclass(frozen=True)
class Quality:
    """The quality of the judges, by step and service."""

    steps: Mapping[JudgeOfStep, StepQuality] = field(default_factory=dict)
    doubtful_references: int = 0

    @classmethod
    def of(cls, evaluated: EvaluatedItem) -> "Quality":
        items: defaultdict[tuple[JudgeOfStep, Any, Any], list[Judgement]] = defaultdict(list)
        steps: defaultdict[JudgeOfStep, StepQuality] = defaultdict(StepQuality)
        for judgement in evaluated.judgements:
            key = JudgeOfStep(judgement.step, judgement.judge)
            step = step_named(judgement.step)
            if judgement.known is not None:
                answer = None if judgement.verdict is None else step.known_class(judgement.verdict)
                steps[key] = steps[key].merge(StepQuality(known={judgement.known.id: answer}))
            elif not step.embeds:
                items[key, judgement.texts, judgement.items].append(judgement)
        for (key, _, _), judgements in items.items():
            steps[key] = steps[key].merge(_of_item(judgements))
        for key in [key for key in steps if key.step.startswith(f"{CriterionStep.name}:")]:
            pairs, changed = in_both_orders(one for one in evaluated.judgements if (one.step, one.judge) == key)
            examples = sum(is_example(judged[0]) for (owner, _, _), judged in items.items() if owner == key)
            steps[key] = replace(steps[key], pairs=pairs, changed=changed, examples=examples)
        is_doubtful = any(value.reason == Undefined.REFERENCE_REFUSES for value in evaluated.values)
        return cls(dict(steps), int(is_doubtful))

    def merge(self, other: "Quality") -> "Quality":
        merged = dict(self.steps)
        for step, quality in other.steps.items():
            merged[step] = merged.get(step, StepQuality()).merge(quality)
        return Quality(merged, self.doubtful_references + other.doubtful_references)


def _of_item(judgements: Sequence[Judgement]) -> StepQuality:
    versions = Counter(judgement.model_version for judgement in judgements if judgement.model_version)
    claim_lists = [judgement.verdict or () for judgement in judgements if judgement.step == ClaimsStep.name]
    claims: list[Claim] = [claim for claim_list in claim_lists for claim in claim_list]
    counted = StepQuality(
        items=1,
        failed=int(any(judgement.verdict is None for judgement in judgements if not judgement.is_repeat)),
        versions=versions,
        tokens=sum((judgement.tokens for judgement in judgements), NO_TOKENS),
        attempts=sum(judgement.attempts for judgement in judgements),
        claims=len(claims),
        unplaced=sum(claim.start is None for claim in claims),
    )
    step = step_named(judgements[0].step)
    verdicts = [step.verdicts(judgement.verdict) for judgement in judgements if judgement.verdict is not None]
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


Row = Mapping[str, Any]


def warnings_of(quality: pa.Table, confidence: float, *, strict: bool) -> Iterator[str]:
    """Warnings about several versions of a judge, wrong verdicts on known items, and changes since earlier weeks."""
    rows = quality.to_pylist()
    if (mixture := mixed_versions(rows)) and not strict:
        yield mixture
    for row in rows:
        if problem := near_chance(row):
            yield f"{problem}: its verdicts are not reliable; use another model, or other prompts (judge.prompts)"
        p_value = row["drift_p_value"]
        if p_value is not None and p_value < 1.0 - confidence:
            right = f"{row['sentinels_right']} of {row['sentinels']} known items of {row['step']} right"
            since = f"the judge {row['judge']} has changed since {row['drift_since']}"
            advice = "compare with earlier runs only if both were judged again"
            yield f"{since}: {right} (p = {p_value:.2g}); {advice}"


def near_chance(row: Row) -> str:
    """Describe a judge's accuracy if it is near chance; else "".

    >>> of = lambda right: {"step": "support", "judge": "m", "sentinels": 24, "sentinels_right": right,
    ...     "sentinel_accuracy": right / 24, "sentinel_low": right / 24 - 0.1}
    >>> near_chance(of(9)), near_chance(of(22))
    ('the judge m got 9 of 24 known items of support right, which is near chance', '')
    """
    if not row["sentinels"] or not is_near_chance(row["step"], row["sentinel_accuracy"], row["sentinel_low"]):
        return ""
    right = f"{row['sentinels_right']} of {row['sentinels']} known items of {row['step']} right"
    return f"the judge {row['judge']} got {right}, which is near chance"


def notes_of(quality: Quality, judges: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield warnings about doubtful reference answers, failed judgements, and quotes that their texts do not contain.

    >>> from rankbeam.transforms.judge.quality import JudgeOfStep
    >>> list(notes_of(Quality({JudgeOfStep("claims"): StepQuality(claims=90, unplaced=2)})))
    ['2 of 90 claims quote words that are not in their text; they count, but have no position in it']
    """
    if count := quality.doubtful_references:
        what = f"reference answers that refuse or make no claim, without `answerable`: {count:,}"
        yield f"{what}; ClaimF1 and AnswerCorrectness are undefined there: add answerable: true or false to each"
    claims = StepQuality()
    for key, counted in quality.steps.items():
        claims = claims.merge(counted) if key.step == ClaimsStep.name else claims
    if claims.unplaced:
        what = f"{claims.unplaced:,} of {claims.claims:,} claims quote words that are not in their text"
        yield f"{what}; they count, but have no position in it"
    for key, counted in sorted(quality.steps.items()):
        if counted.failed and len(judges) > 1:
            what = f"{judges[key.judge]} failed in {counted.failed:,} of {counted.items:,} judgements of {key.step}"
            yield f"{what}; the majority has a value there only if the other judges decide it, else it has failed, too"
        if counted.changed:
            what = f"{key.step}: the verdict changed with the order of the answers in {counted.changed:,} of"
            yield f"{what} {counted.pairs:,} pairs; these count as ties"
        if counted.examples:
            what = (
                f"{key.step}: {counted.examples:,} of {counted.items:,} judged items are examples in the judge's prompt"
            )
            yield f"{what}, with their verdicts; take other texts, or the judge seems better than it is"


def mixed_versions(rows: Sequence[Row]) -> str:
    """A warning that several versions of one judge gave the verdicts; "" if there was only one.

    >>> of = lambda *given: {"judge": "m", "model_versions": [dict(model_version=n, judgements=c) for n, c in given]}
    >>> mixed_versions([of(("m-1", 9)), of(("m-1", 1), ("m-2", 3))])
    'verdicts of 2 versions of the judge m, in one comparison: m-1 (10), m-2 (3)'
    """
    return "; ".join(filter(None, (_mixture(judge, judge_rows) for judge, judge_rows in by_judge(rows).items())))


def by_judge(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return grouped((row["judge"], row) for row in rows)


def _mixture(judge: str, rows: Sequence[Row]) -> str:
    total: Counter[str] = Counter()
    for row in rows:
        total.update({version["model_version"]: version["judgements"] for version in row["model_versions"]})
    if len(total) < 2:
        return ""
    counts = ", ".join(f"{name} ({count:,})" for name, count in sorted(total.items()))
    return f"verdicts of {len(total)} versions of the judge {judge}, in one comparison: {counts}"


def self_preference(judges: Sequence[Model], answering: Mapping[str, Model]) -> Iterator[str]:
    """A warning that models are judged by one of their own family, which tends to prefer their answers."""
    for judge in judges:
        names = [name for name, model in answering.items() if is_of_one_family(judge, model)]
        others = [other.name for other in judges if not is_of_one_family(judge, other) and not other.parameters.offline]
        if names:
            what = f"{judge.parameters.model} judges answers of its own family ({judge.parameters.family})"
            advice = (
                f"compare with judge={others[0]}" if others else "add a judge of another family: judge: [ONE, OTHER]"
            )
            yield f"{what}, and may prefer them: {', '.join(names)}; {advice}"


def circularity(judge: Judge, answering: Mapping[int, AnswerGenerator], names: Sequence[str]) -> Iterator[str]:
    """A warning that the judge that fills holes grades models of its own family, or templates that quote its prompt."""
    related = [names[place] for place, answerer in answering.items() if is_of_one_family(judge.model, answerer.model)]
    if related:
        what = (
            f"holes=llm: the judge's grades may favour texts of models of its family ({judge.model.parameters.family})"
        )
        yield f"{what} choose: {', '.join(related)}"
    prompt = words(judge.templates[GradeStep.name].text)
    for place, answerer in answering.items():
        common = longest_common_run(words(answerer.generation.template), prompt)
        if common >= LONGEST_QUOTE:
            what = f"holes=llm: the template of {names[place]} has {common} consecutive words of the judge's prompt"
            yield f"{what}, so that it may be tuned to the judge"


LONGEST_QUOTE = 13  # a template with this many consecutive words of the judge's prompt quotes it


def is_of_one_family(one: Model, other: Model) -> bool:
    """Return whether two language models are of the same family; offline models have none."""
    parameters = one.parameters, other.parameters
    return not any(parameter.offline for parameter in parameters) and parameters[0].family == parameters[1].family
