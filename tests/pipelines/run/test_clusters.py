"""`statistics.cluster` in whole runs: tables against plain Python, comparisons of finished runs, refusals, warnings."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.inputs import trec_qrels, trec_run, write
from support.judged import judged_run
from support.runs import query_values, rankbeam, run_experiment

from rankbeam.pipelines.report.coverage import method
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table

SIZES = (1, 2, 3, 1, 5, 2, 4, 1, 6, 3, 2, 1)
PINNED = {
    1: ("4d0c927828dcf695", "8bf08f5f466043a5"),
    2: ("49817c979dd25dad", "068019a0cffaa1a5"),
}
"""Hashes of tables without clusters, to ten digits, by the commit before these existed."""


def inputs(folder: Path, attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """One relevant document per query, at ranks that clusters share in part."""
    rng = np.random.default_rng(3)
    ids = [f"q{number:02}" for number in range(len(attributes))]
    write(folder / "qrels", trec_qrels([(query, "d", 1.0) for query in ids]))
    lines = [{"_id": query, "text": "x", "metadata": own} for query, own in zip(ids, attributes, strict=True)]
    write(folder / "queries.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    for name, worst in (("base", 6), ("other", 4)):
        ranks = rng.integers(1, worst, len(ids)).tolist()
        rows = [
            (query, "d" if rank == place else f"x{rank}", 9.0 - rank)
            for query, place in zip(ids, ranks, strict=True)
            for rank in range(1, 6)
        ]
        write(folder / f"{name}.run", trec_run(rows))
    return {
        "dataset": {"qrels": "qrels", "queries": "queries.jsonl"},
        "configurations": [
            {"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}} for name in ("base", "other")
        ],
        "metrics": ["RR", "Success@1"],
    }


def conversations() -> list[dict[str, Any]]:
    """The last two queries have no conversation."""
    named = [{"conversation": f"c{number}"} for number, size in enumerate(SIZES) for _ in range(size)]
    return [{**item, "half": "a" if i % 2 else "b"} for i, item in enumerate([*named, {}, {}])]


def plain(values: list[float], clusters: list[str]) -> tuple[float, float]:
    """Effective clusters and standard error."""
    mean, names = sum(values) / len(values), sorted(set(clusters))
    sums = [sum(v - mean for v, c in zip(values, clusters, strict=True) if c == name) for name in names]
    count = len(values) ** 2 / sum(clusters.count(name) ** 2 for name in names)
    return count, math.sqrt(sum(item**2 for item in sums) / len(values) ** 2 * count / (count - 1))


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("clustered")
    experiment = inputs(folder, conversations())
    statistics = {"replicates": 100, "cluster": "conversation", "min_slice": 3}
    return run_experiment(folder, {**experiment, "slices": ["half"], "statistics": statistics})


def test_tables_are_what_plain_python_makes_of_the_values(clustered: Results) -> None:
    attributes = {f"q{number:02}": item for number, item in enumerate(conversations())}
    values = query_values(clustered)
    for name in clustered.slices:
        chosen = [q for q in attributes if name == "all" or attributes[q]["half"] == name[-1]]
        clusters = [attributes[q].get("conversation", q) for q in chosen]
        for metric in clustered.metrics:
            for row in clustered.configurations:
                own = [values[row["name"]][q][metric] for q in chosen]
                mean = clustered.means[row["config_id"], name, metric]
                assert mean.clusters is not None
                assert (mean.clusters, mean.std_error) == pytest.approx(plain(own, clusters), rel=1e-8)
                assert (mean.queries, mean.is_unreliable) == (len(chosen), True)
            (comparison,) = (item for item in clustered.comparisons if (item.slice, item.metric) == (name, metric))
            differences = [values["other"][q][metric] - values["base"][q][metric] for q in chosen]
            assert (comparison.clusters, comparison.std_error) == pytest.approx(plain(differences, clusters), rel=1e-8)


def test_success_has_no_exact_interval_of_a_share(clustered: Results) -> None:
    from rankbeam.transforms.kernels.statistics.estimates import Estimate

    for row in clustered.configurations:
        mean = clustered.means[row["config_id"], "all", "Success@1"]
        assert mean.clusters is not None
        assert mean.mean is not None
        assert mean.std_error is not None
        assert mean.interval == pytest.approx(Estimate(mean.clusters, mean.mean, mean.std_error).interval(), rel=1e-12)


def test_a_comparison_of_the_finished_run_has_the_same_numbers(clustered: Results) -> None:
    outcome = rankbeam("compare", clustered.output, "--slice", "all", "--slice", "half", "--format", "json")
    rows = {(row["slice"], row["metric"]): row for row in json.loads(outcome.stdout)["comparisons"]}
    for item in clustered.comparisons:
        actual = rows[item.slice, item.metric]
        assert [actual[name] for name in ("ci_low", "ci_high", "p_value", "t_p_value", "detectable", "clusters")] == [
            item.ci_low, item.ci_high, item.p_value, item.t_p_value, item.detectable, item.clusters,
        ]  # fmt: skip
    text = " ".join(rankbeam("compare", clustered.output).stdout.split())
    assert "Intervals and tests count queries with the same conversation as one: 9.64 effective clusters." in text
    assert "(9.64 here)" in method(Study(clustered))[-1]


def test_any_number_of_workers_gives_the_same_tables(clustered: Results, tmp_path: Path) -> None:
    experiment = inputs(tmp_path, conversations())
    statistics = {"replicates": 100, "cluster": "conversation", "min_slice": 3}
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    other = run_experiment(
        tmp_path, {**experiment, "slices": ["half"], "statistics": statistics}, "run", beam_options=options
    )
    assert list(other.means.values()) == list(clustered.means.values())
    assert other.comparisons == clustered.comparisons


@pytest.mark.parametrize("seed", PINNED)
def test_without_clusters_no_number_changes(seed: int) -> None:
    run = judged_run(seed, queries=90)
    estimates = run.estimates()
    actual = []
    for table in (metrics_table(estimates, run.evaluation), comparisons_table(estimates, run.evaluation)):
        added = {"clusters", "stage", "unjudged_lowest", "unjudged_highest", "judge_power", "effective_labels"}
        new = [name for name in table.column_names if name in added]
        assert all(table[name].null_count == table.num_rows for name in new)
        rows = [
            {name: float(f"{value:.10g}") if isinstance(value, float) else value for name, value in row.items()}
            for row in table.drop_columns([*new, "lower_is_better"]).to_pylist()
        ]
        actual.append(hashlib.sha256(repr(rows).encode()).hexdigest()[:16])
    assert tuple(actual) == PINNED[seed]


def test_settings_without_clusters_are_stored_as_before(tmp_path: Path) -> None:
    results = run_experiment(tmp_path, inputs(tmp_path, conversations()))
    assert sorted(results.run["statistics"]) == ["all_pairs", "confidence", "min_slice", "replicates", "seed"]


def refused(folder: Path, attributes: list[dict[str, Any]], **changes: Any) -> str:
    import yaml

    experiment = {"name": "x", "output": {"path": "out"}, **inputs(folder, attributes), **changes}
    write(folder / "e.yaml", yaml.safe_dump(experiment))
    outcome = rankbeam("evaluate", folder / "e.yaml")
    assert outcome.exit_code == 2
    assert not (folder / "out" / "runs").exists()
    return " ".join(outcome.stderr.split())


def test_clusters_that_are_none_are_refused(tmp_path: Path) -> None:
    typo = refused(tmp_path / "a", conversations(), statistics={"cluster": "conversatoin"})
    assert "statistics.cluster: no query has the attribute 'conversatoin'; did you mean 'conversation'?" in typo
    assert "e.yaml:20:" in typo
    one = refused(tmp_path / "b", [{"document": "c"}] * 30, statistics={"cluster": "document"})
    assert "all queries have the document 'c', and a single cluster has no interval" in one
    without = refused(
        tmp_path / "c", conversations(), statistics={"cluster": "conversation"}, dataset={"qrels": "qrels"}
    )
    assert "statistics.cluster: is an attribute of queries, but dataset.queries is missing" in without


def test_a_single_conversation_has_means_without_intervals(tmp_path: Path) -> None:
    results = run_experiment(
        tmp_path, {**inputs(tmp_path, [{"conversation": "c"}] * 30), "statistics": {"cluster": "conversation"}}
    )
    assert [item for item in results.run["warnings"] if "conversation" in item] == [
        "all queries have the same conversation, so means have no intervals, and differences no tests"
    ]
    assert {(mean.clusters, mean.std_error) for mean in results.means.values()} == {(1.0, None)}


def test_clusters_of_one_query_each_are_warned_of(tmp_path: Path) -> None:
    attributes = [{"conversation": f"c{number}"} for number in range(30)]
    results = run_experiment(tmp_path, {**inputs(tmp_path, attributes), "statistics": {"cluster": "conversation"}})
    assert [item for item in results.run["warnings"] if "cluster" in item] == [
        "statistics.cluster: no two queries have the same conversation, so every query is its own cluster"
    ]


def test_questions_about_one_document_are_warned_of(tmp_path: Path) -> None:
    attributes = [{"source_document": "d" if number < 12 else f"d{number}"} for number in range(30)]
    experiment = inputs(tmp_path, attributes)
    results = run_experiment(tmp_path, experiment)
    assert any("about 40% of the queries are about one document" in item for item in results.run["warnings"])
    again = run_experiment(tmp_path, {**experiment, "statistics": {"cluster": "source_document"}}, "again")
    assert not any("about one document" in item for item in again.run["warnings"])
