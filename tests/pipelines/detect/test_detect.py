"""`rankbeam plan --detect`: queries that a difference needs, from earlier runs or measured spreads, and their cost."""

import json
import math
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support import runs
from support.data import REPOSITORY
from support.experiments import folder as folder
from support.offline_experiment import answered
from support.pages import Page
from support.runs import rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.plan.detect import earlier_run
from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.kernels.statistics.sample_size import queries_needed, queries_needed_for_shares
from rankbeam.transforms.records.scores.comparisons import detectable, level_of, queries_for

HELPDESK = REPOSITORY / "examples" / "helpdesk"
METRICS = ["nDCG@10", "R@10", "Success@3"]
OBSERVED = 3
"""Judgements of each item in the earlier run."""


def experiment(folder: Path, **changes: Any) -> Path:
    configurations = [
        {"name": name, "retriever": {"type": "bm25", **own}, "top_k": 20}
        for name, own in (("bm25", {}), ("long", {"b": 1.0}), ("flat", {"b": 0.0}))
    ]
    value = {
        "name": "detect",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"},
        "configurations": configurations,
        "metrics": METRICS,
        "statistics": {"replicates": 50},
        "output": {"path": "out"},
    }
    if not folder.exists():
        shutil.copytree(HELPDESK, folder)
    path = folder / "e.yaml"
    path.write_text(yaml.safe_dump(value | changes), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = experiment(tmp_path_factory.mktemp("detect") / "helpdesk")
    assert runs.evaluated(path).run["state"] == "done"
    return path


def detected(path: Path, *options: object) -> dict[str, Any]:
    outcome = rankbeam("plan", path, *options, "--format", "json")
    assert outcome.exit_code == 0, outcome.stderr
    answer: dict[str, Any] = json.loads(outcome.stdout)["detect"]
    return answer


def test_without_a_run_spreads_are_measured_ones(tmp_path: Path) -> None:
    answer = detected(experiment(tmp_path / "x"), "--detect", "0.02")
    assert (answer["comparisons"], answer["level"], answer["queries"]) == (2, pytest.approx(0.025), 64)
    needed = {row["metric"]: row["queries"] for row in answer["metrics"]}
    assert needed == {
        "nDCG@10": queries_needed(0.02, 0.244, level=0.025),
        "R@10": queries_needed(0.02, 0.182, level=0.025),
        "Success@3": queries_needed(0.02, 0.389, level=0.025),
    }
    assert answer["metrics"][1]["origin"] == "R@100 of 17 TREC runs (Robust 2003)"


def test_spreads_are_those_of_the_latest_run(evaluated: Path) -> None:
    run = find_run(str(evaluated.parent / "out"))
    answer = detected(evaluated, "--detect", "0.05", "--power", "0.9")
    for row in answer["metrics"]:
        rows = [item for item in run.comparisons if item.metric == row["metric"] and item.std_error]
        deviations = [math.sqrt(item.queries) * (item.std_error or 0.0) for item in rows]
        assert row["deviation"] == pytest.approx(median(deviations))
        if row["metric"] == "Success@3":
            discordant = max(0.05, median((item.wins + item.losses) / item.queries for item in rows))
            assert row["queries"] == queries_needed_for_shares(0.05, discordant, 0.9, 0.025)
        else:
            assert row["queries"] == queries_needed(0.05, row["deviation"], 0.9, 0.025)
    assert all(row["cost"] == [0.0, 0.0] for row in answer["metrics"])


def test_a_given_deviation_wins(evaluated: Path) -> None:
    answer = detected(evaluated, "--detect", "0.05", "--sd", "0.2")
    assert {row["queries"] for row in answer["metrics"]} == {queries_needed(0.05, 0.2, level=0.025)}


def test_clusters_need_more_queries(tmp_path: Path) -> None:
    """Clusters of the run count as they are there; without such a run a warning has the factors."""
    changes = {"statistics": {"replicates": 50, "cluster": "intent"}}
    path = experiment(tmp_path / "x", **changes)
    warning = rankbeam("plan", path, "--detect", "0.02").stderr
    assert "no earlier run has clusters by intent, so the numbers are those of independent queries" in warning
    assert "at a correlation of 0.1," in warning
    assert runs.evaluated(path, run_id="clustered").run["state"] == "done"
    outcome = rankbeam("plan", path, "--detect", "0.02", "--format", "json")
    assert "independent" not in outcome.stderr
    run = find_run(str(path.parent / "out"), "clustered")
    for row in json.loads(outcome.stdout)["detect"]["metrics"]:
        pairs = [item for item in run.comparisons if item.metric == row["metric"] and item.std_error]
        units = [math.sqrt(item.clusters or 0.0) * (item.std_error or 0.0) for item in pairs]
        needed = queries_needed(0.02, median(units), level=0.025)
        assert row["queries"] == math.ceil(needed * 64 / (pairs[0].clusters or 0.0))


def test_what_has_no_spread_is_refused(tmp_path: Path) -> None:
    path = experiment(tmp_path / "x", metrics=["NumRelRet"])
    outcome = rankbeam("plan", path, "--detect", "0.02")
    assert outcome.exit_code == 2
    assert "the spread is unknown for NumRelRet" in outcome.stderr
    assert "run a few queries first, or use --sd" in outcome.stderr


def test_a_bounded_metric_without_a_known_spread_has_an_assumed_one(tmp_path: Path) -> None:
    path = experiment(tmp_path / "x", metrics=["NumRelRet", "SetF", "AP"])
    outcome = rankbeam("plan", path, "--detect", "0.02", "--format", "json")
    assert outcome.exit_code == 0
    assert "the spread is unknown for NumRelRet: no earlier run has this metric; use --sd" in outcome.stderr
    assert "1 query in 10 changes from one end of the metric's range to the other (sd 0.316)" in outcome.stderr
    assert "warning: SetF: " in outcome.stderr
    assumed, measured = json.loads(outcome.stdout)["detect"]["metrics"]
    assert (assumed["metric"], measured["metric"]) == ("SetF", "AP")
    assert assumed["queries"] == queries_needed(0.02, math.sqrt(0.1), level=0.025)
    assert assumed["origin"] == "assumed: 1 query in 10 changes entirely"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--detect", "2"), "--detect: no difference of nDCG@10 can be 2: it is at most 1"),
        (("--detect", "0"), "0.0 is not in the range 1e-09<=x"),
        (("--detect", "1e-300"), "1e-300 is not in the range 1e-09<=x"),
        (("--detect", "0.1", "--sd", "1e300"), "1e+300 is not in the range 1e-09<=x"),
        (("--power", "0.9"), "--power and --sd are for --detect"),
        (("--detect", "0.1", "--power", "1"), "1.0 is not in the range 0<x<1"),
    ],
)
def test_wrong_questions_are_refused(tmp_path: Path, options: tuple[str, ...], problem: str) -> None:
    outcome = rankbeam("plan", experiment(tmp_path / "x"), *options)
    assert outcome.exit_code == 2
    assert problem in " ".join(outcome.stderr.split())


