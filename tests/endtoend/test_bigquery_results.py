"""Runs in BigQuery to compare, gate and report: they say what their files say. Against the emulators."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.bigquery_tables import Tables, new_dataset
from support.cli import Outcome, rankbeam
from support.emulators import Cloud
from support.finished import finished, install, ranks
from support.inputs import write
from support.strict_bigquery import Fault, serve

from rankbeam.pipelines import report
from rankbeam.pipelines.compare import scores as compare_scores
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records import tables as schemas
from rankbeam.transforms.records.answer_tables import ANSWER_TABLES
from rankbeam.transforms.records.errors import InputError

pytest_plugins = ["support.emulators.fixtures"]

REFUSED = 2
OFTEN_EMPTY = {"usage", "corpora", "monitor", *ANSWER_TABLES}
"""Tables of remote calls, which these runs do not make."""
GATES = [
    {"metric": "RR", "at_least": 0.5, "slice": "language"},
    {"metric": "P@1", "value": "difference_low", "at_least": -0.5, "slice": "level"},
    {"metric": "RR", "value": "difference", "at_least": 0.4},
    {"value": "failure_rate", "at_most": 0.01},
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the runs `main` and `pr`; metrics and configurations are not in alphabetical order."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(folder, monkeypatch)
        for run_id, cycle in (("main", (1, 2, 3, 2)), ("pr", (1, 1, 2))):
            finished(
                folder,
                {"wide": ranks(*cycle), "base": ranks(2, 1), "flaky": ranks(2, q03=-1, q10=-1, q11=0)},
                run_id,
                metrics=["RR", "nDCG@10", "P@1"],
                statistics={"replicates": 50, "pairs": "all"},
                gates=GATES,
                output={"path": "out", "rankings": True},
            )
        yield folder / "out"


def loaded(cloud: Cloud, runs: Path) -> Tables:
    """The same runs in a dataset."""
    dataset = new_dataset(cloud)
    for run_id in ("pr", "main"):
        outcome = rankbeam("warehouse", "load", str(runs), "--dataset", dataset.dataset, "--run-id", run_id)
        assert outcome.status == 0, outcome.stderr
    return dataset


def reorder(place: Tables) -> None:
    """Put the rows of every table that has some into another order."""
    for name in schemas.TABLES.keys() - OFTEN_EMPTY:
        place.run(f"CREATE TABLE `%s.{name}_2` AS SELECT * FROM `%s.{name}`")
        place.run(f"DELETE FROM `%s.{name}` WHERE TRUE")
        order = ", ".join(f"TO_JSON_STRING({column}) DESC" for column in reversed(schemas.TABLES[name].names[:6]))
        place.run(f"INSERT INTO `%s.{name}` SELECT * FROM `%s.{name}_2` ORDER BY {order}")


@pytest.fixture(scope="module")
def unchanged(emulators: Cloud, runs: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in emulators.environment.items():
            monkeypatch.setenv(name, value)
        results = loaded(emulators, runs)
        reorder(results)
    yield f"bigquery://{results.dataset}"
    results.client.delete_dataset(results.dataset, delete_contents=True)


@pytest.fixture
def place(cloud: Cloud, unchanged: str) -> str:  # noqa: ARG001  its environment
    """The place of both runs, for tests that only read."""
    return unchanged


@pytest.fixture
def tables(cloud: Cloud, place: str) -> Iterator[Tables]:
    """A dataset with both, to be changed."""
    dataset = new_dataset(cloud)
    source = place.removeprefix("bigquery://")
    for name in schemas.TABLES:
        dataset.run(f"CREATE TABLE `%s.{name}` AS SELECT * FROM `{source}.{name}`")
    yield dataset
    dataset.client.delete_dataset(dataset.dataset, delete_contents=True)


def answered(*arguments: object) -> Outcome:
    outcome = rankbeam(*map(str, arguments))
    assert outcome.status in (0, 3), outcome.stderr
    return outcome


def refused(*arguments: object) -> str:
    outcome = rankbeam(*map(str, arguments))
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert "SELECT" not in outcome.stderr
    return outcome.stderr


@pytest.mark.long
@pytest.mark.parametrize("run_id", ["main", "pr"])
def test_tables_are_those_of_the_files(runs: Path, place: str, run_id: str) -> None:
    in_files, in_bigquery = (find_run(output, run_id) for output in (str(runs), place))
    for name in schemas.TABLES:
        files, rows = in_files.table(name), in_bigquery.table(name)
        if name in ("query_metrics", "rankings"):
            keys = [("config_id", "ascending"), ("query_id", "ascending")]
            files, rows = files.sort_by(keys), rows.sort_by(keys)
        assert rows.schema == files.schema == schemas.TABLES[name], name
        assert rows.to_pylist() == (sorted_failures(files) if name == "failures" else files).to_pylist(), name
        assert bool(rows.num_rows) == (name not in OFTEN_EMPTY), name


def sorted_failures(table: Any) -> Any:
    ordered = table.sort_by([("query_id", "ascending")])
    assert len(set(ordered["config_id"].to_pylist())) == 1
    return ordered


@pytest.mark.parametrize("form", ["json", "table"])
def test_comparisons_within_a_run(runs: Path, place: str, form: str) -> None:
    more = ("--run-id", "main", "--all-pairs", "--slice", "language", "--slice", "level=*", "--format", form)
    files, rows = answered("compare", runs, *more), answered("compare", place, *more)
    assert rows.stdout.replace(place, str(runs)) == files.stdout
    assert rows.stderr == files.stderr


@pytest.mark.long
def test_comparisons_across_runs_and_places(
    runs: Path, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_scores, "_ROWS_READ", 7)
    more = ("--slice", "language×level", "--slice", "all", "--format", "json")
    expected = answered("compare", runs, "--baseline-run-id", "main", *more).stdout
    shutil.copytree(runs, tmp_path / "copy")
    for one, other in ((runs, place), (place, tmp_path / "copy")):
        printed = answered("compare", one, other, "--baseline-run-id", "main", *more).stdout
        for location in (place, tmp_path / "copy"):
            printed = printed.replace(str(location), str(runs))
        assert printed == expected
    assert answered("compare", place, "--baseline-run-id", "main", *more).stdout.replace(place, str(runs)) == expected
    for one, other in ((runs, place), (place, place)):
        message = refused("compare", one, other, "--baseline-run-id", "pr")
        assert f"{other}: both are run 'pr'; name another as --baseline-run-id" in message
        document = json.loads(answered("compare", one, other, "--format", "json").stdout)
        assert (document["run"]["run_id"], document["baseline_run"]["run_id"]) == ("pr", "main")


def test_gates(runs: Path, place: str, tmp_path: Path) -> None:
    path = write(tmp_path / "gates.yaml", yaml.safe_dump({"gates": GATES[1:3]}))
    for more in ((), ("--run-id", "main", "--experiment", path, "--format", "json")):
        files, rows = answered("gate", runs, *more), answered("gate", place, *more)
        assert (rows.status, rows.stdout.replace(place, str(runs)), rows.stderr) == (
            files.status,
            files.stdout,
            files.stderr,
        )
    against = ("--experiment", path, "--baseline-run-id", "main", "--format", "json")
    files = answered("gate", runs, *against)
    assert files.status == 3
    for one, other in ((runs, place), (place, runs)):
        rows = answered("gate", one, "--baseline", other, *against)
        printed, messages = (text.replace(place, str(runs)) for text in (rows.stdout, rows.stderr))
        assert (rows.status, printed, messages) == (3, files.stdout, files.stderr)


def test_a_trend_in_bigquery_says_that_it_has_one_run(place: str) -> None:
    text = answered("trend", place).stdout
    assert (text.count("\npr "), text.count("\nmain ")) == (1, 0)
    assert "only this run is read from BigQuery; its view `trend` has all runs" in text


def test_the_latest_run_is_that_of_the_experiment_asked_about(tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}"
    tables.run("UPDATE `%s.runs` SET experiment = 'else' WHERE run_id = 'main'")
    assert "holds runs of 2 experiments (else, test); choose one with --experiment-name" in refused("compare", place)
    for name, run_id in (("else", "main"), ("test", "pr")):
        outcome = answered("compare", place, "--experiment-name", name, "--format", "json")
        assert json.loads(outcome.stdout)["run"]["run_id"] == run_id
    message = refused("compare", place, place, "--run-id", "pr")
    assert f"{place}: holds no other finished run of the experiment 'test', but of else" in message


def test_the_report(runs: Path, place: str, tmp_path: Path) -> None:
    refusal = refused("report", place)
    assert "the report of a run in BigQuery needs a file: add --output FILE" in refusal
    target = tmp_path / "report.html"
    assert answered("report", place, "--output", target).stdout == f"{target}\n"
    alone = shutil.copytree(runs, tmp_path / "alone")
    shutil.rmtree(alone / "runs" / "main")  # in BigQuery every earlier run would be a query that is paid for
    assert target.read_text() == report.build(Results(str(alone), "pr"))
    assert '"rankings":{"documents":[["' in target.read_text()


# Refused


def test_names_that_there_are_not(tables: Tables, cloud: Cloud, runs: Path) -> None:
    place = f"bigquery://{tables.dataset}"
    assert f"{place}: holds no finished run 'xy'; there are: main, pr" in refused("gate", place, "--run-id", "xy")
    message = refused("gate", runs, "--baseline", place, "--baseline-run-id", "xy")
    assert f"{place}: holds no finished run 'xy'" in message
    nowhere = f"bigquery://{cloud.bigquery.project}.nowhere"
    assert f"{nowhere}: runs: not found: " in refused("compare", runs, nowhere)
    assert "is not a BigQuery dataset; write project.dataset" in refused("compare", runs, f"{place}.runs")
    tables.run("DELETE FROM `%s.runs` WHERE TRUE")
    assert f"{place}: holds no finished run\n" in refused("compare", place)
    tables.run("CREATE TABLE `%s.runs_2` AS SELECT * FROM `%s.runs`")
    tables.client.delete_table(f"{tables.dataset}.runs")
    message = refused("compare", place)
    assert f"{place}: runs: not found: " in message
    assert "runs_2" in message


def test_a_dataset_of_an_older_release_lacks_columns_and_tables(runs: Path, tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}"
    tables.run("CREATE TABLE `%s.configurations_2` AS SELECT * FROM `%s.configurations`")
    tables.client.delete_table(f"{tables.dataset}.configurations")
    of_then = "SELECT * EXCEPT (dialect, parts) FROM `%s.configurations_2`"
    tables.run(f"CREATE TABLE `%s.configurations` AS {of_then}")
    rows = [row | {"dialect": None, "parts": None} for row in find_run(str(runs), "pr").configurations]
    assert find_run(place, "pr").configurations == rows
    for name in ("answers", "verdicts", "agreement", "usage", "monitor"):
        tables.client.delete_table(f"{tables.dataset}.{name}", not_found_ok=True)
    assert answered("report", place, "--run-id", "pr", "--output", runs.parent / "old.html").status == 0


def test_a_run_that_is_replaced_meanwhile(tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}"
    run = find_run(place, "main")
    tables.run("UPDATE `%s.query_metrics` SET started_at = TIMESTAMP_ADD(started_at, INTERVAL 1 SECOND) WHERE TRUE")
    with pytest.raises(InputError, match="query_metrics has no rows of run 'main' any more; if another execution"):
        list(run.batches("query_metrics", ["query_id"]))


def test_rows_of_others_and_a_table_that_is_not_there(tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}"
    tables.client.delete_table(f"{tables.dataset}.query_metrics")
    assert f"{place}: query_metrics: not found: " in refused("compare", place, "--baseline", "base")
    tables.run("ALTER TABLE `%s.configurations` DROP COLUMN position")
    tables.run("ALTER TABLE `%s.configurations` ADD COLUMN position STRING")
    tables.run("UPDATE `%s.configurations` SET position = 'first' WHERE TRUE")
    assert "configurations: rows are not as rankbeam writes them: " in refused("compare", place)


@pytest.mark.usefixtures("cloud")  # for the credentials
@pytest.mark.parametrize(
    ("fault", "expected"),
    [("accessDenied", "permission denied: as the script says; it needs roles/"), ("drop", "is there a network?")],
)
def test_what_may_not_or_cannot_be_seen(runs: Path, monkeypatch: pytest.MonkeyPatch, fault: str, expected: str) -> None:
    with serve() as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        server.dataset("warehouse")
        server.faults.append(Fault("tables.get", fault, times=9))
        message = refused("compare", runs, "bigquery://test-project.warehouse")
    assert "bigquery://test-project.warehouse: runs: " in message
    assert expected in message


@pytest.mark.campaign
def test_old_runs_are_deleted_after_a_yes(cloud: Cloud, runs: Path) -> None:
    dataset = loaded(cloud, runs)
    place = f"bigquery://{dataset.dataset}"
    outcome = rankbeam("runs", place, "--prune")
    assert outcome.status == REFUSED
    assert "Delete 1 run with all rows? There is no terminal to confirm this; add --yes" in outcome.stderr
    rows = " UNION ALL ".join(f"SELECT run_id FROM `{dataset.dataset}.{name}`" for name in schemas.TABLES)
    assert {row[0] for row in dataset.client.query_and_wait(rows)} == {"main", "pr"}
    outcome = rankbeam("runs", place, "--prune", "--yes")
    assert (outcome.status, outcome.stderr) == (0, "deleted 1 run\n")
    assert {row[0] for row in dataset.client.query_and_wait(rows)} == {"pr"}
