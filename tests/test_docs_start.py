"""The commented experiment of the first page is valid and runs, as do the other examples of the repository."""

import shutil
from pathlib import Path

import pytest
from support.data import REPOSITORY
from support.documents import page
from support.runs import rankbeam

from rankbeam.pipelines.experiment.load import load_experiment


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    return tmp_path / "examples"


def test_the_experiment_is_valid_and_runs(examples: Path) -> None:
    path = examples / "helpdesk" / "start.yaml"
    path.write_text(page("start").block("yaml").text, encoding="utf-8")
    assert len(load_experiment(str(path)).evaluation.configurations) == 6
    result = rankbeam("evaluate", path)
    assert result.exit_code == 0, result.stderr
    assert "bm25:top_k=10,b=0.4" in result.stdout
    assert "more documents than top_k" not in result.stderr


def test_the_other_examples_run(examples: Path) -> None:
    for path in sorted(examples.glob("*/experiment.yaml")):
        if path.parent.name == "app":
            continue  # needs its application: tests/endtoend/test_example_application.py
        result = rankbeam("evaluate", path, "--output", examples / "out")
        assert result.exit_code == 0, result.stderr
