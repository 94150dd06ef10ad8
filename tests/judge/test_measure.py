"""Figures of a run about its judge, from a scripted judge to the table."""

import math
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import pytest
from support.oracle import DEPTH, TOKENS, Script, install, judged
from support.runs import run_experiment

from rankbeam.pipelines.results.run import Results

COMMON = {"run_id", "experiment", "started_at"}


def quality(results: Results) -> list[dict[str, Any]]:
    rows = results.table("judge_quality").to_pylist()
    return [{name: value for name, value in row.items() if name not in COMMON} for row in rows]


def test_a_run_says_exactly_how_its_judge_repeated_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, Script())
    experiment = judged(tmp_path, queries=10, broken=4, repeat_share=1.0)
    experiment["quotas"] = {"judge": {"requests_per_minute": 1e6, "price_per_million": {"input": 2.0, "output": 5.0}}}
    (row,) = quality(run_experiment(tmp_path, experiment))
    grades = [[number % 4, number % 4, (number + 1) % 4] for number in range(4, 10 * DEPTH)]
    attempts = 3 * 26 + 3 * 4 * 3  # each of four items fails three times in each of three samples
    assert {name: value for name, value in row.items() if name not in ("prompt_hash", "within_sd")} == {
        "step": "grade", "judge": "oracle", "model_version": "oracle-1",
        "model_versions": [{"model_version": "oracle-1", "judgements": 78}],
        "items": 30, "failed": 4, "repeated": 26, "compared": 26, "agreement": 1 / 3,
        "sentinels": 0, "sentinels_right": None, "sentinel_accuracy": None, "sentinel_low": None,
        "sentinel_high": None, "sentinel_groups": [], "drift_since": None, "drift_p_value": None,
        "input_tokens": attempts * TOKENS.input, "cached_tokens": attempts * TOKENS.cached,
        "output_tokens": attempts * TOKENS.output, "cost": attempts * (10 * 2.0 + 3 * 5.0) / 1e6,
    }  # fmt: skip
    by_hand = fmean(variance([grade / 3 for grade in of_item]) for of_item in grades)
    assert row["within_sd"] == pytest.approx(math.sqrt(by_hand), rel=1e-12)
