"""`rankbeam runs`: the finished runs of a folder, the latest last, each with its best configuration."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write

EXPERIMENT = """\
name: own
dataset: {{qrels: qrels}}
configurations:
  - {{name: wrong, retriever: {{type: run_file, path: wrong.run}}}}
  - {{name: right, retriever: {{type: run_file, path: right.run}}}}
metrics: [RR, P@1]
gates: [{{metric: RR, configuration: {gated}, at_least: 0.5}}]
output: {{path: out}}
"""


def experiment(folder: Path, gated: str) -> str:
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0), ("q2", "d2", 1.0)]))
    write(folder / "right.run", trec_run([("q1", "d1", 1.0), ("q2", "d1", 2.0), ("q2", "d2", 1.0)]))
    write(folder / "wrong.run", trec_run([("q1", "d2", 1.0), ("q2", "d1", 1.0)]))
    return write(folder / "e.yaml", EXPERIMENT.format(gated=gated))


@pytest.mark.long
def test_runs_are_listed_with_their_best_configuration_and_state(tmp_path: Path) -> None:
    assert rankbeam("evaluate", experiment(tmp_path, "right"), "--run-id", "z-first").status == 0
    assert rankbeam("evaluate", experiment(tmp_path, "wrong"), "--run-id", "a-second").status == 3
    out = str(tmp_path / "out")
    head, _, first, second = rankbeam("runs", out).stdout.splitlines()
    assert head.split()[3:] == ["experiment", "state", "best", "metric", "value", "configurations", "queries", "cost"]
    assert first.split()[0] == "z-first"
    assert first.split()[3:] == ["own", "done", "right", "RR", "0.7500", "2", "2", "-"]
    assert second.split()[0] == "a-second"
    assert second.split()[3:5] == ["own", "missed"]
    listed = json.loads(rankbeam("runs", out, "--format", "json").stdout)["runs"]
    assert [(row["run_id"], row["best"], row["value"], row["cost"]) for row in listed] == [
        ("z-first", "right", 0.75, None),
        ("a-second", "right", 0.75, None),
    ]
    assert listed[0]["started_at"] < listed[1]["started_at"]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    outcome = rankbeam("runs", str(tmp_path))
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr == f"rankbeam: {tmp_path}: holds no finished run\n"


def test_the_folder_above_the_output_is_refused_with_the_output(tmp_path: Path) -> None:
    assert rankbeam("evaluate", experiment(tmp_path, "right")).status == 0
    for command in ("runs", "report", "compare"):
        outcome = rankbeam(command, str(tmp_path))
        assert outcome.status == 2
        assert f"holds no finished run; did you mean '{tmp_path / 'out'}'?" in outcome.stderr
