"""Whose calls failed, and why: a fusion has the failures of its parts, and what is cut from another none."""

from pathlib import Path

import pytest
from support.finished import experiment, install, ranks
from support.pages import Page
from support.runs import run_experiment

from rankbeam.pipelines import report
from rankbeam.pipelines.report import coverage
from rankbeam.pipelines.report.study import Study
from rankbeam.transforms.clients.parameters import registered


def test_failures_stand_with_the_calls_and_with_the_fusion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    path = experiment(tmp_path, {"a": ranks(1, 2, q01=-1, q02=-1), "b": ranks(1, q02=-2)}, grid={"top_k": [5, 20]})
    path["configurations"].append({"name": "fused", "retriever": {"type": "fusion", "parts": ["a", "b"]}})
    results = run_experiment(tmp_path, path)
    failures = coverage.failures(Study(results))
    assert (failures.kinds, failures.total) == (["quota", "timeout"], 3)
    assert failures.counts == [("a:top_k=20", [2, 0]), ("b:top_k=20", [0, 1]), ("fused:top_k=20", [2, 1])]
    assert "3 failed calls, by kind; a fusion has those of its parts" in Page.of(report.build(results)).text
    registered.cache_clear()
