"""Every example in the documentation is run, and prints what the documentation says it prints."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from support.data import REPOSITORY
from support.runs import rankbeam

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.metrics.names import ALIASES, METRICS

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [block for block in _blocks("console") if block.startswith("$ rankbeam")]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the first command, which others look at."""
    output = tmp_path_factory.mktemp("evaluated") / "helpdesk"
    command = ("evaluate", REPOSITORY / "examples" / "helpdesk" / "experiment.yaml", "--output", output)
    assert rankbeam(*command).exit_code == 0
    return output


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: Path) -> Path:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    shutil.copytree(evaluated, tmp_path / "out" / "helpdesk")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.splitlines()[0])
@pytest.mark.usefixtures("examples")
def test_commands_print_what_is_shown(block: str) -> None:
    command, *shown = block.splitlines()
    result = rankbeam(*shlex.split(command.removeprefix("$ rankbeam ")))
    assert result.exit_code in (0, 3), result.stderr  # a gate is missed
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    assert [line.rstrip() for line in shown] == printed[: len(shown)]


def test_the_make_targets_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"`?make ([a-z]+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_experiment_is_valid_and_runs(examples: Path) -> None:
    block, _replay = _blocks("yaml")  # test_examples.py runs what judges answers that exist already
    path = examples / "examples" / "helpdesk" / "readme.yaml"
    path.write_text(block, encoding="utf-8")
    assert len(load_experiment(str(path)).evaluation.configurations) == 6
    result = rankbeam("evaluate", path)
    assert result.exit_code == 0, result.stderr
    assert "bm25:top_k=10,b=0.4" in result.stdout
    assert "more documents than top_k" not in result.stderr


@pytest.mark.usefixtures("examples")
def test_the_query_runs() -> None:
    rankbeam("evaluate", "examples/helpdesk/experiment.yaml", "--output", "out/helpdesk")
    (block,) = _blocks("sql")
    with duckdb.connect("out/helpdesk/results.duckdb", read_only=True) as connection:
        rows = connection.execute(block).fetchall()
    assert [value for _, _, value in rows] == sorted(value for _, _, value in rows)
    assert len(rows) == 5


def test_the_retriever_of_ones_own_works(examples: Path) -> None:
    """In a process of its own, as an installed package would be: entry points are read once."""
    (block,) = _blocks("python")
    package = examples / "site" / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "first.py").write_text(block, encoding="utf-8")
    registered = examples / "site" / "my_package-1.dist-info"
    registered.mkdir()
    (registered / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    (registered / "entry_points.txt").write_text("[rankbeam.retrievers]\nfirst = my_package.first:First\n")
    (examples / "queries.tsv").write_text("q1\tone\nq2\ttwo\n")
    (examples / "qrels.txt").write_text("q1 0 kb-q1 1\nq2 0 kb-q1 1\n")
    (examples / "own.yaml").write_text(
        "name: own\ndataset: {queries: queries.tsv, qrels: qrels.txt}\nmetrics: [RR]\noutput: {path: out}\n"
        "configurations: [{name: first, retriever: {type: first, prefix: kb-}}]\n"
    )
    command = [sys.executable, "-m", "rankbeam", "evaluate", "own.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(examples / "site")}
    done = subprocess.run(command, cwd=examples, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^first +0\.5000", done.stdout, flags=re.MULTILINE)


def test_the_other_examples_run(examples: Path) -> None:
    for path in sorted(examples.glob("examples/*/experiment.yaml")):
        result = rankbeam("evaluate", path, "--output", examples / "out")
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("name", [*METRICS, *ALIASES])
def test_every_metric_is_documented(name: str) -> None:
    documented = {match.partition("@")[0] for match in re.findall(r"`([A-Za-z_0-9]+(?:@k)?)`", README)}
    assert name in documented or name in ("RPrec", "BPref")  # two spellings that ir_measures accepts too


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_column_is_documented(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|.*$", README, flags=re.MULTILINE)
    for column in tables.TABLES[name].names:
        assert column in row or column in ("run_id", "experiment", "started_at"), column
