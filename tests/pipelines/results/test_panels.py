"""A run with judged metrics, from its tables to whatever shows it."""

import json
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from support.cli import rankbeam
from support.expected_views import Expected
from support.inputs import write
from support.judged import JUDGED, METRICS, NAMES, RUN_ID, JudgedRun, judged_run

from rankbeam.pipelines import report
from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.values import read_values
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.scores.comparisons import comparisons_of
from rankbeam.transforms.records.scores.scored import LABELS


@pytest.fixture(scope="module")
def run() -> JudgedRun:
    return judged_run(7)


@pytest.fixture(scope="module")
def folder(run: JudgedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.write(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return Results(str(folder), RUN_ID)


def share(run: JudgedRun, name: str, metric: str) -> float:
    """The failure rate, from the cells."""
    states = [cell[0] for cell in run.cells[name, metric].values()]
    return states.count("failed") / max(1, sum(state != "missing" for state in states))


def test_views_say_what_the_tables_say(folder: Path) -> None:
    expected = Expected({name: pq.read_table(folder / name).to_pylist() for name in tables.TABLES})
    with duckdb.connect(warehouse.build(str(folder)), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for view in sorted(views.sources()):
            records = connection.sql(f'FROM "{view}"').to_arrow_table().to_pylist()
            rows = list(getattr(expected, view)())
            assert sorted(map(comparable, records)) == sorted(map(comparable, rows)), view


def comparable(row: dict[str, object]) -> str:
    plain = {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
    numbers = {name: f"{value:.9g}" if isinstance(value, int | float) else value for name, value in plain.items()}
    return json.dumps(numbers, sort_keys=True, default=str)


def test_an_earlier_run_beside_it_has_nothing_undefined(run: JudgedRun, tmp_path: Path) -> None:
    """Runs of earlier releases have neither these columns nor these fields of metrics."""
    folder = run.write(tmp_path / "out")
    for name, dropped in (("configuration_metrics", ["panel", "undefined"]), ("query_metrics", ["metrics"])):
        table = pq.read_table(folder / name)
        if name == "query_metrics":
            rows = [
                [{key: item[key] for key in ("metric", "value")} for item in items if item["metric"] not in JUDGED]
                for items in table["metrics"].to_pylist()
            ]
            table = table.drop_columns(dropped).append_column("metrics", [rows])
        else:
            table = table.drop_columns(dropped)
        old = table.set_column(0, "run_id", [["old"] * len(table)])
        (folder / name / "old").mkdir()
        pq.write_table(old, folder / name / "old" / "part-0.parquet")
    for name in set(tables.TABLES) - {"configuration_metrics", "query_metrics"}:
        table = pq.read_table(folder / name)
        (folder / name / "old").mkdir()
        pq.write_table(table.set_column(0, "run_id", [["old"] * len(table)]), folder / name / "old" / "part-0.parquet")
    query = "SELECT DISTINCT panel, undefined FROM leaderboard WHERE run_id = 'old'"
    statuses = "SELECT status, count(reason) FROM per_query WHERE run_id = 'old' GROUP BY status ORDER BY status"
    with duckdb.connect(warehouse.build(str(folder)), read_only=True) as connection:
        assert connection.execute(query).fetchall() == [("retrieval", 0)]
        assert connection.execute(statuses).fetchall() == [("empty", 0), ("ok", 0)]
    values = pq.read_table(folder / "query_metrics" / "old").to_pylist()
    rows = Result(Results(str(folder), "old")).per_query().to_pylist()
    assert sorted((row["status"], row["metric"], row["value"]) for row in rows if row["value"] is not None) == sorted(
        (row["status"], item["metric"], item["value"])
        for row in values
        for item in row["metrics"]
        if item["value"] is not None
    )
    assert len(rows) == len(values) * len(METRICS)


def test_what_was_written_is_compared_as_in_the_run_itself(run: JudgedRun, folder: Path) -> None:
    outcome = rankbeam("compare", str(folder), "--format", "json", "--all-pairs", "--slice", "all", "--slice", "kind")
    assert outcome.status == 0, outcome.stderr
    rows = {
        (row["config_id"], row["baseline_id"], row["slice"], row["metric"]): row
        for row in json.loads(outcome.stdout)["comparisons"]
    }
    expected = comparisons_of(run.estimates())
    assert rows.keys() == {(row.config_id, row.baseline, row.slice, row.metric) for row in expected}
    for row in expected:
        same = rows[row.config_id, row.baseline, row.slice, row.metric]
        for name in ("difference", "ci_low", "ci_high", "p_value", "p_adjusted", "queries", "unpaired", "wins"):
            assert same[name] == getattr(row, name), (row, name)


def test_a_judged_metric_is_compared_by_its_name(folder: Path) -> None:
    outcome = rankbeam("compare", str(folder), "--format", "json", "--metric", "AnswerRelevance(ragas)")
    assert {row["metric"] for row in json.loads(outcome.stdout)["comparisons"]} == {"AnswerRelevance(ragas)"}


@pytest.mark.parametrize("metric", [None, *METRICS])
def test_a_gate_on_failures_is_of_the_worst_panel_or_of_the_metric_that_it_names(
    run: JudgedRun, folder: Path, tmp_path: Path, metric: str | None
) -> None:
    named = {} if metric is None else {"metric": metric}
    gates = write(tmp_path / "gates.yaml", json.dumps({"gates": [{"value": "failure_rate", "at_most": 0.0, **named}]}))
    outcome = rankbeam("gate", str(folder), "--experiment", str(gates), "--format", "json")
    values = {row["configuration"]: row["found"] for row in json.loads(outcome.stdout)["checks"]}
    rates = {name: [share(run, name, shown) for shown in METRICS if metric in (None, shown)] for name in NAMES}
    assert values == pytest.approx({name: max(of) for name, of in rates.items()})


def test_too_many_failures_are_those_of_the_worst_panel(run: JudgedRun, results: Results) -> None:
    worst = {name: max(share(run, name, metric) for metric in METRICS) for name in NAMES}
    assert any(worst[name] > share(run, name, "RR") for name in NAMES)
    most = sorted(worst.values())[1]
    (name,) = (name for name, rate in worst.items() if rate > most)
    assert results.over_failure_rate(most).endswith(f"(max_failure_rate): {name} ({worst[name]:.1%})")


def test_the_report_knows_the_status_of_every_metric(run: JudgedRun, results: Results) -> None:
    values = read_values(results)
    ids = values.ids.to_pylist()
    for configuration, name in enumerate(NAMES):
        for place, metric in enumerate(METRICS):
            status = values.judged[place] if metric in JUDGED else values.status
            cells = [run.cells[name, metric][query_id] for query_id in ids]
            assert [LABELS[query_id] for query_id in status[configuration]] == [cell[0] for cell in cells]
            actual = values.values[place, configuration].tolist()
            assert actual == pytest.approx(
                [float("nan") if cell[1] is None else cell[1] for cell in cells], nan_ok=True
            )
    assert Study(results).metrics == list(METRICS)
    page = report.build(results)
    assert "<td>Faithfulness</td>" in page
    assert '<th scope="col" class="number">Undefined</th>' in page


def test_ids_whose_hashes_are_equal_keep_their_own_values(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_values(results)
    monkeypatch.setattr(hashing, "hash_strings", lambda ids: np.zeros(len(ids), np.uint64))
    actual = read_values(results)
    assert actual.rows == expected.rows
    np.testing.assert_array_equal(actual.values, expected.values)


def test_tables_for_people_count_each_metric_by_itself(results: Results) -> None:
    rows = {metric: results.means["base", "all", metric] for metric in METRICS}
    assert {metric: row.undefined > 0 for metric, row in rows.items()} == {name: name in JUDGED for name in METRICS}
    assert {metric: results.is_judged(metric) for metric in METRICS} == {name: name in JUDGED for name in METRICS}
    query = next(iter(results.query_metrics("base")))
    assert query["statuses"].keys() == set(JUDGED)
