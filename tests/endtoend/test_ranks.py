"""Slices by the rank of the first hit: each configuration has its own queries in them."""

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.finished import LEVELS, QUERIES, experiment, finished, ranked, ranks
from support.helpdesk import HELPDESK, few
from support.inputs import write
from support.pages import Page

from rankbeam.pipelines import report
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.slices import rank_labels

__all__ = ["ranked"]

RANKS = {"one": ranks(1, 2, 2, 1, 0), "two": ranks(1, 1, 2, 3, 2, 13, q05=-1)}
SLICED: dict[str, Any] = {"slices": ["language", "rank(RR)"]}
COUNTED = ("mean", "ci_low", "ci_high", "std_error", "queries", "empty")
COMPARED = ("difference", "ci_low", "ci_high", "p_value", "t_p_value", "queries", "wins", "ties", "losses", "unpaired")


def label(rank: int) -> str:
    """The slice of a query whose relevant document has this rank."""
    return "(unknown)" if rank < 0 else "(none)" if rank == 0 else f"{rank:02}" if rank <= 10 else "11 to 20"


def enough(queries: list[str], cluster: str | None) -> bool:
    """Return whether a run over some queries alone is possible: one cluster has no interval."""
    return cluster is None or len({LEVELS[query] for query in queries}) > 1


def queries_of(*names: str) -> Mapping[str, list[str]]:
    """By label, the queries that have it under all of some configurations."""
    groups = defaultdict(list)
    for place, query in enumerate(QUERIES):
        labels = {label(RANKS[name][place]) for name in names}
        if len(labels) == 1:
            groups[labels.pop()].append(query)
    return groups


@pytest.mark.campaign
@pytest.mark.parametrize("cluster", [None, *in_campaigns("level")])
def test_a_slice_is_what_a_run_over_its_queries_alone_gives(tmp_path: Path, cluster: str | None) -> None:
    statistics = {"replicates": 200, "min_slice": 1} | ({} if cluster is None else {"cluster": cluster})
    whole = finished(tmp_path / "whole", RANKS, **SLICED, statistics=statistics)
    means = {row["name"]: row["config_id"] for row in whole.configurations}
    assert {name for name in whole.slices if name.startswith("rank")} == {
        f"rank(RR)={label}" for name in RANKS for label in queries_of(name)
    }
    for of_label, some in queries_of("two").items():
        if not enough(some, cluster):
            continue
        alone = finished(tmp_path / "two" / of_label, RANKS, queries=some, slices=[], statistics=statistics)
        assert alone.metrics == whole.metrics
        for metric in whole.metrics:
            ours, theirs = (
                whole.means[means["two"], f"rank(RR)={of_label}", metric],
                alone.means[means["two"], "all", metric],
            )
            assert [getattr(ours, field) for field in COUNTED] == [getattr(theirs, field) for field in COUNTED]
            assert ours.may_be_best is None
    rows = {(row.slice, row.metric): row for row in whole.comparisons}
    for of_label, some in queries_of(*RANKS).items():
        if not enough(some, cluster):
            continue
        alone = finished(tmp_path / "both" / of_label, RANKS, queries=some, slices=[], statistics=statistics)
        for theirs in alone.comparisons:
            ours = rows[f"rank(RR)={of_label}", theirs.metric]
            fields = [name for name in COMPARED if theirs.wins or theirs.losses or not name.endswith("p_value")]
            assert [getattr(ours, name) for name in fields] == [getattr(theirs, name) for name in fields]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, ranked: None) -> Results:  # noqa: ARG001  its retriever
    statistics = {"replicates": 100, "min_slice": 2}
    return finished(tmp_path_factory.mktemp("run"), RANKS, metrics=["nDCG@10", "RR"], **SLICED, statistics=statistics)


def test_a_comparison_of_finished_runs_has_the_same_slices(run: Results) -> None:
    stored = {(row.slice, row.metric): row.difference for row in run.comparisons if row.slice.startswith("rank")}
    table = rankbeam("compare", run.output, "--slice", "rank(RR)", "--format", "csv").stdout
    lines = [line.split(",") for line in table.splitlines()]
    places = [lines[0].index(name) for name in ("slice", "metric", "difference")]
    shown = {(line[places[0]], line[places[1]]): float(line[places[2]]) for line in lines[1:] if line[places[2]]}
    assert shown
    assert shown == {key: pytest.approx(value) for key, value in stored.items() if value is not None}


def test_every_query_says_its_rank_under_each_configuration(run: Results) -> None:
    names = {row["config_id"]: row["name"] for row in run.configurations}
    for row in run.table("query_metrics").to_pylist():
        values = {item["name"]: item["value"] for item in row["slices"]}
        assert values["rank(RR)"] == label(RANKS[names[row["config_id"]]][QUERIES.index(row["query_id"])])


