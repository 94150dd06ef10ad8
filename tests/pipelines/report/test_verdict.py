"""The sentence that a report begins with: equal to what the tables say, whatever may be absent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.json_server import responding
from support.pages import Page
from support.runs import evaluated

from rankbeam.pipelines import report, show
from rankbeam.pipelines.report.card import card
from rankbeam.pipelines.report.compare import comparisons
from rankbeam.pipelines.report.leaderboard import board
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.verdict import verdict
from rankbeam.pipelines.results.run import Results

QUERIES = [f"q{number}" for number in range(40)]


def found_at(folder: Path, name: str, rank: int, queries: list[str] = QUERIES) -> dict[str, Any]:
    """A configuration whose relevant document has the same rank for every query but one."""
    ranks = {query: rank if query != "q0" else 1 for query in queries}
    rows = [
        (query, f"x{place}" if place != at else "d", -place) for query, at in ranks.items() for place in range(1, 5)
    ]
    path = write(folder / f"{name}.run", trec_run([(query, doc, float(score)) for query, doc, score in rows]))
    return {"name": name, "retriever": {"type": "run_file", "path": path}}


def sentence(folder: Path, configurations: list[dict[str, Any]], **more: Any) -> str:
    qrels = write(folder / "qrels.txt", trec_qrels([(query, "d", 1.0) for query in QUERIES]))
    experiment = {
        "name": "e", "dataset": {"qrels": qrels}, "configurations": configurations, "metrics": ["RR", "R@1"],
        "output": {"path": str(folder / "out")}, **more,
    }  # fmt: skip
    return verdict(Study(evaluated(write(folder / "e.yaml", yaml.safe_dump(experiment)), "r")))


def test_a_better_configuration_is_named_with_its_gain(tmp_path: Path) -> None:
    old, new = found_at(tmp_path, "old", 2), found_at(tmp_path, "new", 1)
    assert re.fullmatch(
        r"new is better than old: RR \+0\.4875 \(\+0\.\d+ to \+0\.\d+, Holm\)\.", sentence(tmp_path, [old, new])
    )


GATES = [
    ([{"metric": "RR", "configuration": "new", "at_least": 0.9}], "; ship new: every gate is met."),
    ([{"metric": "RR", "configuration": "new", "at_least": 1.0}, {"metric": "R@1", "at_least": 0.9}],
     "; do not ship yet: 1 of 3 gate checks is missed (R@1 mean)."),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("gates", "end"), GATES)
def test_only_gates_say_whether_to_ship(gates: list[dict[str, Any]], end: str, tmp_path: Path) -> None:
    old, new = found_at(tmp_path, "old", 2), found_at(tmp_path, "new", 1)
    assert sentence(tmp_path, [old, new], gates=gates).endswith(end)


@pytest.mark.long
def test_a_baseline_that_is_best_is_kept(tmp_path: Path) -> None:
    old, new = found_at(tmp_path, "old", 2), found_at(tmp_path, "new", 1)
    decision = sentence(tmp_path, [new, old], gates=[{"metric": "RR", "configuration": "new", "at_least": 0.9}])
    assert decision.startswith("new is better than old: RR +0.4875")
    assert decision.endswith("; keep the baseline; every gate is met.")
    decision = sentence(tmp_path, [new, old], gates=[{"metric": "RR", "configuration": "old", "at_least": 0.9}])
    assert decision.endswith("; keep the baseline: 1 of 1 gate check is missed (RR mean).")
    (won,) = (fact for fact in card(Study(Results(str(tmp_path / "out"), "r"))) if fact.label == "Won : lost")
    assert (won.value, won.note) == ("39 : 0", "queries, new against old; 1 tied")


@pytest.mark.long
def test_fewer_steps_are_better_wherever_a_configuration_is_called_the_best(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", "".join(f'{{"_id": "{query}", "text": "?"}}\n' for query in QUERIES))
    for name, calls in (("long", 3), ("short", 1)):
        answer = {"answer": "yes", "steps": [{"tool": "search"}] * calls}
        write(tmp_path / f"{name}.jsonl", "".join(json.dumps({"query_id": q} | answer) + "\n" for q in QUERIES))
    configurations = [
        {"name": name, "answers": {"type": "replay", "path": str(tmp_path / f"{name}.jsonl")}}
        for name in ("long", "short")
    ]
    dataset = {"queries": str(tmp_path / "queries.jsonl")}
    decision = sentence(tmp_path, configurations, dataset=dataset, metrics=["Steps"])
    assert decision.startswith("short is better than long: Steps −2.0000")
    run = Results(str(tmp_path / "out"), "r")
    facts = {fact.label: fact.value for fact in card(Study(run))}
    assert (facts["Best by Steps"], facts["Won : lost"]) == ("short", "40 : 0")
    text = show.as_text(run)
    assert "By Steps, short is the best with 95% confidence." in text
    assert text.index("short") < text.index("long")
    assert "short & \\textbf{1.0000}$^{b}$" in show.as_latex(run)
    assert "is better" in rankbeam("compare", run.output).stdout
    assert rankbeam("worst", run.output, "--number", "1").stdout.startswith("short: highest Steps")
    assert Page.of(report.build(run)).data["signs"] == [-1.0]
    ((pair,), cells) = (comparisons(Study(run), "Steps")[name] for name in ("rows", "matrix"))
    assert ("box win" in pair["bar"], cells[0][1].kind) == (True, "win")
    assert [(place["name"], place["rank"]) for place in board(Study(run), "Steps")["places"]] == [
        ("short", 1),
        ("long", 2),
    ]


def test_no_significant_difference_says_what_could_be_detected(tmp_path: Path) -> None:
    one = found_at(tmp_path, "one", 2)
    ranks = [1 if number < 7 else 3 if number < 20 else 2 for number in range(len(QUERIES))]
    rows = [(query, "d" if place == ranks[number] else f"x{place}", -float(place))
            for number, query in enumerate(QUERIES) for place in (1, 2, 3)]  # fmt: skip
    path = write(tmp_path / "two.run", trec_run(rows))
    two = {"name": "two", "retriever": {"type": "run_file", "path": path}}
    decision = sentence(tmp_path, [one, two])
    assert decision.startswith("No significant difference between ")
    assert re.search(r"these queries can detect a difference of 0\.\d{4}\.$", decision)


@pytest.mark.long
def test_costs_include_the_part_that_the_ledger_answered(tmp_path: Path) -> None:
    def respond(query: str) -> tuple[int, bytes]:
        ids = ["d"] if query.startswith("one") else ["x", "d"]
        return 200, json.dumps({"results": [{"id": doc_id} for doc_id in ids]}).encode()

    def decision(names: list[str], count: int, **more: Any) -> str:
        rows = "\n".join(json.dumps({"_id": query, "text": query}) for query in QUERIES[:count])
        qrels = write(tmp_path / "judged.txt", trec_qrels([(query, "d", 1.0) for query in QUERIES[:count]]))
        retriever = {"type": "http", "results": "results", "id": "id"}
        configurations = [
            {"name": name, "top_k": 5, "retriever": retriever | {"url": url, "body": {"query": f"{name} {{query}}"}}}
            for name in names
        ]
        dataset = {"qrels": qrels, "queries": write(tmp_path / "queries.jsonl", rows)}
        return sentence(tmp_path, configurations, dataset=dataset, quotas=quotas, **more)

    quotas = {"http": {"requests_per_minute": 60_000, "price_per_1000": 2}}
    with responding(respond) as (url, log):
        decision(["one"], 20)
        assert len(log) == 20
        text = decision(["one", "two"], 40)
        assert text.startswith("one is better than two: RR +0.5000 ")
        assert text.endswith("; equal cost.")
        assert len(log) == 80


UNDECIDED = [
    (["one"], QUERIES, "nothing is compared with one"),
    (["one", "same"], QUERIES, "all 2 configurations have equal values for every query"),
    (["one", "two"], QUERIES[:12], "RR has fewer than 20 queries or clusters to compare"),
]


@pytest.mark.long
@pytest.mark.parametrize(("names", "queries", "reason"), UNDECIDED)
def test_a_decision_that_is_not_possible_has_its_reason(
    names: list[str], queries: list[str], reason: str, tmp_path: Path
) -> None:
    configurations = [found_at(tmp_path, name, 1 if name == "two" else 2, queries) for name in names]
    qrels = write(tmp_path / "few.txt", trec_qrels([(query, "d", 1.0) for query in queries]))
    assert reason in sentence(tmp_path, configurations, dataset={"qrels": qrels})
    run = Results(str(tmp_path / "out"), "r")
    assert "is the best" not in show.as_text(run)
    assert board(Study(run), "RR")["verdict"] == []


def test_the_metric_can_be_named(tmp_path: Path) -> None:
    old, new = found_at(tmp_path, "old", 2), found_at(tmp_path, "new", 1)
    assert sentence(tmp_path, [old, new], decide_by="R@1").startswith("new is better than old: R@1 +0.97")


def test_a_metric_that_is_equal_at_every_query_decides_nothing(tmp_path: Path) -> None:
    two, three = found_at(tmp_path, "two", 2), found_at(tmp_path, "three", 3)
    decision = sentence(tmp_path, [two, three], decide_by="R@1")
    assert decision == "two and three have the same R@1 at every query (decide_by: METRIC decides by another one)."


@pytest.mark.parametrize(
    ("name", "problem"),
    [("nDCG@10", "decide_by: is not one of the metrics: RR, R@1"), ("nDGC", "decide_by: unknown metric 'nDGC'")],
)
def test_a_metric_that_is_not_computed_is_refused(name: str, problem: str, tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", trec_qrels([("q0", "d", 1.0)]))
    experiment = {
        "name": "e", "dataset": {"qrels": qrels}, "configurations": [found_at(tmp_path, "one", 1)],
        "metrics": ["RR", "R@1"], "decide_by": name,
    }  # fmt: skip
    done = rankbeam("validate", write(tmp_path / "e.yaml", yaml.safe_dump(experiment)))
    assert done.status == 2
    assert problem in done.stderr
