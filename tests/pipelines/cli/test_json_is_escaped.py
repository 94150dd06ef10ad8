"""JSON on the terminal: characters of names that act on terminals are escaped in every command that prints it."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write

NAME = "a\x9b31m"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("escaped")
    write(folder / "qrels", trec_qrels([("q1", "d1", 1), ("q2", "d2", 1)]))
    runs = {NAME: [("q1", "d1", 1.0), ("q2", "d1", 1.0)], "b": [("q1", "d2", 1.0), ("q2", "d1", 1.0)]}
    paths = {name: write(folder / f"run{len(name)}", trec_run(rows)) for name, rows in runs.items()}
    model = {
        "name": NAME,
        "dataset": {"qrels": "qrels"},
        "configurations": [
            {"name": name, "retriever": {"type": "run_file", "path": path}} for name, path in paths.items()
        ],
        "metrics": ["RR"],
        "gates": [{"metric": "RR", "configuration": NAME, "at_least": 0.1}],
        "output": {"path": "out"},
    }
    path = folder / "e.yaml"
    write(path, json.dumps(model))
    outcome = rankbeam("evaluate", str(path), "--run-id", "r")
    assert outcome.status == 0, outcome.stderr
    return path


@pytest.mark.parametrize("command", ["evaluate", "plan", "compare", "gate", "runs"])
def test_a_name_is_escaped(experiment: Path, command: str) -> None:
    target = experiment if command in ("evaluate", "plan") else experiment.parent / "out"
    outcome = rankbeam(command, str(target), "--format", "json")
    assert outcome.status == 0, outcome.stderr
    assert "\x9b" not in outcome.stdout + outcome.stderr
    assert "a\\u009b31m" in outcome.stdout
    json.loads(outcome.stdout)
