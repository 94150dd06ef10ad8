"""A gate is missed where the run has no row for it, with the reason; nothing passes silently, and nothing crashes."""

import json
from typing import Any

import pyarrow as pa
import pytest
from support.judged import judged_run

from rankbeam.pipelines.gates.checks import Check, check
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.records.scores.rows import FEW, FEW_QUERIES
from rankbeam.transforms.write.rows import configurations

RUN = judged_run(3, queries=30, replicates=20)
MEANS = metrics_table(RUN.estimates(), RUN.evaluation).to_pylist()
COMPARISONS = comparisons_table(RUN.estimates(), RUN.evaluation).to_pylist()
Row = dict[str, Any]


def results_of(means: list[Row], comparisons: list[Row] = COMPARISONS, min_slice: int = 0) -> Results:
    statistics = json.dumps({"min_slice": min_slice, "confidence": 0.95})
    known = {
        "runs": [{"experiment_yaml": "slices: [kind]", "statistics": statistics, "dataset": "{}", "versions": "{}"}],
        "configurations": configurations(RUN.evaluation).to_pylist(),
        "configuration_metrics": means,
        "comparisons": comparisons,
    }
    return Results("", "run", InMemory({name: pa.Table.from_pylist(rows) for name, rows in known.items()}))


@pytest.fixture(scope="module")
def results() -> Results:
    """A run whose table of means has no row of one configuration over a slice, nor of a metric over all queries."""
    return results_of(
        [
            row
            for row in MEANS
            if (row["config_id"], row["slice"]) != ("other", "kind=0")
            and (row["config_id"], row["slice"], row["metric"]) != ("other", "all", "RR")
        ]
    )


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (Gate("RR", "mean", 0.0, True, "other"), "the run has no RR of it"),
        (Gate("RR", "failure_rate", 1.0, False, "other"), "the run has no RR of it"),
        (Gate("P@1", "low", 0.0, True, "other", "kind=0"), "the run has no P@1 of it"),
        (Gate("", "failure_rate", 1.0, False, "other", "kind=0"), "the run has no metric of it"),
    ],
)
def test_a_gate_whose_row_is_missing_is_missed(results: Results, gate: Gate, reason: str) -> None:
    (result,) = check(results, [gate])
    assert (result.configuration, result.is_met, result.measured, result.margin) == ("other", False, None, None)
    assert result.reason == reason


def test_the_failure_rate_is_that_of_the_metrics_that_there_are(results: Results) -> None:
    (result,) = check(results, [Gate("", "failure_rate", 1.0, False, "other")])
    rates = [results.means["other", "all", metric].failure_rate for metric in results.metrics if metric != "RR"]
    assert (result.is_met, result.measured) == (True, max(rates))


@pytest.mark.parametrize(
    ("at_least", "value", "margin"),
    [(True, 0.75, 0.25), (True, 0.5, 0.0), (True, 0.25, -0.25), (False, 0.25, 0.25), (False, 0.5, 0.0),
     (False, 0.75, -0.25), (True, None, None)],
)  # fmt: skip
def test_the_margin_is_the_distance_from_the_limit(at_least: bool, value: float | None, margin: float | None) -> None:
    checked = Check(Gate("RR", "mean", 0.5, at_least), "other", "all", value)
    assert (checked.margin, checked.is_met) == (margin, margin is not None and margin >= 0)


def test_only_what_is_new_is_skipped_and_only_where_the_gate_says_so() -> None:
    gates = [Gate("RR", "difference", 0.5, True, skips_new=skips_new) for skips_new in (False, True)]
    checks = [Check(gate, "other", "all", None, is_new=is_new) for gate in gates for is_new in (False, True)]
    assert [(result.is_skipped, result.is_met) for result in checks] == [(False, False)] * 3 + [(True, True)]
    assert not Check(gates[1], "other", "all", 0.25, is_new=True).is_met


def test_missed_gates_come_first() -> None:
    gates = [Gate("RR", "mean", limit, True, "other") for limit in (0.0, 1.0, 0.0)]
    assert [result.gate.limit for result in check(results_of(MEANS), gates)] == [1.0, 0.0, 0.0]


