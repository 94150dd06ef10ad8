"""Three newcomers, each in an empty folder with nothing but the installed wheel and files of their own."""

import json
import random
import re
from pathlib import Path

import pytest
import pytrec_eval
import yaml
from support.built import run

MISSED = 3
QUERIES = [f"q{number:02}" for number in range(24)]


def _ranked(seed: int, chance: float, queries: list[str]) -> dict[str, dict[str, float]]:
    """A system that finds the relevant document of a query with some chance, among nine others."""
    draw = random.Random(seed)
    ranking = {}
    for query in queries:
        documents = [f"{query}-other{number}" for number in range(9)]
        documents.insert(draw.randrange(4), query if draw.random() < chance else f"{query}-other9")
        ranking[query] = {document: 10.0 - rank for rank, document in enumerate(documents)}
    return ranking


def _trec(runs: dict[str, dict[str, float]]) -> str:
    """The lines of a TREC run."""
    return "".join(
        f"{query} Q0 {document} {rank} {score} run\n"
        for query, documents in runs.items()
        for rank, (document, score) in enumerate(documents.items(), 1)
    )


def _rows(table: str) -> dict[str, list[str]]:
    """The cells of a table, by the first one of a row."""
    rows = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    return {name: cells for name, *cells in rows}


@pytest.mark.campaign
def test_a_researcher_compares_two_runs_of_ranx(worker: Path, tmp_path: Path) -> None:
    """Judgements and runs as ranx saves them: a leaderboard, a comparison, and a table for the paper."""
    qrels = {query: {query: 1} for query in QUERIES}
    runs = {"bm25": _ranked(1, 0.5, QUERIES), "dense": _ranked(2, 0.95, QUERIES)}
    for name, content in {"qrels": qrels, **runs}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    expected = {
        name: [metrics["ndcg_cut_10"] for metrics in theirs.evaluate(rankings).values()]
        for name, rankings in runs.items()
    }
    means = {name: sum(values) / len(values) for name, values in expected.items()}

    arguments = ("qrels.json", "bm25.json", "dense.json", "-m", "nDCG@10")
    board = _rows(run(worker / "rankbeam", "score", *arguments, "--output", "out", cwd=tmp_path))
    assert {name: board[name][0].split()[0] for name in runs} == {name: f"{mean:.4f}" for name, mean in means.items()}
    assert board["dense"][-1] == str(len(QUERIES))

    compared = run(worker / "rankbeam", "compare", "out", cwd=tmp_path)
    assert f"{means['dense'] - means['bm25']:+.4f}" in compared
    assert "nDCG@10, against bm25 at 95% confidence: dense is better." in compared

    latex = run(worker / "rankbeam", "score", *arguments, "--format", "latex", cwd=tmp_path)
    assert latex.index(r"\toprule") < latex.index("dense") < latex.index("bm25") < latex.index(r"\bottomrule")
    assert all(f"{mean:.4f}" in latex for mean in means.values())


def test_an_engineer_without_judgements_compares_answers(worker: Path, tmp_path: Path) -> None:
    """Documents, and questions with reference answers: `init` writes the experiment, and two models judge offline."""
    facts = {"owner": "cancels a plan", "member": "reads a board", "admin": "resets a password", "guest": "sees a file"}
    documents = [{"_id": who, "text": f"The {who} of a workspace {does}."} for who, does in facts.items()]
    questions = [
        {"_id": f"q{who}", "text": f"Who {does}?", "answer": f"The {who} of a workspace {does}."}
        for who, does in facts.items()
    ]
    for name, rows in {"documents.jsonl": documents, "questions.jsonl": questions}.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    arguments = ("--template", "judge", "--queries", "questions.jsonl", "--corpus", "documents.jsonl")
    assert "next: rankbeam evaluate experiment.yaml" in run(worker / "rankbeam", "init", *arguments, cwd=tmp_path)
    board = run(worker / "rankbeam", "evaluate", "experiment.yaml", "--format", "json", cwd=tmp_path)
    for configuration in json.loads(board)["leaderboard"]:
        means = {name: metric["mean"] for name, metric in configuration["slices"]["all"].items()}
        # Every question shares its verb with one document, whose only sentence is the reference answer.
        assert means["ContextRecall(judge=lexical)"] == means["ClaimRecall(judge=lexical)"] == 1.0
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


@pytest.mark.campaign
def test_a_pull_request_adds_a_configuration_and_a_query(worker: Path, tmp_path: Path) -> None:
    """In CI: a new metric is not a loss, common queries are compared, and a loss of an old one is missed."""
    experiment = {
        "name": "search",
        "dataset": {"qrels": "qrels.txt"},
        "configurations": [{"name": "search", "retriever": {"type": "run_file", "path": "search.run"}}],
        "metrics": ["nDCG@10"],
        "output": {"path": "out"},
    }
    gate = {"metric": "nDCG@10", "value": "difference", "at_least": -0.01, "if_missing": "skip"}
    (tmp_path / "gates.yaml").write_text(yaml.safe_dump({"gates": [gate]}))

    def commit(queries: list[str], experiment: object, chance: float, output: str) -> None:
        (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 {query} 1\n" for query in queries))
        (tmp_path / "search.run").write_text(_trec(_ranked(1, chance, queries)))
        (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
        run(worker / "rankbeam", "evaluate", "experiment.yaml", "--output", output, cwd=tmp_path)

    commit(QUERIES, experiment, 0.9, "out/main")
    added = {"name": "added", "retriever": {"type": "run_file", "path": "search.run"}, "top_k": 2}
    more = {**experiment, "configurations": [*experiment["configurations"], added]}
    commit([*QUERIES, "q99"], more, 0.9, "out/request")
    commit([*QUERIES, "q99"], more, 0.3, "out/loss")

    check = (worker / "rankbeam", "gate", "--experiment", "gates.yaml", "--baseline", "out/main", "--other-dataset")
    shown = run(*check, "out/request", "--markdown", "summary.md", cwd=tmp_path)
    assert [line.split()[:2] for line in shown.splitlines()[2:]] == [["met", "search"], ["new", "added"]]
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    assert "over the 24 queries that both runs have; 1 only in this run" in summary
    shown = run(*check, "out/loss", cwd=tmp_path, status=MISSED)
    assert [line.split()[:2] for line in shown.splitlines()[2:]] == [["MISSED", "search"], ["new", "added"]]
