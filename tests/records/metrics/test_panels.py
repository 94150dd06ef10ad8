"""Scores of a random matrix of values, some failed and some undefined in each panel, against plain Python."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.judged import JUDGED, METRICS, NAMES, Cell, JudgedRun, judged_run

from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.bootstrap import weights
from rankbeam.transforms.records.scores.comparisons import comparisons_of, comparisons_table, metrics_table
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.write.rows import query_metrics

LOWEST = {"AnswerRelevance(ragas)": -1.0}


@pytest.fixture(scope="module", params=range(3))
def run(request: pytest.FixtureRequest) -> JudgedRun:
    return judged_run(request.param)


@pytest.fixture(scope="module")
def means(run: JudgedRun) -> dict[tuple[str, str, str], ConfigurationMetric]:
    rows = map(ConfigurationMetric.of, metrics_table(run.estimates(), run.evaluation).to_pylist())
    return {(row.config_id, row.slice, row.metric): row for row in rows}


@pytest.fixture(scope="module")
def comparisons(run: JudgedRun) -> dict[tuple[str, str, str, str], Comparison]:
    rows = comparisons_of(run.estimates())
    return {(row.config_id, row.baseline, row.slice, row.metric): row for row in rows}


def of_slice(cells: dict[str, Cell], name: str) -> dict[str, Cell]:
    parity = {"kind=0": 0, "kind=1": 1}.get(name)
    return {query_id: cell for query_id, cell in cells.items() if parity is None or int(query_id[-3:]) % 2 == parity}


def test_means_counts_and_bounds(run: JudgedRun, means: dict[tuple[str, str, str], ConfigurationMetric]) -> None:
    assert list(means) == [*product(NAMES, ("all", "kind=0", "kind=1"), METRICS)]
    for (config, name, metric), row in means.items():
        cells = of_slice(run.cells[config, metric], name).values()
        states, values = [cell[0] for cell in cells], [cell[1] for cell in cells if cell[1] is not None]
        counts = [states.count(state) for state in ("empty", "failed", "missing", "undefined")]
        assert [row.empty, row.failed, row.missing, row.undefined] == counts
        assert (row.queries, row.panel) == (len(values), metric if metric in JUDGED else "retrieval")
        if not values:
            assert (row.mean, row.absent) == (None, "missing")
            continue
        total = float(sum(map(Fraction, values)))
        assert row.mean == float(sum(map(Fraction, values)) / len(values))
        lowest = (total + row.failed * LOWEST.get(metric, 0.0)) / (len(values) + row.failed)
        highest = (total + row.failed) / (len(values) + row.failed)
        assert [row.lowest, row.highest] == pytest.approx([lowest, highest] if row.failed else [row.mean] * 2)
        assert row.std_error == pytest.approx(stats.sem(values))


def test_intervals_are_students_of_the_queries_with_a_value_and_of_one_more_at_each_end(
    run: JudgedRun, means: dict[tuple[str, str, str], ConfigurationMetric]
) -> None:
    for config, metric in product(NAMES[:2], ("Faithfulness", "AnswerRelevance(ragas)", "RR")):
        row = means[config, "all", metric]
        scored = {query_id: cell[1] for query_id, cell in run.cells[config, metric].items() if cell[1] is not None}
        ends = [-1.0 if metric == "AnswerRelevance(ragas)" else 0.0, 1.0]
        more = [*scored.values(), *ends]
        low, high = stats.t.interval(0.95, len(scored) - 1, np.mean(more), stats.sem(more))
        assert (row.ci_low, row.ci_high) == pytest.approx((max(low, ends[0]), min(high, ends[1])), abs=1e-12)


def percentiles(values: dict[str, float]) -> tuple[float, float]:
    """The expanded percentile interval, from the definition; right where enough values are different."""
    drawn = weights(hash_strings(pa.array(list(values))), 200, 5).astype(float)
    resampled = np.array(list(values.values())) @ drawn / drawn.sum(axis=0)
    count = len(values)
    tail = stats.norm.cdf(stats.t.ppf(0.025, count - 1) * np.sqrt(count / (count - 1)))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


def test_differences_are_over_the_queries_that_both_have(
    run: JudgedRun, comparisons: dict[tuple[str, str, str, str], Comparison]
) -> None:
    for (one, other, name, metric), row in comparisons.items():
        ours, theirs = (of_slice(run.cells[configuration, metric], name) for configuration in (one, other))
        pairs = {query: (ours[query][1], theirs[query][1]) for query in ours}
        both = {query: a - b for query, (a, b) in pairs.items() if a is not None and b is not None}
        assert row.unpaired == sum((a is None) != (b is None) for a, b in pairs.values())
        assert (row.queries, row.wins, row.losses) == (
            len(both), sum(value > 0 for value in both.values()), sum(value < 0 for value in both.values()),
        )  # fmt: skip
        if both:
            assert row.difference == float(sum(map(Fraction, both.values())) / len(both))
        if name == "all" and metric == "AnswerRelevance(ragas)" and both:
            assert (row.ci_low, row.ci_high) == pytest.approx(percentiles(both), abs=1e-8)
            paired = stats.ttest_1samp(list(both.values()), 0.0)
            assert row.t_p_value == pytest.approx(paired.pvalue)
            assert row.p_value == pytest.approx(paired.pvalue, abs=0.03)  # a randomisation test has its own
    assert {key[:2] for key in comparisons if key[3] == "RR"} == {(b, a) for a, b in (NAMES[:2], NAMES[::2], NAMES[1:])}


def test_what_is_compared_over_few_queries_of_one_panel_only_is_left_out_there(
    comparisons: dict[tuple[str, str, str, str], Comparison],
) -> None:
    """Slices of a configuration that is not judged have no query that both have; of rankings they have."""
    assert ("retrieval-only", "base", "kind=0", "RR") in comparisons
    assert ("retrieval-only", "base", "kind=0", "Faithfulness") not in comparisons
    row = comparisons["retrieval-only", "base", "all", "Faithfulness"]
    assert (row.difference, row.queries, row.p_value) == (None, 0, None)


def test_a_judge_that_is_down_moves_no_metric_of_rankings() -> None:
    run = judged_run(1)
    partitions = [
        replace(
            partition, configurations=tuple(replace(one, panels=(one.retrieval,)) for one in partition.configurations)
        )
        for partition in run.partitions
    ]
    alone = JudgedRun(replace(run.evaluation, metrics=run.evaluation.retrieval), partitions, {})
    for table in (metrics_table, comparisons_table):
        together, apart = (table(some.estimates(), some.evaluation).to_pylist() for some in (run, alone))
        assert [row for row in together if row["metric"] not in JUDGED] == apart


def test_every_query_keeps_the_status_and_the_reason_of_each_judged_metric(run: JudgedRun) -> None:
    for partition in run.partitions:
        for table, name in zip(query_metrics(partition, run.evaluation), NAMES, strict=True):
            for row in table.to_pylist():
                cells = {metric: run.cells[name, metric][row["query_id"]] for metric in METRICS}
                assert row["status"] == cells["RR"][0]
                shown = [metric for metric in METRICS if metric in JUDGED or cells[metric][1] is not None]
                assert [item["metric"] for item in row["metrics"]] == shown
                for item in row["metrics"]:
                    status, value, reason = cells[item["metric"]]
                    own = (status, reason) if item["metric"] in JUDGED else (None, None)
                    assert (item["status"], item["reason"], item["value"]) == (*own, value)
