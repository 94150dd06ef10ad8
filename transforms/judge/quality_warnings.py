"""Warnings about a judge, from its rows of the table `judge_quality`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from rankbeam.transforms.judge.answering import Answering
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.known_items import is_near_chance
from rankbeam.transforms.judge.quality import Quality, StepQuality
from rankbeam.transforms.judge.steps.claims import ClaimsStep
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.kernels.wording import longest_common_run, words

Row = Mapping[str, Any]


def warnings_of(quality: pa.Table, confidence: float, *, strict: bool) -> Iterator[str]:
    """That several versions judged, and that the judge is wrong on known items, or answers otherwise than before."""
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
    """Return what a judge got right, if that is near chance; else "".

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
    """Yield warnings of doubtful reference answers, judges that failed, and quotes that are not in their texts.

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


def mixed_versions(rows: Sequence[Row]) -> str:
    """That verdicts are of several versions of one judge, for people; "" where they are of one.

    >>> of = lambda *given: {"judge": "m", "model_versions": [dict(model_version=n, judgements=c) for n, c in given]}
    >>> mixed_versions([of(("m-1", 9)), of(("m-1", 1), ("m-2", 3))])
    'verdicts of 2 versions of the judge m, in one comparison: m-1 (10), m-2 (3)'
    """
    return "; ".join(filter(None, (_mixture(judge, of_judge) for judge, of_judge in by_judge(rows).items())))


def by_judge(rows: Sequence[Row]) -> dict[str, list[Row]]:
    result: dict[str, list[Row]] = {}
    for row in rows:
        result.setdefault(row["judge"], []).append(row)
    return result


def _mixture(judge: str, rows: Sequence[Row]) -> str:
    total: Counter[str] = Counter()
    for row in rows:
        total.update({version["model_version"]: version["judgements"] for version in row["model_versions"]})
    if len(total) < 2:
        return ""
    counts = ", ".join(f"{name} ({count:,})" for name, count in sorted(total.items()))
    return f"verdicts of {len(total)} versions of the judge {judge}, in one comparison: {counts}"


def self_preference(judges: Sequence[Model], answering: Mapping[str, Model]) -> Iterator[str]:
    """That models are judged by one of their own family, which tends to prefer their answers."""
    for judge in judges:
        names = [name for name, model in answering.items() if is_of_one_family(judge, model)]
        others = [other.name for other in judges if not is_of_one_family(judge, other) and not other.parameters.offline]
        if names:
            what = f"{judge.parameters.model} judges answers of its own family ({judge.parameters.family})"
            advice = (
                f"compare with judge={others[0]}" if others else "add a judge of another family: judge: [ONE, OTHER]"
            )
            yield f"{what}, and may prefer them: {', '.join(names)}; {advice}"


def circularity(judge: Judge, answering: Mapping[int, Answering], names: Sequence[str]) -> Iterator[str]:
    """That a judge that fills holes grades for models of its own family, or for templates that quote its prompt."""
    of_family = [names[place] for place, answerer in answering.items() if is_of_one_family(judge.model, answerer.model)]
    if of_family:
        what = (
            f"holes=llm: the judge's grades may favour texts of models of its family ({judge.model.parameters.family})"
        )
        yield f"{what} choose: {', '.join(of_family)}"
    prompt = words(judge.templates[GradeStep.name].text)
    for place, answerer in answering.items():
        common = longest_common_run(words(answerer.generation.template), prompt)
        if common >= LONGEST_QUOTE:
            what = f"holes=llm: the template of {names[place]} has {common} consecutive words of the judge's prompt"
            yield f"{what}, so that it may be tuned to the judge"


LONGEST_QUOTE = 13
"""The number of words in a row from which a template quotes the judge's prompt."""


def is_of_one_family(one: Model, other: Model) -> bool:
    """Return whether two language models are of one family; offline ones are of none."""
    parameters = one.parameters, other.parameters
    return not any(parameter.offline for parameter in parameters) and parameters[0].family == parameters[1].family
