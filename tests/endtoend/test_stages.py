"""Gains of stages: comparisons, terminal, view, report and plan."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import inputs, stage_world
from support.cli import rankbeam
from support.runs import query_values
from support.stage_world import evaluated, experiment, outcome_of

from rankbeam.pipelines import report
from rankbeam.pipelines.report import stages as report_stages
from rankbeam.pipelines.report.stages import stages
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import latency_of, stage_gains, usage_rows
from rankbeam.pipelines.show.terminal import as_text
from rankbeam.transforms.kernels.statistics.selection import pareto_front

SERVICES = {"demo": {"type": "lexical"}, "writer": {"type": "extractive"}}
GRID: dict[str, Any] = {
    "rewrite": {"off": None, "hyde": {"service": "writer", "kind": "hyde"}},
    "rerank": {"off": None, "demo": {"service": "demo", "depth": 12}},
}
CONFIGURATIONS = [
    {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 10},
    {"name": "lsa", "retriever": {"type": "lsa", "dimension": 5}, "top_k": 10},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run with two retrievers and both stages."""
    folder = tmp_path_factory.mktemp("stages")
    quotas = {name: {"requests_per_minute": 600_000, "price_per_1000": 2.0} for name in SERVICES}
    path = experiment(folder, services=SERVICES, configurations=CONFIGURATIONS, grid=GRID, quotas=quotas)
    outcome_of(path)
    return stage_world.results(path)


@pytest.mark.long
def test_every_pair_that_differs_by_one_stage_has_its_gain(run: Results) -> None:
    values = query_values(run)
    gains = stage_gains(run, "nDCG@5")
    expected = {
        (stage, f"{name}:rewrite={rewrite},rerank={rerank}", f"{name}:{without}")
        for name in ("bm25", "lsa")
        for rewrite, rerank, stage, without in (
            ("hyde", "off", "rewrite", "rewrite=off,rerank=off"),
            ("off", "demo", "rerank", "rewrite=off,rerank=off"),
            ("hyde", "demo", "rewrite", "rewrite=off,rerank=demo"),
            ("hyde", "demo", "rerank", "rewrite=hyde,rerank=off"),
        )
    } | {("retriever", "lsa:rewrite=off,rerank=off", "bm25:rewrite=off,rerank=off")}
    assert {(gain.stage, gain.name, gain.without) for gain in gains} == expected
    for gain in gains:
        one, other = values[gain.name], values[gain.without]
        differences = [one[query]["nDCG@5"] - other[query]["nDCG@5"] for query in one]
        assert gain.row.difference is not None
        assert math.isclose(gain.row.difference, fmean(differences), abs_tol=1e-12)
        assert gain.pays in ("yes", "no, worse", "no, equal", "not shown")


def test_calls_and_costs_are_those_of_the_stage(run: Results) -> None:
    by_stage = {(gain.stage, gain.without): gain for gain in stage_gains(run, "nDCG@5")}
    rewritten = by_stage["rewrite", "bm25:rewrite=off,rerank=off"]
    assert (rewritten.calls, rewritten.cost) == (1.0, 2.0)
    reranked = by_stage["rerank", "bm25:rewrite=off,rerank=off"]
    assert 1.0 < reranked.calls <= 12.0
    assert reranked.cost == pytest.approx(2.0 * reranked.calls)