def test_calls_and_cost_grow_with_the_queries(folder: Path) -> None:
    """One query is planned: as many calls as queries are needed, at their price."""
    value = {
        "name": "x",
        "dataset": {"qrels": "qrels", "queries": "queries.jsonl"},
        "configurations": [{"name": item, "retriever": {"type": "near", "model": item}, "top_k": 5} for item in "ab"],
        "quotas": {"near": {"requests_per_minute": 60, "price_per_1000": 2.0}},
        "metrics": ["AP"],
        "race": {"metric": "AP"},
        "output": {"path": "out"},
    }
    (folder / "e.yaml").write_text(yaml.safe_dump(value))
    (row,) = detected(folder / "e.yaml", "--detect", "0.02")["metrics"]
    assert (row["queries"], row["calls"], row["cost"]) == (360, [720, 720], pytest.approx([1.44, 1.44]))
    text = rankbeam("plan", folder / "e.yaml", "--detect", "0.02").stdout
    assert "AP" in text
    assert "1.44" in text


def test_a_race_says_beforehand_what_it_can_detect(evaluated: Path) -> None:
    from rankbeam.pipelines.plan.detect import race_line

    race = {"metric": "nDCG@10", "looks": [20]}
    loaded = load_experiment(str(experiment(evaluated.parent, race=race)))
    run = earlier_run(loaded)
    assert run is not None
    line = race_line(loaded, 64)
    assert line.startswith("before the race: 64 queries detect a difference of 0.0")
    assert race_line(loaded, 1) == ""
    assert race_line(load_experiment(str(experiment(evaluated.parent))), 64) == ""


