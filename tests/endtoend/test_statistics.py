"""Intervals and comparisons against SciPy, from the values the runs themselves wrote."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.data import REPOSITORY, SHARED_DATA, needs_shared_data
from support.runs import query_values, run_experiment

from rankbeam.pipelines.results.run import Results

ROBUST = SHARED_DATA / "robust03"
FILES = {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}
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
def test_means_and_standard_errors(robust: Results, metric: str) -> None:
    for row in robust.configurations:
        values = _column(robust, row["name"], metric)
        mean = robust.means[row["config_id"], "all", metric]
        assert [mean.mean, mean.std_error] == pytest.approx([values.mean(), stats.sem(values)], rel=1e-9)
        assert mean.lowest == mean.highest == mean.mean  # nothing failed


@needs_shared_data
@pytest.mark.parametrize("metric", METRICS)
def test_intervals_are_students_of_the_values_and_of_one_more_at_each_end(robust: Results, metric: str) -> None:
    for row in robust.configurations:
        values = _column(robust, row["name"], metric)
        mean = robust.means[row["config_id"], "all", metric]
        assert [mean.ci_low, mean.ci_high] == pytest.approx(_students(values, 0.95), rel=1e-9)


def _students(values: np.ndarray, confidence: float) -> tuple[float, float]:
    more = np.append(values, [0.0, 1.0])
    low, high = stats.t.interval(confidence, len(values) - 1, more.mean(), stats.sem(more))
    return float(low), float(high)


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    """SciPy's percentile interval, at the levels that Hesterberg gives for n values."""
    count = len(values)
    level = 1.0 - 2.0 * stats.norm.sf(stats.t.ppf(0.975, count - 1) * np.sqrt(count / (count - 1)))
    result = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return result.confidence_interval.low, result.confidence_interval.high


def _known_to(values: np.ndarray) -> float:
    """Four standard deviations of the 2.5% quantile of 1,000 normal replicates."""
    return float(4 * np.sqrt(0.025 * 0.975 / 1000) / stats.norm.pdf(1.96) * stats.sem(values))


@needs_shared_data
@pytest.mark.parametrize("metric", METRICS)
def test_comparisons_are_paired_with_the_baseline(robust: Results, metric: str) -> None:
    names = {row["config_id"]: row["name"] for row in robust.configurations}
    rows = [row for row in robust.table("comparisons").to_pylist() if row["metric"] == metric]
    assert {names[row["config_id"]] for row in rows} == {"aplrob03a", "pircRBa1"}
    for row in rows:
        assert names[row["baseline"]] == "humR03dc"
        ours, base = (_column(robust, name, metric) for name in (names[row["config_id"]], "humR03dc"))
        differences = ours - base
        expected = [
            differences.mean(),
            stats.sem(differences),
            stats.ttest_rel(ours, base).pvalue,
            differences.mean() / differences.std(ddof=1),
        ]
        values = [row[name] for name in ("difference", "std_error", "t_p_value", "effect_size")]
        assert values == pytest.approx(expected, rel=1e-9)
        assert [row["ci_low"], row["ci_high"]] == pytest.approx(_bootstrap(differences), abs=_known_to(differences))
        assert (row["wins"], row["losses"]) == ((ours > base).sum(), (ours < base).sum())
        assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(ours)
        assert row["unpaired"] == 0


@needs_shared_data
@pytest.mark.parametrize("metric", METRICS)
def test_p_values_are_those_of_a_permutation_test(robust: Results, metric: str) -> None:
    names = {row["config_id"]: row["name"] for row in robust.configurations}
    rows = [row for row in robust.table("comparisons").to_pylist() if row["metric"] == metric]
    for row in rows:
        pair = [_column(robust, name, metric) for name in (names[row["config_id"]], "humR03dc")]
        theirs = stats.permutation_test(
            pair, lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", vectorized=True,
            n_resamples=20_000, rng=np.random.default_rng(0),
        ).pvalue  # fmt: skip
        noise = 4 * np.sqrt(theirs * (1 - theirs) * (1 / 10_000 + 1 / 20_000)) + 2e-4
        assert row["p_value"] == pytest.approx(theirs, abs=noise)
    p_values = sorted(row["p_value"] for row in rows)
    holm = [min(1.0, 2 * p_values[0]), min(1.0, max(2 * p_values[0], p_values[1]))]
    assert sorted(row["p_adjusted"] for row in rows) == pytest.approx(holm)
    expected = sorted(stats.false_discovery_control(p_values))
    assert sorted(row["q_value"] for row in rows) == pytest.approx(expected)


