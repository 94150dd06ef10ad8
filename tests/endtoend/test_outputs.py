"""Outputs of a run: tables, the DuckDB file, and nothing that looks finished when it is not."""

import json
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.processes import COMMAND, Process
from support.runs import evaluated, query_values, rankbeam, run_experiment

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import evaluate
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables

EXAMPLE = REPOSITORY / "examples" / "helpdesk" / "experiment.yaml"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was shown as JSON: one document, and everything else on stderr."""
    output = tmp_path_factory.mktemp("out") / "helpdesk"
    result = rankbeam("evaluate", EXAMPLE, "--output", output, "--run-id", "demo", "--format", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["leaderboard"][0]["configuration"] == "bm25"
    assert {row["baseline"] for row in document["comparisons"]} == {"bm25"}
    assert str(output) in result.stderr
    assert "scored 192/192" in result.stderr
    return output


@pytest.mark.long
def test_a_clock_that_is_behind_earlier_runs_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=1)

    def messages(run_id: str) -> str:
        evaluated(EXAMPLE, run_id, tmp_path / "out")
        return " ".join(capsys.readouterr().err.split())

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "datetime", Ahead)
        assert "starts later" not in messages("ahead")
    assert "run ahead starts later" in messages("now")
    assert "starts later" not in messages("ahead")


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_table_has_its_schema(demo: Path, name: str) -> None:
    parts = list((demo / name / "demo").glob("*.parquet"))
    assert parts
    for part in parts:
        assert pq.read_schema(part).equals(tables.TABLES[name])
    assert pq.read_table(demo / name).schema.names == tables.TABLES[name].names  # as a folder, for pandas and others


def test_duckdb_holds_the_rows_of_the_parquet_files(demo: Path) -> None:
    with duckdb.connect(str(demo / warehouse.FILE_NAME), read_only=True) as connection:
        for name in tables.TABLES:
            count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
            assert count == (Results(str(demo), "demo").table(name).num_rows,)


def test_the_views_say_what_the_leaderboard_says(demo: Path) -> None:
    results = Results(str(demo), "demo")
    with duckdb.connect(str(demo / warehouse.FILE_NAME), read_only=True) as connection:
        rows = connection.execute(
            "SELECT configuration, mean, ci_low, ci_high, queries FROM leaderboard "
            "WHERE metric = 'nDCG@10' ORDER BY rank"
        ).fetchall()
        values = connection.execute("SELECT configuration, query_id, metric, value FROM per_query").fetchall()
    assert [row[0] for row in rows] == [row["name"] for row in results.leaderboard()]
    for name, mean, low, high, queries in rows:
        own = [metrics["nDCG@10"] for metrics in query_values(results)[name].values()]
        assert mean == pytest.approx(sum(own) / len(own), abs=1e-12)
        assert low < mean < high
        assert queries == len(own) == 64
    ours = {
        (name, query, metric, value)
        for name, queries in query_values(results).items()
        for query, metrics in queries.items()
        for metric, value in metrics.items()
    }
    assert set(values) == ours


def test_rankings_carry_grades(demo: Path) -> None:
    grades = {
        (line.split("\t")[0], line.split("\t")[1]): float(line.split("\t")[2])
        for line in (EXAMPLE.parent / "qrels" / "test.tsv").read_text().splitlines()[1:]
    }
    results = Results(str(demo), "demo")
    rows = results.table("rankings").to_pylist()
    assert len(rows) == 64 * len(results.configurations)
    assert sum(len(row["documents"]) for row in rows) > len(rows)
    for row in rows:
        assert [document["rank"] for document in row["documents"]] == list(range(1, len(row["documents"]) + 1))
        for document in row["documents"]:
            assert document["grade"] == grades.get((row["query_id"], document["doc_id"]))


def test_slices_partition_the_queries(demo: Path) -> None:
    results = Results(str(demo), "demo")
    config_id = results.configurations[0]["config_id"]
    for attribute in ("difficulty", "intent"):
        rows = [results.means[config_id, name, "nDCG@10"] for name in results.slices if name.startswith(attribute)]
        assert sum(row.queries for row in rows) == 64
        whole = results.means[config_id, "all", "nDCG@10"].mean
        assert sum(row.mean * row.queries for row in rows) / 64 == pytest.approx(whole, abs=1e-12)


@pytest.mark.campaign
def test_the_same_run_id_replaces_its_rows_and_another_adds_to_them(tmp_path: Path) -> None:
    for run_id in ("one", "one", "two"):
        assert rankbeam("evaluate", EXAMPLE, "--output", tmp_path, "--run-id", run_id).exit_code == 0
    with duckdb.connect(str(tmp_path / warehouse.FILE_NAME), read_only=True) as connection:
        rows = connection.execute("SELECT run_id, count(*) FROM query_metrics GROUP BY run_id ORDER BY 1").fetchall()
    assert rows == [("one", 192), ("two", 192)]


def test_a_run_without_its_row_in_runs_is_not_shown(demo: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(demo, torn)
    for name in tables.TABLES:
        shutil.copytree(torn / name / "demo", torn / name / "unfinished")
    shutil.rmtree(torn / "runs" / "unfinished")
    with duckdb.connect(warehouse.build(str(torn)), read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT run_id FROM query_metrics").fetchall() == [("demo",)]


@pytest.fixture
def slow_experiment(tmp_path: Path) -> Path:
    """An experiment whose run takes a while: one run file of two million rows."""
    lines = [f"q{query} Q0 d{document} 0 {1000 - document} t\n" for query in range(2000) for document in range(1000)]
    (tmp_path / "large.run").write_text("".join(lines))
    (tmp_path / "qrels.txt").write_text("".join(f"q{query} 0 d{query % 1000} 1\n" for query in range(2000)))
    experiment: dict[str, Any] = {
        "name": "slow",
        "dataset": {"qrels": "qrels.txt"},
        "configurations": [{"name": "large", "retriever": {"type": "run_file", "path": "large.run"}}],
        "metrics": ["nDCG@10"],
        "output": {"path": "out"},
    }
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    return tmp_path / "experiment.yaml"


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, *in_campaigns(signal.SIGKILL)])
def test_an_interrupted_run_never_looks_finished(slow_experiment: Path, how: signal.Signals) -> None:
    output = slow_experiment.parent / "out"
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = Process(COMMAND, "evaluate", str(slow_experiment), "--run-id", "torn", **piped)
    deadline = time.monotonic() + 60
    while not (output / "configurations").exists():  # the first table is being written: the pipeline runs
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(how)
    _, stderr = process.communicate(timeout=60)
    assert not list(output.glob("runs/*/*"))
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted" in stderr
        assert "Traceback" not in stderr
        assert not list(output.glob("*/torn/*"))
    again = rankbeam("evaluate", slow_experiment, "--run-id", "torn")
    assert again.exit_code == 0, again.stderr
    assert Results(str(output), "torn").table("query_metrics").num_rows == 2000


def test_a_run_of_chunks_is_collapsed_when_asked(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 1\n")
    (tmp_path / "chunks.run").write_text("q1 Q0 a 1 3 t\nq1 Q0 a 2 2 t\nq1 Q0 b 3 1 t\n")
    retriever = {"type": "run_file", "path": str(tmp_path / "chunks.run"), "duplicates": "collapse"}
    results = run_experiment(
        tmp_path,
        {
            "dataset": {"qrels": "qrels.txt"},
            "configurations": [{"name": "chunks", "retriever": retriever}],
            "metrics": ["nDCG@3", "P@2", "chunk_P@3", "chunk_R@2", "chunk_nDCG@3", "NumRet"],
        },
    )
    values = query_values(results)["chunks"]["q1"]
    assert values["nDCG@3"] == values["P@2"] == values["chunk_P@3"] == 1.0
    assert values["chunk_R@2"] == 0.5
    assert values["chunk_nDCG@3"] > 1.0  # what the notebook computes: the same document gains twice
    assert values["NumRet"] == 2.0


def test_a_file_that_is_not_ours_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / warehouse.FILE_NAME).write_text("hello")
    result = rankbeam("evaluate", EXAMPLE, "--output", tmp_path)
    assert result.exit_code == 2
    assert "was not made by rankbeam" in result.stderr
    assert (tmp_path / warehouse.FILE_NAME).read_text() == "hello"


def test_tables_of_the_users_own_are_not_lost(demo: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(demo, copy)
    with duckdb.connect(str(copy / warehouse.FILE_NAME)) as connection:
        connection.execute("CREATE TABLE notes (x INT)")
    result = rankbeam("evaluate", EXAMPLE, "--output", copy)
    assert result.exit_code == 2
    assert "holds notes" in result.stderr


@pytest.mark.campaign
def test_a_closed_stderr_is_no_failure(tmp_path: Path) -> None:
    code = "from rankbeam.pipelines.cli import main; main()"
    command = f'exec "{sys.executable}" -c "{code}" evaluate "{EXAMPLE}" --output "{tmp_path}" 2>&-'
    assert subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 0