def test_the_terminal_and_the_report_show_how_many_queries_each_configuration_has(run: Results) -> None:
    lines = [line.split("   ") for line in rankbeam("report", run.output).stdout.splitlines()]
    assert lines
    page = Page.of(report.build(run))
    assert "nDCG@10 by rank(RR), where there are enough queries for an interval" in page.text
    assert "RR by rank(RR), where there" not in page.text
    for name in RANKS:
        for some in queries_of(name).values():
            assert f"n = {len(some)}" in page.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"slices": ["rank(nDCG@10)"]}, "nDCG@10 is not a reciprocal rank; valid are: rank(RR), rank(ContextRR)"),
        ({"slices": ["rank(RR@5)"]}, "rank(RR@5) needs the metric RR@5; add it to metrics:"),
        ({"slices": ["rank(ContextRR)"]}, "rank(ContextRR) needs the metric ContextRR; add it to metrics:"),
        ({"slices": ["rank(RR)*language"]}, "slices by rank cannot be crossed with others: rank(RR)×language"),
    ],
)
def test_a_rank_that_no_metric_says_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    from rankbeam import evaluate

    with pytest.raises((InputError, InputErrors)) as refused:
        evaluate({**experiment(tmp_path, RANKS), "name": "x", "output": {"path": str(tmp_path / "out")}, **changed})
    assert message in str(refused.value)


@given(st.lists(st.one_of(st.just(0.0), st.just(math.nan), st.integers(1, 10**6).map(lambda rank: 1 / rank))))
def test_labels_sort_as_ranks_do(values: list[float]) -> None:
    labels = dict(zip(rank_labels(np.array(values)), values, strict=True))
    for one, value in labels.items():
        rank = 0 if value != value or not value else round(1 / value)
        if rank:
            assert one[:2] == f"{rank:02}"[:2] if rank <= 10 else int(one[:2]) <= rank
    known = sorted(one for one, value in labels.items() if value > 0)
    assert known == sorted(known, key=lambda one: -labels[one])


@pytest.mark.long
def test_the_rank_of_the_first_supporting_context_is_that_of_the_verdicts(tmp_path: Path) -> None:
    text, place = (HELPDESK / "answers.yaml").read_text(), few(tmp_path, 24)
    for old, new in {
        "ContextRecall, ClaimRecall]": "ContextRecall, ClaimRecall, ContextRR]",
        "[difficulty]": "[rank(ContextRR)]",
        "contexts: 3": "contexts: 5",
        **{f"{name}: {file}": f"{name}: {place / file}" for name, file in
           {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}.items()},
    }.items():  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    shown = rankbeam("evaluate", write(tmp_path / "e.yaml", text), "--output", str(tmp_path / "out")).stdout
    assert "nDCG@10 by rank(ContextRR)" in shown
    run = find_run(str(tmp_path / "out"))
    by_verdicts = ranks_by_verdicts(run)
    values = defaultdict(list)
    for row in run.table("query_metrics").to_pylist():
        (rank,) = (item["value"] for item in row["slices"])
        own = by_verdicts[row["config_id"], row["query_id"]]
        assert rank == ("(none)" if own is None else f"{own:02}")
        metrics = {item["metric"]: item["value"] for item in row["metrics"]}
        values[row["config_id"], f"rank(ContextRR)={rank}"].append(metrics["ClaimRecall(judge=lexical)"])
    assert len({name for _, name in values}) > 3
    for (config_id, name), some in values.items():
        mean = run.means[config_id, name, "ClaimRecall(judge=lexical)"]
        assert mean.mean == pytest.approx(math.fsum(some) / len(some), abs=1e-12)
        assert mean.queries == len(some)


def ranks_by_verdicts(run: Results) -> dict[tuple[str, str], int | None]:
    """The first context, by configuration and query, that supports a claim of the reference answer."""
    claims = {
        (row["query_id"], row["items_hash"])
        for row in run.table("claims").to_pylist()
        if row["owner"] == "reference" and not row["sample"]
    }
    supporting = {
        (row["query_id"], row["right_hash"])
        for row in run.table("verdicts").to_pylist()
        if row["verdict"] == "supported" and (row["query_id"], row["items_hash"]) in claims
    }
    return {
        (row["config_id"], row["query_id"]): next(
            (item["rank"] for item in row["contexts"] if (row["query_id"], item["text_hash"]) in supporting), None
        )
        for row in run.table("answers").to_pylist()
    }
