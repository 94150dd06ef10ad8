"""`rankbeam runs --prune`: old runs go with all their rows; the latest of each experiment and the ledger stay."""

import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.killing import Step, killed_at
from support.remote import signalled
from support.runs import run_experiment

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.manage import derived
from rankbeam.pipelines.manage.prune import delete, needless
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.warehouse import duckdb as warehouse

EXPERIMENT = {
    "dataset": {"qrels": "qrels"},
    "configurations": [{"name": "right", "retriever": {"type": "run_file", "path": "right.run"}}],
    "metrics": ["RR"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of four runs."""
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    write(folder / "right.run", trec_run([("q1", "d1", 1.0)]))
    for name, run_id in (("one", "a1"), ("one", "a2"), ("two", "b1"), ("one", "a3")):
        run_experiment(folder, {"name": name, **EXPERIMENT}, run_id)
    warehouse.build(str(folder / "out"))
    write(folder / "out" / "ledger" / "part-1.parquet", "paid")
    return folder / "out"


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to delete runs of."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def ids(out: Path) -> list[str]:
    return [run.run_id for run in finished_runs(str(out))]


@pytest.mark.long
def test_the_latest_run_of_each_experiment_stays(out: Path) -> None:
    listed = rankbeam("runs", str(out), "--prune", "--dry-run")
    assert [line.split()[0] for line in listed.stdout.splitlines()[2:]] == ["a1", "a2"]
    assert ids(out) == ["a1", "a2", "b1", "a3"]
    outcome = rankbeam("runs", str(out), "--prune", "--yes")
    assert (outcome.status, outcome.stderr) == (0, "deleted 2 runs\n")
    assert ids(out) == ["b1", "a3"]
    assert not [path for path in out.rglob("*") if path.name in ("a1", "a2")]
    assert (out / "ledger" / "part-1.parquet").exists()
    with duckdb.connect(str(out / "results.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT run_id FROM query_metrics ORDER BY 1").fetchall() == [
            ("a3",),
            ("b1",),
        ]


def test_ctrl_c_leaves_no_rows_of_deleted_runs(out: Path) -> None:
    deleting = lambda: not (out / "runs" / "a1" / "part-00000-of-00001.parquet").exists()  # noqa: E731
    ended = signalled(["runs", str(out), "--prune", "--yes"], signal.SIGINT, deleting, out, every_s=0.001)
    assert ended.status == 130, ended.stderr
    assert not [path for path in out.rglob("*") if path.name in ("a1", "a2")]
    with duckdb.connect(str(out / "results.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM query_metrics WHERE run_id < 'a3'").fetchall() == [(0,)]


@pytest.mark.parametrize("number", [1, 2, 10, 20, "DuckDB"])
def test_a_deletion_that_was_killed_is_completed_by_the_next_one(number: int | str, out: Path) -> None:
    step = Step(warehouse, "build", moment="before") if number == "DuckDB" else Step(files, "delete", int(number))
    killed = killed_at(step, ["runs", str(out), "--prune", "--yes"], out)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert ids(out)[-2:] == ["b1", "a3"]
    assert rankbeam("runs", str(out), "--prune", "--yes").status == 0
    assert ids(out) == ["b1", "a3"]
    assert not [path for path in out.rglob("*") if path.name in ("a1", "a2")]
    with duckdb.connect(str(out / "results.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall() == [("a3",), ("b1",)]


def test_what_a_killed_race_left_is_deleted_and_a_dry_run_names_it(out: Path) -> None:
    write(out / "race-old" / "owner", '{"machine": "another", "at": "2020-01-01T00:00:00+00:00"}')
    dry = rankbeam("runs", str(out), "--prune", "--dry-run")
    assert dry.stderr == f"would delete {out}/race-old, which a killed race left\n"
    assert (out / "race-old" / "owner").exists()
    outcome = rankbeam("runs", str(out), "--prune", "--yes")
    assert outcome.stderr == f"deleted {out}/race-old, which a killed race left\ndeleted 2 runs\n"
    assert not (out / "race-old").exists()


def test_without_a_yes_nothing_is_deleted(out: Path) -> None:
    for answer in ("n\n", "\n"):
        result = CliRunner().invoke(main, ["runs", str(out), "--prune"], input=answer)
        assert "Delete 2 runs with all rows?" in result.stderr
        assert ids(out) == ["a1", "a2", "b1", "a3"]
    assert rankbeam("runs", str(out), "--yes").status == 2
    for more in ((), ("--indexes",)):
        older = rankbeam("runs", str(out), "--prune", *more, "--older-than", "1e12")
        assert (older.status, "is not in the range 0<=x<=36500" in older.stderr) == (2, True)


def test_what_is_kept_by_number_and_age(out: Path) -> None:
    runs, now = finished_runs(str(out)), datetime.now(UTC)
    assert [run.run_id for run in needless(runs, 2, None)] == ["a1"]
    assert needless(runs, 3, None) == []
    assert needless(runs, 1, 1.0, now) == []
    assert [run.run_id for run in needless(runs, 1, 1.0, now + timedelta(days=2))] == ["a1", "a2"]


@pytest.mark.parametrize(
    ("settings", "deleted"),
    [
        ("monitor: {baseline: a2}", ["a1"]),
        ("monitor: {alpha: 0.1}", ["a2"]),
        ("gates: [{metric: RR, value: monitor, at_least: -0.1}]", ["a2"]),
        ("gates: [{metric: RR, at_least: 0.1}]", ["a1", "a2"]),
    ],
)
def test_the_baseline_of_a_monitor_stays(settings: str, deleted: list[str], out: Path) -> None:
    runs = finished_runs(str(out))
    runs[-1].run["experiment_yaml"] += f"{settings}\n"
    assert [run.run_id for run in needless(runs, 1, None)] == deleted


def test_a_run_that_the_command_monitor_compared_the_latest_one_with_stays(out: Path) -> None:
    outcome = rankbeam("monitor", str(out), "--experiment-name", "one", "--baseline-run-id", "a2")
    assert outcome.status in (0, 3), outcome.stderr
    assert [run.run_id for run in needless(finished_runs(str(out)), 1, None)] == ["a1"]


def test_the_baseline_stays_if_the_latest_run_was_not_yet_monitored(out: Path) -> None:
    outcome = rankbeam("monitor", str(out), "--experiment-name", "one", "--run-id", "a2")
    assert outcome.status in (0, 3), outcome.stderr
    assert [run.run_id for run in needless(finished_runs(str(out)), 1, None)] == ["a2"]


@pytest.mark.parametrize("stored", [["b1", "a3"], ["b1"]])
def test_results_duckdb_has_the_rows_of_large_tables_if_it_had_them_before(
    out: Path, stored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "MOST_BYTES", 1)
    path = warehouse.build(str(out), [("query_metrics", run_id) for run_id in ("a3",) if run_id not in stored])
    delete(str(out), finished_runs(str(out))[:2])
    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.execute("SELECT DISTINCT run_id FROM query_metrics ORDER BY ALL DESC").fetchall()
    assert rows == [(run_id,) for run_id in stored]
