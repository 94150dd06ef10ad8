"""Differences between two runs' judges: verdicts by other prompts or model versions cannot be compared."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_defined
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.kernels.grouping import grouped

_DIFFERENCES = {
    "prompt_hash": "the prompts of the judge differ (question, scale, examples or version)",
    "model_version": "the versions of the judge's model differ",
}


def judge_differences(run: Results, other: Results, metrics: Iterable[str]) -> Iterator[str]:
    """Sentences about metrics whose verdicts come from other prompts, or from another version of the model.

    Runs whose tables lack the prompts are left out.
    """
    if not run.judge_quality or not other.judge_quality:
        return
    names = list(dict.fromkeys(metrics))
    for column, sentence in _DIFFERENCES.items():
        ours, theirs = _by_step(run, column), _by_step(other, column)
        steps = {step for step in ours.keys() & theirs.keys() if ours[step] != theirs[step]}
        if differing := [name for name in names if steps & _steps(run, name)]:
            verb = "is" if len(differing) == 1 else "are"
            yield f"{', '.join(differing)} {verb} not quite comparable with {other.named}: {sentence}"


def judge_changes(runs: Iterable[Results], metric: str) -> list[str]:
    """Changes of a metric's judge between runs, in its prompts or its model's version: one sentence for each."""
    return [
        f"{run.run_id}: {sentence}"
        for earlier, run in pairwise(runs)
        for sentence in judge_differences(run, earlier, [metric])
    ]


def _steps(run: Results, name: str) -> set[str]:
    """The steps that a metric rests on, as `judge_quality` names them; empty without a judge.

    A judged metric that is not defined here may rest on all steps.
    """
    metrics = parse_defined([name])
    if not metrics and run.is_judged(name):
        return {row["step"] for row in run.judge_quality}
    filled = {GradeStep.name for metric in metrics if not isinstance(metric, JudgedMetric) and metric.holes}
    return filled | {step for metric in metrics if isinstance(metric, JudgedMetric) for step in metric.steps}


def _by_step(run: Results, column: str) -> dict[str, set[str]]:
    """The values of a column by step, without steps that have an unknown value."""
    values = grouped((row["step"], row[column]) for row in run.judge_quality)
    return {step: {value for value in own if value} for step, own in values.items() if None not in own}