def test_open_comparisons_say_what_they_can_detect(evaluated: Path) -> None:
    run = find_run(str(evaluated.parent / "out"))
    rows = [row for row in run.comparisons if row.metric == "nDCG@10"]
    level = level_of(rows, 0.95)
    assert level == pytest.approx(0.025)
    text = " ".join(rankbeam("compare", run.output, "-m", "nDCG@10").stdout.split())
    page = Page.of(report.build(run))
    for row in rows:
        assert row.std_error is not None
        spread = row.std_error * math.sqrt(row.queries)
        needed = [queries_for(row, size, level) for size in (0.02, 0.05)]
        assert needed == [queries_needed(size, spread, level=level) for size in (0.02, 0.05)]
        is_open = not row.is_significant(0.95)
        sentence = f"64 queries detect a difference of {detectable(row, level):.3f}; 0.02 needs {needed[0]:,}, "
        sentence += f"0.05 needs {needed[1]:,} (corrected for 2 comparisons)."
        assert (sentence in text) == is_open
        assert (f"{needed[0]:,} · {needed[1]:,}" in page.text) == is_open
    assert any(not row.is_significant(0.95) for row in rows)


def test_a_gate_says_which_difference_matters(tmp_path: Path) -> None:
    gate = {"metric": "nDCG@10", "value": "difference_low", "at_least": -0.03}
    path = experiment(tmp_path / "x", gates=[gate])
    assert rankbeam("evaluate", path).exit_code in (0, 3)
    run = find_run(str(path.parent / "out"))
    assert "Queries for 0.03" in Page.of(report.build(run)).text


@pytest.mark.long
def test_fewer_judgements_of_an_item_add_their_noise(tmp_path: Path) -> None:
    """The variance of a difference grows by that of both values; more judgements are not taken to lower it."""

    def judged(samples: int) -> Path:
        judge = {"service": "overlap", "samples": samples}
        value = {"name": "e", "output": {"path": "out"}, **answered(tmp_path, judge=judge, metrics=["ContextRecall"])}
        path = tmp_path / f"{samples}.yaml"
        path.write_text(yaml.safe_dump(value), encoding="utf-8")
        return path

    def deviation(samples: int) -> float:
        (row,) = detected(judged(samples), "--detect", "0.05")["metrics"]
        return float(row["deviation"])

    assert runs.evaluated(judged(OBSERVED)).run["state"] == "done"
    quiet = deviation(OBSERVED)
    noisy_steps(tmp_path / "out", 0.2)
    assert deviation(OBSERVED) == deviation(5) == quiet
    assert deviation(1) ** 2 == pytest.approx(quiet**2 + 2 * 0.2**2 * (1 - 1 / OBSERVED))


def noisy_steps(output: Path, within_sd: float) -> None:
    """Say in a run's tables that each step answers differently when it is asked again."""
    (stored,) = (output / "judge_quality").glob("*/*.parquet")
    table = pq.read_table(stored)
    at, field = table.schema.get_field_index("within_sd"), table.schema.field("within_sd")
    pq.write_table(table.set_column(at, field, pa.repeat(pa.scalar(within_sd), table.num_rows)), stored)