@needs_shared_data
def test_all_pairs_are_compared_when_asked(tmp_path: Path) -> None:
    runs = sorted((ROBUST / "runs").iterdir())
    configurations = [{"name": run.name, "retriever": {"type": "run_file", "path": str(run)}} for run in runs]
    results = run_experiment(
        tmp_path,
        {
            "dataset": {"qrels": str(ROBUST / "qrels.txt.gz")},
            "configurations": configurations,
            "metrics": ["AP"],
            "statistics": {"pairs": "all", "confidence": 0.9, "seed": 3},
        },
    )
    rows = results.table("comparisons").to_pylist()
    pairs = {frozenset((row["config_id"], row["baseline"])) for row in rows}
    assert len(pairs) == len(rows) == len(runs) * (len(runs) - 1) // 2
    means = {row["config_id"]: results.means[row["config_id"], "all", "AP"] for row in results.configurations}
    for row in rows:
        difference = means[row["config_id"]].mean - means[row["baseline"]].mean
        assert row["difference"] == pytest.approx(difference)
        assert row["p_value"] <= row["p_adjusted"] <= 1.0
    best = max(means.values(), key=lambda row: row.mean)
    assert best.may_be_best
    assert not all(row.may_be_best for row in means.values())
    for row in means.values():
        assert row.joint_low < row.ci_low < row.ci_high < row.joint_high
    assert results.run["statistics"] == {
        "all_pairs": True, "confidence": 0.9, "min_slice": 10, "replicates": 1000, "seed": 3,
    }  # fmt: skip


def test_slices_may_cross_and_small_ones_are_not_compared(tmp_path: Path) -> None:
    helpdesk = REPOSITORY / "examples" / "helpdesk"
    retrievers = [{"type": "bm25"}, {"type": "bm25", "stemming": "none"}]
    results = run_experiment(
        tmp_path,
        {
            "dataset": {name: str(helpdesk / path) for name, path in FILES.items()},
            "configurations": [
                {"name": str(i), "retriever": retriever, "top_k": 10} for i, retriever in enumerate(retrievers)
            ],
            "metrics": ["AP"],
            "slices": ["intent", "intent * difficulty"],
            "statistics": {"min_slice": 8},
        },
    )
    first = results.configurations[0]["config_id"]
    crossed = {name: results.means[first, name, "AP"] for name in results.slices if "×" in name}
    assert sum(row.queries for row in crossed.values()) == results.means[first, "all", "AP"].queries
    assert "intent=how_to×difficulty=easy" in crossed
    queries = list(results.query_metrics(first))
    attributes = {row["query_id"]: row["slices"] for row in results.table("query_metrics").to_pylist()}
    chosen = [
        query["metrics"]["AP"]
        for query in queries
        if attributes[query["query_id"]]
        == [{"name": "intent", "value": "how_to"}, {"name": "difficulty", "value": "easy"}]
    ]
    assert crossed["intent=how_to×difficulty=easy"].mean == pytest.approx(np.mean(chosen))
    compared = {row["slice"]: row["queries"] for row in results.table("comparisons").to_pylist()}
    large = {name for name in results.slices if results.means[first, name, "AP"].queries >= 8}
    assert set(compared) == large < set(results.slices)
    for name in results.slices:
        assert (results.means[first, name, "AP"].ci_low is None) == (name not in large)


def test_without_replicates_there_are_no_joint_intervals(tmp_path: Path) -> None:
    helpdesk = REPOSITORY / "examples" / "helpdesk"
    results = run_experiment(
        tmp_path,
        {
            "dataset": {name: str(helpdesk / path) for name, path in FILES.items()},
            "configurations": [{"name": "one", "retriever": {"type": "bm25"}, "top_k": 10}],
            "metrics": ["AP"],
            "statistics": {"replicates": 0, "confidence": 0.8},
        },
    )
    values = _column(results, "one", "AP")
    row = results.means[results.configurations[0]["config_id"], "all", "AP"]
    assert (row.ci_low, row.ci_high) == pytest.approx(_students(values, 0.8), rel=1e-9)
    assert row.may_be_best is row.joint_low is None