def test_the_view_has_the_same_gains(run: Results) -> None:
    with duckdb.connect(str(Path(run.output) / "results.duckdb"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT stage, configuration, without_stage, gain, further_calls, round(further_cost, 9) FROM stages "
            "WHERE slice = 'all' AND metric = 'nDCG@5'"
        ).fetchall()
        points = connection.execute(
            "SELECT configuration, cost_of_1000_queries, mean, is_front FROM trade_off WHERE metric = 'nDCG@5'"
        ).fetchall()
    gains = stage_gains(run, "nDCG@5")
    assert sorted(rows) == sorted(
        (gain.stage, gain.name, gain.without, gain.row.difference, gain.calls, round(gain.cost or 0.0, 9))
        for gain in gains
    )
    assert {name for name, *_ in points} == {row["name"] for row in run.configurations}
    front = pareto_front(np.array([cost for _, cost, *_ in points]), np.array([mean for _, _, mean, _ in points]))
    assert [is_front for *_, is_front in points] == front.tolist()
    assert 0 < front.sum() < len(points)


def test_terminal_and_report_show_them(run: Results) -> None:
    lines = as_text(run).splitlines()
    (head,) = (line for line in lines if "gain in nDCG@5" in line)
    assert "pays" in head
    assert sum(line.startswith(("rewrite ", "rerank ", "retriever ")) for line in lines) == 9
    page = (Path(run.output) / "report.html").read_text(encoding="utf-8")
    assert "What each stage adds" in page
    assert "nDCG@5 by cost of 1,000 queries" in page
    assert page.count('class="plot trade"') == len(run.metrics)
    assert "A stage pays if its gain is positive and significant" in page


def test_a_stage_pays_by_a_negative_gain_where_lower_is_better(run: Results) -> None:
    errors = Results(run.output, run.run_id)
    vars(errors)["means"] = {place: replace(row, lower_is_better=True) for place, row in run.means.items()}
    (section,) = filter(None, [stages(Study(errors), "nDCG@5")])
    assert section["paying"] == "negative"


@pytest.mark.long
def test_a_configuration_whose_calls_the_ledger_answered_has_no_latency(tmp_path: Path) -> None:
    first, second = ({**one, "rerank": GRID["rerank"]["demo"]} for one in CONFIGURATIONS)
    plain = {**CONFIGURATIONS[0], "name": "plain"}
    outcome_of(experiment(tmp_path, services=SERVICES, configurations=[first]))
    path = experiment(tmp_path, services=SERVICES, configurations=[first, second, plain])
    outcome_of(path)
    results = stage_world.results(path)
    latencies = {row["name"]: latency_of(usage_rows(results), row["config_id"]) for row in results.configurations}
    assert (latencies["bm25"], latencies["plain"]) == (None, 0.0)
    assert latencies["lsa"] is not None


def test_a_report_on_an_earlier_version_claims_no_costs_of_the_ledger(run: Results, tmp_path: Path) -> None:
    """It counted answers in the ledger, and did not store what they had cost."""
    earlier = Results(shutil.copytree(run.output, tmp_path / "out").as_posix(), run.run_id)
    (part,) = (tmp_path / "out" / "usage" / run.run_id).glob("*.parquet")
    table = pq.read_table(part).drop_columns("from_ledger")
    pq.write_table(pa.Table.from_pylist([{**row, "ledger_hits": 3} for row in table.to_pylist()], table.schema), part)
    pages = [" ".join(report.build(one).split()) for one in (run, earlier)]
    assert ["Calls and costs include answers in the ledger" in page for page in pages] == [True, False]
    assert ["Calls and costs are of this run." in page for page in pages] == [False, True]


def test_the_plot_of_many_configurations_says_that_others_are_not_drawn(
    run: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "are drawn" not in report.build(run)
    monkeypatch.setattr(report_stages, "MOST_POINTS", 3)
    page = " ".join(report.build(run).split())
    assert re.search(r"Only the best 3 of [4-8] configurations by nDCG@5 are drawn; the view trade_off has all\.", page)
    assert "without a known" not in page


def test_a_run_without_stages_has_no_such_pairs(tmp_path: Path) -> None:
    path = experiment(tmp_path, configurations=CONFIGURATIONS[:1], grid={"top_k": [5, 10]})
    outcome = outcome_of(path)
    results = stage_world.results(path)
    assert stage_gains(results, "nDCG@5") == []
    assert "pays" not in outcome.stdout
    assert "What each stage adds" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_plan_proposes_what_is_missing_and_adds_nothing(tmp_path: Path) -> None:
    one = {**CONFIGURATIONS[0], "rerank": GRID["rerank"]["demo"]}
    path = experiment(tmp_path, services=SERVICES, configurations=[one])
    planned = " ".join(rankbeam("plan", path).stdout.split())
    assert "bm25: the same configuration without rerank: is missing" in planned
    assert "no further calls for its rankings" in planned
    swept = experiment(
        tmp_path, services=SERVICES, configurations=[one], grid={"rerank.depth": [20, 30], "rerank.min_score": [1, 2]}
    )
    shown = rankbeam("plan", swept).stdout
    assert shown.count("the same configuration without") == 1
    assert "bm25:rerank.depth=20,rerank.min_score=1 (and 3 more): " in shown
    both = experiment(tmp_path, services=SERVICES, configurations=CONFIGURATIONS[:1], grid={"rerank": GRID["rerank"]})
    assert "the same configuration without" not in rankbeam("plan", both).stdout


def test_the_grid_gives_a_rewrite_to_configurations_that_are_asked_the_query(tmp_path: Path) -> None:
    run = inputs.write(tmp_path / "run.trec", "q0 Q0 d1 1 2.0 x\nq0 Q0 d2 2 1.0 x\n")
    fusion = {"type": "fusion", "parts": ["bm25:rewrite=off", "lsa:rewrite=hyde"]}
    others = [
        {"name": "both", "retriever": fusion, "top_k": 10},
        {"name": "before", "retriever": {"type": "run_file", "path": run}},
    ]
    grid = {"rewrite": GRID["rewrite"]}
    path = experiment(tmp_path, services=SERVICES, configurations=[*CONFIGURATIONS, *others], grid=grid)
    evaluated(path)
    values = query_values(stage_world.results(path))
    assert set(values) == {f"{name}:rewrite={kind}" for name in ("bm25", "lsa") for kind in ("off", "hyde")} | {
        "both",
        "before",
    }
    fused = stage_world.rankings(path)["both"]
    parts = [stage_world.rankings(path)[name] for name in fusion["parts"]]
    for query, results in fused.items():
        assert {name for name, _ in results} <= {name for part in parts for name, _ in part.get(query, [])}


@pytest.mark.parametrize(
    ("retrievers", "role", "problems"),
    [
        (
            {"both": {"type": "fusion", "parts": ["bm25", "lsa"]}},
            "rewrite",
            ["'bm25' has several rankings; name one of: bm25:rewrite=off, bm25:rewrite=hyde", "'lsa' has"],
        ),
        (
            {"both": {"type": "fusion", "parts": ["bm25", "lsa"]}},
            "rerank",
            ["'bm25' has several rankings; name one of: bm25:rerank=off, bm25:rerank=demo", "'lsa' has"],
        ),
        (
            {"both": {"type": "fusion", "parts": ["bm25:rerank=demo", "lsa:rerank=off"]}},
            "rerank",
            ["'bm25:rerank=demo' is reranked, and so is 'both:rerank=demo', which fuses it; rerank only one of them"],
        ),
        ({}, "rewrite", ["grid.rewrite: no configuration can have it: none has a retriever that receives the query"]),
    ],
)
def test_a_stage_of_the_grid_is_refused_with_one_problem_for_each_cause(
    retrievers: dict[str, Any], role: str, problems: list[str], tmp_path: Path
) -> None:
    run = inputs.write(tmp_path / "run.trec", "q0 Q0 d1 1 2.0 x\n")
    others = [{"name": name, "retriever": retriever, "top_k": 10} for name, retriever in retrievers.items()]
    beside = CONFIGURATIONS if retrievers else [{"name": "run", "retriever": {"type": "run_file", "path": run}}]
    path = experiment(tmp_path, services=SERVICES, configurations=[*beside, *others], grid={role: GRID[role]})
    outcome = rankbeam("validate", path)
    assert outcome.status == 2
    lines = outcome.stderr.strip().splitlines()
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert problem in line
