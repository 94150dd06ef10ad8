"""Criteria of the user's own from the YAML to tables, gates and comparisons; what is bought once and what again."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import runs
from support.cli import rankbeam
from support.standin_answers import model, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.labels import text_hash

CRITERIA: dict[str, Any] = {
    "Tone": {"question": "Is it polite?"},
    "Current": {"question": "Is it current?", "about": ["query", "context"], "scale": "0..3"},
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai") as server:
        yield server


def evaluated(folder: Path, server: Standin, run_id: str, criteria: dict[str, Any], *metrics: str) -> tuple[str, int]:
    """The experiment, and the calls that its run made."""
    before = server.stats().calls
    path = write_experiment(
        folder, model(server, "openai"), {}, judge={"service": "m", "criteria": criteria, "repeat_share": 0.5},
        metrics=list(metrics), gates=[{"metric": metrics[0], "at_least": 0.0}],
    )  # fmt: skip
    assert runs.evaluated(path, run_id).run["state"] == "done"
    return path, server.stats().calls - before


def values(folder: Path, run_id: str, metric: str) -> dict[str, float]:
    rows = Results(str(folder / "out"), run_id).table("query_metrics").to_pylist()
    return {row["query_id"]: value["value"] for row in rows for value in row["metrics"] if value["metric"] == metric}


def steps_planned(path: str, key: str) -> dict[str, int]:
    done = rankbeam("plan", path, "--format", "json")
    assert done.status == 0, done.stderr
    (pool,) = json.loads(done.stdout)["models"]
    return {step["step"]: int(step[key][1] if key == "calls" else step[key]) for step in pool["steps"]}


@pytest.mark.long
def test_a_criterion_is_a_metric_and_only_what_is_asked_differently_is_paid_again(
    tmp_path: Path, server: Standin
) -> None:
    _, first = evaluated(tmp_path, server, "r1", CRITERIA, "Tone", "Current", "Current@1")
    assert first > 0
    tone = values(tmp_path, "r1", "Criterion(Tone)")
    assert set(tone.values()) == {0.0, 1.0}
    assert {round(value * 9) for value in values(tmp_path, "r1", "Criterion(Current)").values()} <= set(range(10))
    results = Results(str(tmp_path / "out"), "r1")
    verdicts = results.table("verdicts").to_pylist()
    assert {row["step"] for row in verdicts} == {"criterion:Tone", "criterion:Current"}
    quality = {row["step"]: row for row in results.table("judge_quality").to_pylist()}
    assert quality["criterion:Tone"]["items"] == len(tone)
    assert quality["criterion:Tone"]["repeated"] > 0
    assert quality["criterion:Tone"]["prompt_hash"] is not None
    assert [row["metric"] for row in results.table("gates").to_pylist()] == ["Criterion(Tone)"]
    check_that_results_are_read_without_the_experiment(tmp_path)

    flipped = {"Politeness": CRITERIA["Tone"] | {"scale": {"yes": 0, "no": 1}}, "Current": CRITERIA["Current"]}
    _, renamed = evaluated(tmp_path, server, "r2", flipped, "Politeness", "Current", "Current@1")
    assert renamed == 0
    assert values(tmp_path, "r2", "Criterion(Politeness)") == {name: 1.0 - value for name, value in tone.items()}

    reworded = CRITERIA | {"Tone": {"question": "Is it rude?"}}
    _, again = evaluated(tmp_path, server, "r3", reworded, "Tone", "Current", "Current@1")
    assert len(tone) <= again <= 3 * len(tone)
    tables = [Results(str(tmp_path / "out"), run).table("judge_quality").to_pylist() for run in ("r1", "r3")]
    hashes = [{row["step"]: row["prompt_hash"] for row in rows} for rows in tables]
    assert hashes[0]["criterion:Tone"] != hashes[1]["criterion:Tone"]
    assert hashes[0]["criterion:Current"] == hashes[1]["criterion:Current"] != hashes[0]["criterion:Tone"]


def check_that_results_are_read_without_the_experiment(folder: Path) -> None:
    out = str(folder / "out")
    report = rankbeam("report", out, "--output", str(folder / "report.html"))
    worst = rankbeam("worst", out, "--metric", "Criterion(Tone)")
    gates = folder / "gates.yaml"
    gates.write_text("gates: [{metric: Tone, at_least: 0.99}, {metric: Criterion(Current), at_least: 0.0}]\n")
    gate = rankbeam("gate", out, "--experiment", str(gates))
    assert (report.status, worst.status, gate.status) == (0, 0, 3), report.stderr + worst.stderr + gate.stderr
    assert "Criterion(Tone)" in (folder / "report.html").read_text(encoding="utf-8")
    assert "Criterion(Tone)" in worst.stdout
    label = rankbeam("label", out, "--sample", "5", "--metric", "Criterion(Tone)")
    assert label.status == 0, label.stderr


@pytest.mark.campaign
def test_the_plan_counts_the_calls_of_each_criterion(tmp_path: Path, server: Standin) -> None:
    path = write_experiment(
        tmp_path, model(server, "openai"), {}, judge={"service": "m", "criteria": CRITERIA, "repeat_share": 0.0},
        metrics=["Tone", "Current@1", "Current"],
    )  # fmt: skip
    before = steps_planned(path, "calls")
    assert set(before) == {"answer", "criterion:Tone", "criterion:Current"}
    assert rankbeam("evaluate", path, "--run-id", "r").status == 0
    verdicts = Counter(row["step"] for row in Results(str(tmp_path / "out"), "r").table("verdicts").to_pylist())
    assert {step: before[step] for step in verdicts} == verdicts
    assert steps_planned(path, "ledger_hits") == steps_planned(path, "calls") == before


@pytest.mark.campaign
def test_rubrics_and_pairs_from_the_plan_to_wins_and_losses(tmp_path: Path, server: Standin) -> None:
    answered = {"service": "m", "contexts": 3}
    criteria = {
        "Complies": {"rubrics": {"attribute": "rubrics"}, "about": ["answer"]},
        "Preference": {"question": "Which answer is better?", "pairs": "baseline"},
        "Best": {"question": "Which answer is better?", "about": ["answer"], "pairs": "all"},
    }
    path = write_experiment(
        tmp_path, model(server, "openai"), {}, baseline="one",
        judge={"service": "m", "criteria": criteria, "repeat_share": 0},
        configurations=[
            {"name": name, "retriever": {"type": "bm25"}, "top_k": 5, "generate": answered | {"contexts": contexts}}
            for name, contexts in (("one", 1), ("two", 2), ("three", 3))
        ],
        metrics=list(criteria),
    )  # fmt: skip
    queries = tmp_path / "queries.jsonl"
    rows = [json.loads(line) for line in queries.read_text().splitlines()]
    statements = {row["_id"]: [f"It names {number}." for number in range(place % 4)] for place, row in enumerate(rows)}
    for row in rows:
        row["rubrics"] = statements[row["_id"]]
    queries.write_text("".join(json.dumps(row) + "\n" for row in rows))

    before = steps_planned(path, "calls")
    done = rankbeam("evaluate", path, "--run-id", "r")
    assert done.status == 0, done.stderr
    results = Results(str(tmp_path / "out"), "r")
    verdicts = results.table("verdicts").to_pylist()
    bought = Counter(row["step"] for row in verdicts)
    assert {step: bought[step] for step in before if step != "answer"} == {
        step: count for step, count in before.items() if step != "answer"
    }
    paid = server.stats().calls
    assert rankbeam("evaluate", path, "--run-id", "again").status == 0
    assert server.stats().calls == paid

    names = {row["config_id"]: row["name"] for row in results.configurations}
    values = {
        (names[row["config_id"]], value["metric"], row["query_id"]): (value["value"], value["reason"])
        for row in results.table("query_metrics").to_pylist()
        for value in row["metrics"]
    }
    for (_, metric, query), (value, reason) in values.items():
        if metric == "Criterion(Complies)":
            assert (value is None, reason) == ((True, "no_rubrics") if not statements[query] else (False, None))
        elif metric == "Criterion(Preference)":
            assert value in (-1.0, 0.0, 1.0)
        else:
            assert value in (-1.0, -0.5, 0.0, 0.5, 1.0)
    assert {values["one", "Criterion(Preference)", query][0] for query in statements} == {0.0}
    for row in results.table("comparisons").to_pylist():
        if row["metric"] == "Criterion(Preference)":
            signs = [values[names[row["config_id"]], row["metric"], query][0] for query in statements]
            counts = [signs.count(sign) for sign in (1.0, 0.0, -1.0)]
            assert [row["wins"], row["ties"], row["losses"]] == counts
            assert row["difference"] == pytest.approx((counts[0] - counts[2]) / len(signs))
    judged = {row["left_hash"] for row in verdicts if row["step"] == "criterion:Complies"}
    assert judged == {text_hash(text) for texts in statements.values() for text in texts}
    assert "the verdict changed with the order of the answers in" in done.stderr


@pytest.mark.campaign
def test_a_reworded_criterion_is_marked_wherever_runs_are_compared(tmp_path: Path, server: Standin) -> None:
    evaluated(tmp_path, server, "r1", CRITERIA, "Tone", "Current")
    evaluated(tmp_path, server, "r2", CRITERIA | {"Tone": {"question": "Is it rude?"}}, "Tone", "Current")
    evaluated(tmp_path, server, "r3", CRITERIA | {"Tone": {"question": "Is it rude?"}}, "Tone", "Current")
    out, mark = str(tmp_path / "out"), "the prompts of the judge differ"
    gates = tmp_path / "gates.yaml"
    gates.write_text("gates: [{metric: Criterion(Tone), value: difference, at_least: -1.0}]\n")
    for before, run, is_marked in (("r1", "r2", True), ("r2", "r3", False)):
        runs = ("--run-id", run, "--baseline-run-id", before)
        compared = rankbeam("compare", out, *runs)
        gated = rankbeam("gate", out, *runs, "--experiment", str(gates))
        monitored = rankbeam("monitor", out, *runs)
        for done in (compared, gated, monitored):
            assert done.status == 0, done.stderr
            assert ("Criterion(Tone) is not quite comparable with run r1" in done.stderr) == is_marked, done.stderr
            assert (mark in done.stderr) == is_marked
            assert "Current" not in done.stderr
    page = tmp_path / "report.html"
    assert rankbeam("report", out, "--run-id", "r3", "--output", str(page)).status == 0
    assert page.read_text().count(mark) == 1
    assert "<li>r2: Criterion(Tone) is not quite comparable with run r1" in page.read_text()
