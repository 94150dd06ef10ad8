"""Bounds by assumptions about unjudged documents beside `Judged@k`: in tables, on screen and in the report."""

from pathlib import Path
from typing import Any

import pytest
from support.inputs import trec_qrels, trec_run, write
from support.pages import Page
from support.runs import rankbeam, run_experiment

from rankbeam.pipelines import report

QRELS = [("q1", "d1", 1.0), ("q2", "d2", 3.0), ("q2", "d3", 0.0)]
RUN = [("q1", "d1", 3.0), ("q1", "x", 2.0), ("q2", "y", 3.0), ("q2", "d3", 2.0), ("q2", "d2", 1.0)]


def experiment(folder: Path, metrics: list[str]) -> dict[str, Any]:
    write(folder / "qrels", trec_qrels(QRELS))
    write(folder / "a.run", trec_run(RUN))
    return {
        "dataset": {"qrels": "qrels"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}}],
        "metrics": metrics,
    }


@pytest.mark.long
def test_bounds_stand_beside_the_share_of_judged_documents(tmp_path: Path) -> None:
    results = run_experiment(tmp_path, experiment(tmp_path, ["P@2", "RR", "Judged@2", "Bpref"]))
    rows = {metric: row for (_, _, metric), row in results.means.items()}
    bounds = {metric: (row.mean, row.unjudged_lowest, row.unjudged_highest) for metric, row in rows.items()}
    assert bounds == {
        "P@2": (0.25, 0.25, 0.75),
        "RR": (pytest.approx(2 / 3), pytest.approx(2 / 3), 1.0),
        "Judged@2": (0.5, None, None),
        "Bpref": (rows["Bpref"].mean, None, None),
    }
    text = rankbeam("score", tmp_path / "qrels", tmp_path / "a.run", "-m", "P@2", "-m", "Judged@2").stdout
    assert "if unjudged documents were judged" in text
    assert "0.2500 to 0.7500" in text
    page = Page.of(report.build(results)).text
    assert "If unjudged documents were judged" in page
    assert "0.2500 to 0.7500" in page


@pytest.mark.long
def test_without_the_share_there_are_no_bounds(tmp_path: Path) -> None:
    results = run_experiment(tmp_path, experiment(tmp_path, ["P@2"]))
    assert {row.unjudged_highest for row in results.means.values()} == {None}
    assert "unjudged documents" not in rankbeam("score", tmp_path / "qrels", tmp_path / "a.run", "-m", "P@2").stdout


def test_a_metric_of_judged_documents_only_lies_between_its_bounds(tmp_path: Path) -> None:
    results = run_experiment(tmp_path, experiment(tmp_path, ["P(judged_only=True)@2", "Judged@2"]))
    row = next(iter(results.means.values()))
    assert row.mean is not None
    assert row.unjudged_lowest is not None
    assert row.unjudged_highest is not None
    assert row.unjudged_lowest <= row.mean <= row.unjudged_highest
