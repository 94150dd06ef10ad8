"""`--output` is enough to name the folder for results, and a run that ends early leaves nothing in it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.inputs import trec_qrels, trec_run, write
from support.processes import COMMAND
from support.runs import rankbeam

import rankbeam as api
from rankbeam.pipelines.run.evaluate import delete_rows

REFUSED = 2


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, object]:
    """An experiment that names no folder for its results."""
    qrels = write(tmp_path / "qrels.txt", trec_qrels([("q", "d", 1.0)]))
    run = write(tmp_path / "a.run", trec_run([("q", "d", 1.0)]))
    return {
        "name": "e",
        "dataset": {"qrels": qrels},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": run}}],
        "metrics": ["RR"],
    }


@pytest.mark.long
def test_output_stands_in_for_what_the_file_does_not_say(settings: dict[str, object], tmp_path: Path) -> None:
    path = write(tmp_path / "e.yaml", yaml.safe_dump(settings))
    assert rankbeam("evaluate", path).exit_code == 0
    assert (tmp_path / "out" / "e" / "report.html").exists()  # out/NAME beside the experiment
    refused = rankbeam("evaluate", write(tmp_path / "f.yaml", yaml.safe_dump({**settings, "name": "../e"})))
    assert (refused.exit_code, "output: is missing" in refused.stderr) == (REFUSED, True)
    outcome = rankbeam("evaluate", path, "--output", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.stderr
    assert (tmp_path / "out" / "report.html").exists()
    result = api.evaluate(path, output=tmp_path / "api", statistics={"replicates": 0})
    assert result.output == str(tmp_path / "api")


def test_wrong_keys_of_output_are_refused_all_the_same(settings: dict[str, object], tmp_path: Path) -> None:
    for output, problem in (({"pth": "out"}, "pth: unknown key"), ("out", "output")):
        path = write(tmp_path / "e.yaml", yaml.safe_dump({**settings, "output": output}))
        refused = rankbeam("evaluate", path, "--output", tmp_path / "out")
        assert (refused.exit_code, problem in refused.stderr) == (REFUSED, True)


def test_rows_are_deleted_with_the_folders_that_only_they_were_in(tmp_path: Path) -> None:
    for folder in ("configurations/r1", "runs/r1", "runs/r2", "ledger"):
        (tmp_path / folder).mkdir(parents=True)
    delete_rows(str(tmp_path), "r1")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["ledger", "runs", "runs/r2"]


def test_a_result_that_would_be_neither_shown_nor_kept_is_refused() -> None:
    closing = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", COMMAND, "score", "qrels.txt", "a.run"]
    done = subprocess.run(closing, check=False, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == REFUSED
    assert "stdout is closed, so without --output the results would be lost" in done.stderr
