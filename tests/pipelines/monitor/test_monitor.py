"""`rankbeam monitor`: changes since a pinned run, over the same queries or over fresh ones each night."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import yaml
from support import experiments
from support.finished import QUERIES, finished, install, ranks
from support.inputs import trec_qrels, trec_run, write
from support.pages import Page
from support.runs import evaluated, rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.compare.compare import ComparisonQuestion, compare
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.monitor.changes import monitor_run
from rankbeam.pipelines.results.find import find_run, finished_runs
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.kernels.statistics.intervals import student_t_quantile
from rankbeam.transforms.kernels.statistics.monitoring import half_width
from rankbeam.transforms.records.scores.rows import ConfigurationMetric

GATE = {"metric": "RR", "value": "monitor", "at_least": -0.05}


@pytest.fixture(autouse=True)
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path / "types", monkeypatch)
    yield
    entry_points_of.cache_clear()


def night(folder: Path, number: int, *, worst: int, best: int = 1, queries: int = 40, **changes: Any) -> str:
    """The experiment of one night, with queries of its own whose document is at ranks from `best` to `worst`."""
    rng = np.random.default_rng(number)
    ids = [f"n{number}q{query:03}" for query in range(queries)]
    write(folder / "qrels", trec_qrels([(query, "d", 1.0) for query in ids]))
    rows = [
        (query, "d" if rank == place else f"x{rank}", 99.0 - rank)
        for query, place in zip(ids, rng.integers(best, worst + 1, queries).tolist(), strict=True)
        for rank in range(1, worst + 1)
    ]
    write(folder / "system.run", trec_run(rows))
    value = {
        "name": "production",
        "dataset": {"qrels": "qrels"},
        "configurations": [{"name": "system", "retriever": {"type": "run_file", "path": "system.run"}}],
        "metrics": ["RR"],
        "output": {"path": "out"},
        **changes,
    }
    write(folder / "e.yaml", yaml.safe_dump(value))
    return str(folder / "e.yaml")


def monitored(folder: Path, *options: object) -> tuple[int, dict[str, Any], str]:
    outcome = rankbeam("monitor", folder / "out", *options, "--format", "json")
    return outcome.exit_code, json.loads(outcome.stdout), " ".join(outcome.stderr.split())


@pytest.mark.campaign
def test_fresh_queries_add_up_over_the_nights(tmp_path: Path) -> None:
    """Six steady nights, then six with worse ranks: the last sequences see it, and the numbers are the formula's."""
    for number in range(13):
        experiment = night(tmp_path, number, worst=2 if number < 7 else 9)
        evaluated(experiment, f"n{number:02}")
        if number == 6:
            status, document, _ = monitored(tmp_path)
            assert (status, document["changes"][0]["state"]) == (0, "no change")
    status, document, problems = monitored(tmp_path, "--tolerance", "0.02")
    (change,) = document["changes"]
    assert status == 3
    assert "RR of system fell since run n00 of production" in problems
    assert (change["mode"], change["state"], change["alarm"], change["skipped"]) == ("fresh", "fell", True, 0)
    runs = [find_run(str(tmp_path / "out"), f"n{number:02}") for number in range(13)]
    base, *nights = [next(iter(run.means.values())) for run in runs]
    assert base.mean is not None
    assert base.std_error is not None
    first = 12 - change["nights"]
    own = nights[first:]
    changes = [(row.mean or 0.0) - base.mean for row in own]
    variance = sum((row.std_error or 0.0) ** 2 for row in own)
    alpha = 6 * 0.05 / (math.pi**2 * (first + 1) ** 2)
    reference = student_t_quantile(0.9875, 39) * base.std_error
    width = math.hypot(half_width(len(own), variance, 10 * base.std_error**2, alpha), reference)
    assert change["change"] == pytest.approx(sum(changes) / len(own))
    assert (change["low"], change["high"]) == pytest.approx((change["change"] - width, change["change"] + width))
    assert change["lowest_high"] == change["high"]
    assert str(runs[1 + first].execution[1]) == change["since"]