def test_differences_are_those_from_the_baseline_and_from_no_other_configuration() -> None:
    gates = [Gate("RR", "difference", -9.0, True, name) for name in ("other", "retrieval-only")]
    expected = {row["config_id"]: row["difference"] for row in COMPARISONS if row["baseline"] == "base"
                and (row["slice"], row["metric"]) == ("all", "RR")}  # fmt: skip
    results = check(results_of(MEANS), gates)
    assert {result.configuration: result.measured for result in results} == expected
    assert len(expected) == 2


def one_row(**changed: Any) -> tuple[float | None, str]:
    """The checked low end of an interval, in a run whose slices need five queries."""
    values = {"config_id": "other", "slice": "all", "metric": "RR"}
    rows = [row | changed if row.items() >= values.items() else row for row in MEANS]
    (result,) = check(results_of(rows, min_slice=5), [Gate("RR", "low", 0.0, True, "other")])
    return result.measured, result.reason


def test_an_interval_that_is_missing_has_the_reason() -> None:
    none = {"ci_low": None, "joint_low": None, "joint_high": None}
    constant = "equal values of a metric without an upper bound have no interval"
    assert one_row(**none, std_error=0.0, queries=5) == (None, f"5 {constant}")
    assert one_row(**none, std_error=0.0, queries=4) == (None, "too few queries for an interval: 4")
    assert one_row(**none, std_error=1.0, queries=5) == (None, "too few queries for an interval: 5")


def test_an_interval_of_few_queries_is_doubted_and_a_mean_is_not() -> None:
    gates = [Gate("RR", value, 0.0, True, "other") for value in ("mean", "low")]
    for queries, doubt in ((FEW_QUERIES, ""), (FEW_QUERIES - 1, FEW)):
        results = check(results_of([row | {"queries": queries} for row in MEANS]), gates)
        assert [result.reason for result in results] == ["", doubt]


@pytest.mark.parametrize("configuration", ["other", None])
def test_a_gate_about_a_slice_without_queries_is_missed_once(configuration: str | None) -> None:
    (result,) = check(results_of(MEANS), [Gate("RR", "mean", 0.0, True, configuration, "kind=7")])
    assert (result.configuration, result.slice, result.is_met) == (configuration or "", "kind=7", False)
    assert result.reason.startswith("no query is in this slice; ")


@pytest.mark.parametrize(("changed", "measured"), [({}, 0.0), ({"unpaired": 1}, -0.056), ({"losses": 1}, -0.056)])
def test_a_change_that_moves_no_query_meets_gates_on_differences(changed: dict[str, int], measured: float) -> None:
    equal = {"difference": 0.0, "ci_low": -0.056, "ci_high": 0.056, "wins": 0, "losses": 0, "unpaired": 0, **changed}
    (result,) = check(
        results_of(MEANS, [row | equal for row in COMPARISONS]), [Gate("RR", "difference_low", -0.01, True, "other")]
    )
    assert (result.measured, result.is_met) == (measured, measured == 0.0)
    assert (result.reason == "equal at every query") == result.is_met


def test_a_difference_that_is_missing_has_the_reason() -> None:
    others = [row for row in COMPARISONS if row["metric"] != "RR"]
    of_all = [row for row in COMPARISONS if row["slice"] == "all"]
    gate = Gate("RR", "difference", -9.0, True, "other", "kind=0")
    reasons = [check(results_of(MEANS, rows, min_slice=7), [gate])[0].reason for rows in (others, of_all)]
    assert reasons == [
        "the baseline run has no such metric",
        "fewer than 7 queries of this slice can be compared",
    ]


def test_a_baseline_without_the_metric_is_not_compared_by_its_other_metrics() -> None:
    """Metrics with labels, for example, can refuse it; here, neither run has the values of queries."""
    baseline = results_of([row for row in MEANS if row["metric"] != "RR"])
    (result,) = check(results_of(MEANS), [Gate("RR", "difference", -9.0, True, "other")], baseline)
    assert (result.is_met, result.reason) == (False, "the baseline run has no such metric")
