"""Means with holes filled by judges that were asked otherwise are marked where two runs are compared."""

from types import SimpleNamespace
from typing import Any

import pytest

from rankbeam.pipelines.results.judge_differences import judge_differences
from rankbeam.transforms.records.metrics.names import parse_metric


def run(prompt_hash: str) -> Any:
    row = {"step": "grade", "prompt_hash": prompt_hash, "model_version": "v1"}
    return SimpleNamespace(judge_quality=[row], named=f"run {prompt_hash}")


def test_only_metrics_with_holes_filled_depend_on_the_grades() -> None:
    metrics = ["nDCG@5", "nDCG(judged_only=True)@5", "nDCG(holes=llm)@5", "Faithfulness"]
    (sentence,) = judge_differences(run("a"), run("b"), metrics)
    assert sentence.startswith("nDCG(holes=llm)@5 is not quite comparable with run b: the prompts of the judge differ")
    assert not list(judge_differences(run("a"), run("a"), metrics))


@pytest.mark.parametrize("written", ["nDCG(holes=llm)@10", "P(rel=2,holes=llm)@5", "nDCG( holes = 'llm' )@10"])
def test_the_option_is_part_of_the_name(written: str) -> None:
    metric = parse_metric(written)
    assert metric.holes
    assert parse_metric(str(metric)) == metric
    assert metric.with_default("rel", 2.0).holes