@pytest.mark.long
def test_nights_that_are_no_evidence_are_counted(tmp_path: Path) -> None:
    """A night of few queries, and one whose queries were there before."""
    for number, (sample, queries) in enumerate([(0, 40), (1, 40), (1, 40), (2, 10)]):
        experiment = night(tmp_path, sample, worst=3, queries=queries)
        evaluated(experiment, f"n{number}")
    status, document, problems = monitored(tmp_path)
    (change,) = document["changes"]
    assert (status, change["nights"], change["skipped"]) == (0, 1, 2)
    assert "2 nights do not count: with fewer than 20 queries, equal values of an unbounded metric" in problems
    _, document, problems = monitored(tmp_path, "--run-id", "n2")
    assert "40 of tonight's queries were in the previous night, too" in problems


@pytest.mark.long
def test_a_second_run_of_a_night_counts_in_place_of_the_first_also_if_all_values_are_equal(tmp_path: Path) -> None:
    for run_id, number, best, worst in (("n0", 0, 1, 2), ("n1", 1, 1, 2), ("again", 1, 9, 9)):
        evaluated(night(tmp_path, number, best=best, worst=worst), run_id)
    base, _, again = [next(iter(run.means.values())) for run in finished_runs(str(tmp_path / "out"))]
    assert (again.mean, again.std_error) == (pytest.approx(1 / 9), 0.0)
    status, document, problems = monitored(tmp_path)
    (change,) = document["changes"]
    assert (status, change["state"], change["nights"], change["skipped"]) == (3, "fell", 1, 1)
    assert change["change"] == pytest.approx(1 / 9 - (base.mean or 0.0))
    error = ((again.ci_high or 0.0) - 1 / 9) / student_t_quantile(0.975, 39)
    width = half_width(1, error**2, 10 * (base.std_error or 0.0) ** 2, 6 * 0.05 / math.pi**2)
    reference = student_t_quantile(0.9875, 39) * (base.std_error or 0.0)
    assert change["high"] - change["change"] == pytest.approx(math.hypot(width, reference))
    assert "1 night does not count" in problems


@pytest.mark.long
def test_the_same_queries_are_compared_one_by_one(tmp_path: Path) -> None:
    first = finished(tmp_path, {"base": ranks(1, 2), "other": ranks(1)}, "first")
    later = finished(tmp_path, {"base": ranks(1, 2), "other": ranks(1, 3)}, "later")
    status, document, problems = monitored(tmp_path)
    rows = {(row.configuration, row.row.metric): row.row for row in compare(later, first, ComparisonQuestion()).rows}
    for change in document["changes"]:
        row = rows[change["configuration"], change["metric"]]
        assert (change["mode"], change["baseline_run"], change["nights"]) == ("fixed", "first", 1)
        assert [change[name] for name in ("change", "low", "high")] == [row.difference, row.ci_low, row.ci_high]
        assert change["state"] == ("fell" if change["configuration"] == "other" else "no change")
    assert status == 3
    assert "RR of other fell, nDCG@10 of other fell" in problems
    assert monitored(tmp_path, "--tolerance", "0.9")[0] == 0
    assert monitored(tmp_path, "--run-id", "first")[1]["changes"] == []
    finished(tmp_path, {"base": ranks(3, 4), "renamed": ranks(1)}, "fewer", QUERIES[4:], metrics=["RR"])
    status, document, problems = monitored(tmp_path)
    (change,) = document["changes"]
    assert (status, change["mode"], change["state"], change["queries"]) == (3, "fixed", "fell", 20)
    assert "over the 20 queries that both runs have; 0 only in this run, 4 only in the baseline's" in problems
    assert "has a configuration named 'renamed', 'other'; left out" in problems
    assert "only one of the runs has nDCG@10, P@1; left out" in problems


