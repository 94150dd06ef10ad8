"""The default run is the latest of the requested experiment, and never the run itself."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.finished import finished, install, ranks
from support.inputs import write

from rankbeam.transforms.clients.warehouse import duckdb as warehouse

GATE = {"gates": [{"metric": "RR", "value": "difference", "at_least": -0.1}]}
SMALL = {"metrics": ["RR"], "slices": [], "statistics": {"replicates": 0}}
MET, MISSED, REFUSED = 0, 3, 2


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two runs of "search", the second one worse, and one of "ads" after them."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(folder, monkeypatch)
        finished(folder, {"base": ranks(1)}, "good", name="search", **SMALL)
        finished(folder, {"base": ranks(4, 4, 5)}, "bad", name="search", **SMALL)
        finished(folder, {"base": ranks(5)}, "other", name="ads", **SMALL)
        yield folder / "out"


def gated(folder: Path, *arguments: object) -> Outcome:
    path = write(folder / "gates.yaml", yaml.safe_dump(GATE))
    return rankbeam("gate", *map(str, arguments), "--experiment", path)


@pytest.mark.long
def test_a_run_that_is_in_the_baselines_place_already_is_not_its_own_baseline(output: Path, tmp_path: Path) -> None:
    shutil.copytree(output, tmp_path / "copy")
    for place in (output, tmp_path / "copy"):
        outcome = gated(tmp_path, output, "--run-id", "bad", "--baseline", place)
        assert outcome.status == MISSED
        assert "-0.7667" in outcome.stdout
        assert "differences are from run good of search, started 20" in outcome.stderr
        refused = gated(tmp_path, output, "--run-id", "bad", "--baseline", place, "--baseline-run-id", "bad")
        assert (refused.status, refused.stdout) == (REFUSED, "")
        assert f"{place}: both are run 'bad'; name another as --baseline-run-id" in refused.stderr
    alone = gated(tmp_path, output, "--run-id", "other", "--baseline", output)
    assert alone.status == REFUSED
    problem = "no other finished run of the experiment 'ads', but of search; name one with --baseline-run-id to compare"
    assert problem in alone.stderr


def test_a_baseline_of_another_experiment_is_named(output: Path, tmp_path: Path) -> None:
    named = (output, "--run-id", "other", "--baseline-run-id", "bad")
    assert gated(tmp_path, *named).status == MET
    document = json.loads(gated(tmp_path, *named, "--format", "json").stdout)
    assert (document["experiment"], document["baseline_run"]["experiment"]) == ("ads", "search")
    assert document["baseline_run"]["started_at"].startswith("20")
    assert "against run bad of search, started 20" in gated(tmp_path, *named, "--markdown", "-").stdout


def test_a_run_alone_has_no_baseline(output: Path, tmp_path: Path) -> None:
    for table in ("runs", "configurations", "configuration_metrics", "query_metrics"):
        shutil.copytree(output / table / "other", tmp_path / "out" / table / "other")
    refused = rankbeam("compare", str(tmp_path / "out"), str(output), "--run-id", "other")
    assert "holds no other finished run of the experiment 'ads'" in refused.stderr
    refused = rankbeam("compare", str(tmp_path / "out"), str(tmp_path / "out"))
    assert "holds only the run 'other', so there is nothing to compare it with" in refused.stderr


@pytest.mark.parametrize("command", ["report", "compare", "gate", "warehouse load"])
def test_the_latest_run_of_a_folder_is_that_of_the_experiment_asked_about(
    output: Path, tmp_path: Path, command: str
) -> None:
    page = tmp_path / "page.html"
    more = {
        "report": ["--output", str(page)],
        "compare": ["--baseline-run-id", "good", "--format", "json"],
        "gate": ["--baseline-run-id", "good", "--experiment", write(tmp_path / "g.yaml", yaml.safe_dump(GATE))],
        "warehouse load": ["--dataset", "nowhere"],
    }[command]
    words = [*command.split(), str(output), *more]
    refused = rankbeam(*words)
    assert refused.status == REFUSED
    assert f"{output}: holds runs of 2 experiments (ads, search); choose one with --experiment-name" in refused.stderr
    unknown = rankbeam(*words, "--experiment-name", "seach")
    assert "no finished run of the experiment 'seach'; there are runs of ads, search" in unknown.stderr
    outcome = rankbeam(*words, "--experiment-name", "search")
    if command == "report":
        assert "run <bdi>bad</bdi>" in page.read_text()
    elif command == "compare":
        assert json.loads(outcome.stdout)["run"]["run_id"] == "bad"
    elif command == "gate":
        assert outcome.status == MISSED
    else:
        assert "'nowhere' is not a BigQuery dataset" in outcome.stderr


def test_an_experiment_that_holds_the_gates_says_which_runs_are_meant(output: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "experiment.yaml", yaml.safe_dump({"name": "search", **GATE}))
    outcome = rankbeam("gate", str(output), "--experiment", path, "--baseline", str(output))
    assert outcome.status == MISSED
    assert "run good of search" in outcome.stderr


def test_each_experiment_has_a_latest_run_in_duckdb(output: Path) -> None:
    with duckdb.connect(warehouse.build(str(output))) as connection:
        rows = connection.execute("SELECT experiment, run_id FROM run_history WHERE is_latest").fetchall()
        assert sorted(rows) == [("ads", "other"), ("search", "bad")]
        best = connection.execute("SELECT DISTINCT run_id FROM leaderboard WHERE is_latest").fetchall()
        assert sorted(best) == [("bad",), ("other",)]
