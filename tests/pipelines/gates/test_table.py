"""Missed gates are in the tables of a run, checked by the run itself, without a client that waits for it."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml
from support.cli import rankbeam
from support.finished import experiment, ranks
from support.finished import ranked as ranked
from support.inputs import write
from support.strict_bigquery import serve

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import answer_tables, tables

MISSED = 3
GATES = [
    {"metric": "RR", "at_least": 0.6},
    {"metric": "RR", "at_least": 0.2, "slice": "language"},
    {"metric": "P@1", "value": "difference_low", "at_least": -0.5},
    {"metric": "RR", "value": "difference", "at_most": 0.5, "configuration": "flaky", "slice": "language=fr"},
    {"value": "failure_rate", "at_most": 0.01},
]
CONFIGURATIONS = {"base": ranks(1, 2), "better": ranks(1), "flaky": ranks(2, q03=-1, q10=-1)}


def evaluated(folder: Path, gates: object, **more: Any) -> tuple[int, str]:
    """Evaluate an experiment with gates; its tables are in `folder/out`."""
    content = experiment(folder, CONFIGURATIONS, gates=gates, metrics=["RR", "P@1"], **more)
    path = write(folder / "e.yaml", yaml.safe_dump({"name": "e", "output": {"path": "out"}, **content}))
    outcome = rankbeam("evaluate", path, "--run-id", "r", "--format", "json")
    return outcome.status, outcome.stderr


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "out" / name / "r").to_pylist()
    return rows


def in_one_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The command shows what is missed first."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.long
def test_the_table_holds_what_the_command_finds(tmp_path: Path) -> None:
    assert evaluated(tmp_path, GATES)[0] == MISSED
    names = {row["config_id"]: row["name"] for row in rows(tmp_path, "configurations")}
    written = [
        {
            "configuration": names.get(row["config_id"]),
            **{name: row[name] for name in ("slice", "metric", "value", "found", "margin", "met")},
            **{name: row[name] for name in ("at_least", "at_most") if row[name] is not None},
            "reason": row["reason"] or "",
            "state": "met" if row["met"] else "missed",
        }
        for row in rows(tmp_path, "gates")
    ]
    document = json.loads(rankbeam("gate", str(tmp_path / "out"), "--format", "json").stdout)
    assert in_one_order(written) == in_one_order(document["checks"])
    for row in rows(tmp_path, "gates"):
        gate = GATES[row["position"]]
        assert (gate.get("metric"), gate.get("value", "mean")) == (row["metric"], row["value"])
    assert [row["state"] for row in rows(tmp_path, "runs")] == ["missed"]


@pytest.mark.long
def test_a_run_that_keeps_its_limits_is_done(tmp_path: Path) -> None:
    status, _ = evaluated(tmp_path, [{"metric": "RR", "at_least": 0.1, "configuration": "base"}], max_failure_rate=0.5)
    assert (status, [row["state"] for row in rows(tmp_path, "runs")]) == (0, ["done"])
    assert [row["met"] for row in rows(tmp_path, "gates")] == [True]


def test_failures_are_in_the_warnings_of_the_run(tmp_path: Path) -> None:
    status, output = evaluated(tmp_path, [], max_failure_rate=0.01)
    assert status == MISSED
    (run,) = rows(tmp_path, "runs")
    failed = "2 queries have no answer (quota): out of quota"
    over = "more than 1.0% of the queries failed (max_failure_rate): flaky (8.3%)"
    assert (run["state"], run["warnings"][-2:]) == ("missed", [failed, over])
    assert [output.count(warning) for warning in run["warnings"]] == [1] * len(run["warnings"])
    assert output.splitlines()[-1] == f"rankbeam: {over}; {failed}"
    assert rows(tmp_path, "gates") == []


@pytest.mark.long
def test_runs_of_earlier_versions_have_no_such_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(tmp_path, GATES[:1])
    shutil.copytree(tmp_path / "out", tmp_path / "old" / "out")
    shutil.rmtree(tmp_path / "old" / "out" / "gates")
    for folder, count in ((tmp_path, 3), (tmp_path / "old", 0)):
        with duckdb.connect(warehouse.build(str(folder / "out"))) as connection:
            assert connection.execute("SELECT count(met) FROM gates").fetchone() == (count,)
            connection.execute("DROP TABLE gates")
        warehouse.refuse_foreign(str(folder / "out"))  # a file of an earlier version is ours
    with serve() as bigquery:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", bigquery.url)
        bigquery.dataset("warehouse")
        for folder, count in ((tmp_path, 3), (tmp_path / "old", 0)):
            done = rankbeam("warehouse", "load", str(folder / "out"), "--dataset", "test-project.warehouse")
            assert done.status == 0, done.stderr
            assert len(bigquery.rows("gates")) == count
            assert len(bigquery.rows("runs")) == 1
        assert bigquery.names() == set(tables.TABLES)
        assert bigquery.table("warehouse", "gates").columns == schemas.columns_of(answer_tables.GATES)