@pytest.mark.long
def test_another_baseline_can_be_pinned(tmp_path: Path) -> None:
    configurations = {"base": ranks(1, 2)}
    for run_id in ("first", "second", "third"):
        finished(tmp_path, configurations, run_id, monitor={"baseline": "second"})
    other = write(tmp_path / "out" / "monitor" / "third" / "_unfinished" / "other.parquet", "of another command")
    assert monitored(tmp_path)[1]["baseline_run"]["run_id"] == "second"
    assert Path(other).exists()
    assert monitored(tmp_path, "--baseline-run-id", "first")[1]["baseline_run"]["run_id"] == "first"
    outcome = rankbeam("monitor", tmp_path / "out", "--baseline-run-id", "frist")
    assert outcome.exit_code == 2
    assert "there is no finished run 'frist' of this experiment; did you mean 'first'?" in outcome.stderr


@pytest.mark.long
def test_changes_that_cannot_be_written_are_shown_with_their_alarm(tmp_path: Path) -> None:
    for run_id, positions in (("first", ranks(1)), ("second", ranks(4))):
        finished(tmp_path, {"base": positions}, run_id)
    shutil.rmtree(tmp_path / "out" / "monitor")
    write(tmp_path / "out" / "monitor", "as if the folder could not be written")
    status, document, problems = monitored(tmp_path, "--tolerance", "0.02")
    assert (status, document["changes"][0]["alarm"]) == (1, True)
    assert "rankbeam: not written: the table monitor; RR of base fell" in problems


@pytest.mark.long
def test_a_gate_ends_the_run_with_status_3_and_fills_the_table(tmp_path: Path) -> None:
    first = rankbeam("evaluate", night(tmp_path, 0, worst=2, gates=[GATE]), "--run-id", "n0")
    assert first.exit_code == 0
    assert "new" in first.stdout
    status = 0
    for number in (1, 2):
        outcome = rankbeam("evaluate", night(tmp_path, number, worst=12, gates=[GATE]), "--run-id", f"n{number}")
        status = max(status, outcome.exit_code)
    assert status == 3
    assert "MISSED" in outcome.stdout
    assert rankbeam("gate", tmp_path / "out").exit_code == 3
    run = find_run(str(tmp_path / "out"))
    (row,) = run.table("monitor").to_pylist()
    assert (row["state"], row["alarm"], row["tolerance"], row["mode"]) == ("fell", True, 0.05, "fresh")
    with duckdb.connect(str(tmp_path / "out" / "results.duckdb"), read_only=True) as connection:
        seen = connection.execute("SELECT configuration, alarm, nights FROM monitoring WHERE is_latest").fetchall()
    assert seen == [("system", True, row["nights"])]
    text = Page.of(report.build(run)).text
    assert "system: alarm, fell, −0." in text
    assert "since the baseline run n0" in text


def test_a_gate_without_its_baseline_run_is_missed(tmp_path: Path) -> None:
    experiment = night(tmp_path, 0, worst=2, gates=[GATE], monitor={"baseline": "gone"})
    outcome = rankbeam("evaluate", experiment, "--run-id", "n0")
    assert outcome.exit_code == 3
    assert "there is no finished run 'gone' of this experiment" in " ".join(outcome.stdout.split())
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.long
def test_a_rise_alarms_where_the_gate_limits_it(tmp_path: Path) -> None:
    gate = {"metric": "RR", "value": "monitor", "at_most": 0.05}
    finished(tmp_path, {"base": ranks(1, 3)}, "first", gates=[gate])
    finished(tmp_path, {"base": ranks(1, 1)}, "later", gates=[gate])
    status, document, problems = monitored(tmp_path)
    states = {change["metric"]: (change["state"], change["alarm"]) for change in document["changes"]}
    assert states["RR"] == ("rose", True)
    assert states["nDCG@10"] == ("rose", False)
    assert status == 3
    assert "RR of base rose" in problems


