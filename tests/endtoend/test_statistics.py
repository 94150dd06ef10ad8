"""Intervals and comparisons of a real run against SciPy, from the values the run itself wrote."""

import numpy as np
import pytest
from scipy import stats
from support.data import SHARED_DATA, needs_shared_data
from support.runs import query_values, run_experiment

from pipelines.results import Results

ROBUST = SHARED_DATA / "robust03"
METRICS = ["nDCG@10", "AP", "P@10", "RR"]


@pytest.fixture(scope="module")
def robust(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_experiment(
        tmp_path_factory.mktemp("robust"),
        {
            "dataset": {"qrels": str(ROBUST / "qrels.txt.gz")},
            "configurations": [
                {"name": name, "retriever": {"type": "run_file", "path": str(ROBUST / "runs" / f"input.{name}.gz")}}
                for name in ("aplrob03a", "humR03dc", "pircRBa1")
            ],
            "metrics": METRICS,
            "baseline": "humR03dc",
        },
    )


def _column(results: Results, name: str, metric: str) -> np.ndarray:
    values = query_values(results)[name]
    return np.array([values[query][metric] for query in sorted(values)])


@needs_shared_data
@pytest.mark.parametrize("metric", METRICS)
def test_intervals_are_those_of_student(robust: Results, metric: str) -> None:
    for row in robust.configurations:
        values = _column(robust, row["name"], metric)
        found = robust.means[row["config_id"], "all", metric]
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        expected = [values.mean(), stats.sem(values), low, high]
        ours = [found["mean"], found["std_error"], found["ci_low"], found["ci_high"]]
        assert ours == pytest.approx(expected, rel=1e-9)
        assert found["lowest"] == found["highest"] == found["mean"]  # nothing failed


@needs_shared_data
@pytest.mark.parametrize("metric", METRICS)
def test_comparisons_are_paired_t_tests_with_the_baseline(robust: Results, metric: str) -> None:
    names = {row["config_id"]: row["name"] for row in robust.configurations}
    rows = [row for row in robust.table("comparisons").to_pylist() if row["metric"] == metric]
    assert {names[row["config_id"]] for row in rows} == {"aplrob03a", "pircRBa1"}
    for row in rows:
        assert names[row["baseline"]] == "humR03dc"
        ours, base = (_column(robust, name, metric) for name in (names[row["config_id"]], "humR03dc"))
        test = stats.ttest_rel(ours, base)
        low, high = test.confidence_interval(0.95)
        expected = [(ours - base).mean(), test.pvalue, low, high]
        assert [row["difference"], row["p_value"], row["ci_low"], row["ci_high"]] == pytest.approx(expected, rel=1e-9)
        assert (row["wins"], row["losses"]) == ((ours > base).sum(), (ours < base).sum())
        assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(ours)
