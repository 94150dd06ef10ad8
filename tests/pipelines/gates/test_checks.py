"""A gate is missed where the run has no row for it, with the reason; nothing passes silently, and nothing crashes."""

import pyarrow as pa
import pytest
from support.judged import judged_run

from rankbeam.pipelines.gates.checks import check
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.write.rows import configurations


@pytest.fixture(scope="module")
def results() -> Results:
    """A run whose table of means has no row of one configuration over a slice, nor of a metric over all queries."""
    run = judged_run(3, queries=30, replicates=20)
    estimates = run.estimates()
    rows = [
        row
        for row in metrics_table(estimates, run.evaluation).to_pylist()
        if (row["config_id"], row["slice"]) != ("other", "kind=0")
        and (row["config_id"], row["slice"], row["metric"]) != ("other", "all", "RR")
    ]
    known = {
        "runs": [{"experiment_yaml": "slices: [kind]", "statistics": "{}", "dataset": "{}", "versions": "{}"}],
        "configurations": configurations(run.evaluation).to_pylist(),
        "configuration_metrics": rows,
        "comparisons": comparisons_table(estimates).to_pylist(),
    }
    return Results("", "run", InMemory({name: pa.Table.from_pylist(each) for name, each in known.items()}))


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
    (found,) = check(results, [gate])
    assert (found.configuration, found.is_met, found.found, found.margin) == ("other", False, None, None)
    assert found.reason == reason


def test_the_failure_rate_is_that_of_the_metrics_that_there_are(results: Results) -> None:
    (found,) = check(results, [Gate("", "failure_rate", 1.0, False, "other")])
    rates = [results.means["other", "all", metric].failure_rate for metric in results.metrics if metric != "RR"]
    assert (found.is_met, found.found) == (True, max(rates))