@pytest.mark.long
def test_a_metric_may_have_a_gate_on_its_fall_and_one_on_its_rise(tmp_path: Path) -> None:
    gates = [{"metric": "RR", "value": "monitor", **limit} for limit in ({"at_least": -0.05}, {"at_most": 0.1})]
    finished(tmp_path, {"up": ranks(1, 3), "down": ranks(1, 1)}, "first", gates=gates)
    finished(tmp_path, {"up": ranks(1, 1), "down": ranks(1, 3)}, "later", gates=gates)
    status, document, _ = monitored(tmp_path)
    changes = {change["configuration"]: change for change in document["changes"] if change["metric"] == "RR"}
    assert {name: (change["state"], change["alarm"], change["tolerance"]) for name, change in changes.items()} == {
        "up": ("rose", True, 0.1),
        "down": ("fell", True, 0.05),
    }
    assert status == 3


@pytest.mark.long
def test_a_night_without_any_value_is_no_quiet_night(tmp_path: Path) -> None:
    finished(tmp_path, {"base": ranks(1, 3)}, "first", gates=[GATE])
    assert rankbeam("gate", tmp_path / "out").exit_code == 0  # new
    finished(tmp_path, {"base": ranks(-2)}, "later", gates=[GATE])  # every call fails
    outcome = rankbeam("gate", tmp_path / "out")
    assert (outcome.exit_code, "no query has a value" in outcome.stdout) == (3, True)
    status, document, problems = monitored(tmp_path)
    assert {change["state"] for change in document["changes"]} == {"unknown"}
    assert status == 3
    assert "run later" in problems
    assert "has no value of RR of base, nDCG@10 of base, P@1 of base" in problems


def test_wrong_gates_and_keys_are_refused(tmp_path: Path) -> None:
    def problem(**changes: Any) -> str:
        outcome = rankbeam("validate", night(tmp_path, 0, worst=2, **changes))
        assert outcome.exit_code == 2
        return " ".join(outcome.stderr.split())

    assert "no difference of RR can be -2" in problem(gates=[{**GATE, "at_least": -2}])
    assert "needs a metric, as its value is monitor" in problem(gates=[{"value": "monitor", "at_least": 0}])
    assert "monitor.alpha" in problem(monitor={"alpha": 0.5})
    assert "monitor.basline" in problem(monitor={"basline": "n0"})
    assert "fresh" in problem(fresh="hourly")


def test_fresh_calls_are_keyed_by_the_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retrieval of another day has another key, while ids of configurations, and keys without `fresh`, stay."""
    experiments.install(tmp_path, monkeypatch)

    def loaded(**changes: Any) -> Any:
        value = {
            "name": "x",
            "dataset": {"qrels": "qrels", "queries": "queries.jsonl"},
            "configurations": [{"name": "a", "retriever": {"type": "near", "version": "v1"}, "top_k": 5}],
            "output": {"path": "out"},
            **changes,
        }
        write(tmp_path / "e.yaml", yaml.safe_dump(value))
        return load_experiment(str(tmp_path / "e.yaml"))

    def version(experiment: Any, day: str) -> tuple[str, str]:
        pinned = experiment.pinned("run", day)
        return pinned.evaluation.configurations[0].config_id, pinned.sources[0].retriever.parameters.version

    plain, fresh = loaded(), loaded(fresh="daily")
    config_id = plain.evaluation.configurations[0].config_id
    assert version(plain, "2026-01-01") == (config_id, "v1")
    assert version(fresh, "2026-01-01") == (config_id, "v1 2026-01-01")
    assert fresh.pinned("run", "2026-01-02").calls.day == "2026-01-02"
    assert plain.pinned("run", "2026-01-02").calls.day is None


@pytest.mark.long
def test_of_earlier_nights_only_means_over_all_queries_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 1,000 nights with 20 slices, 1.3 GB were in memory."""
    for number in range(3):
        evaluated(night(tmp_path, number, worst=3, slices=["rank(RR)"]), f"n{number}")
    run, plain, slices = find_run(str(tmp_path / "out")), ConfigurationMetric.of, list[str]()

    def counted(row: dict[str, Any]) -> ConfigurationMetric:
        slices.append(row["slice"])
        return plain(row)

    monkeypatch.setattr(ConfigurationMetric, "of", counted)
    assert monitor_run(run).changes[0].nights
    assert {"all", "rank(RR)=01"} <= {*slices}
    assert slices.count("rank(RR)=01") == 2  # of the baseline, and of tonight
