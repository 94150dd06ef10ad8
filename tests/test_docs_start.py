"""The commented experiment of the first page is valid and runs, as do the other examples of the repository."""

import re
import shutil
import tomllib
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
        if path.parent.name in ("app", "helpdesk"):
            continue  # one needs its application: tests/endtoend/test_example_application.py, and test_outputs.py
        result = rankbeam("evaluate", path, "--output", examples / "out")
        assert result.exit_code == 0, result.stderr


def test_commands_of_the_readme_do_not_overwrite_each_other_s_results() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"rankbeam evaluate (\S+)(?: --output (\S+))?", text)
    (demo,) = re.findall(r"evaluate examples/helpdesk/answers\.yaml --output (\S+)$", makefile, flags=re.MULTILINE)
    outputs = [demo, "out/judge", *(output or str(Path(path).parent / "out") for path, output in commands)]
    assert len(commands) == 2
    assert len(set(outputs)) == len(outputs)


def test_figures_of_the_readme_are_those_of_both_machines() -> None:
    readme, speed = (
        " ".join((REPOSITORY / name).read_text(encoding="utf-8").split()) for name in ("README.md", "docs/speed.md")
    )
    seconds = r"([\d.]+) to ([\d.]+) s"
    figures = re.search(rf"9\.65 million results in {seconds}, where pytrec_eval takes {seconds}", readme)
    assert figures is not None
    ours = re.findall(r"\| \*\*rankbeam\*\* [^|]*\| \*\*([\d.]+)\*\*", speed)[0]  # the first table
    theirs = re.findall(r"\| pytrec_eval \| ([\d.]+) ", speed)[0]
    elsewhere = re.findall(
        r"rankbeam took ([\d.]+) s from Parquet and [\d.]+ s from TREC text, pytrec_eval ([\d.]+) s", speed
    )
    ((ours_elsewhere, theirs_elsewhere),) = elsewhere
    ranges = [sorted([ours, ours_elsewhere], key=float), sorted([theirs, theirs_elsewhere], key=float)]
    assert [*figures.groups()] == [number for both in ranges for number in both]


def test_the_table_of_extras_has_all_of_them() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {*project["optional-dependencies"]} - {"test", "benchmark", "docs", "dev"}
    text = (REPOSITORY / "docs" / "start.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `'rankbeam\[([\w-]+)\]'` \|", text, flags=re.MULTILINE)) == extras
