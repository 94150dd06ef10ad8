"""Dialects against the tools whose rules they follow, on runs that the tools disagree about."""

import json
import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
import pytrec_eval
from beir.retrieval.evaluation import EvaluateRetrieval
from support.campaigns import in_campaigns
from support.inputs import trec_qrels, trec_run, write
from support.runs import query_values, rankbeam, run_experiment

from rankbeam.pipelines.report.leaderboard import board
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results

Qrels = Mapping[str, Mapping[str, int]]
Rows = list[tuple[str, str, float]]

METRICS = {
    "nDCG@3": "ndcg_cut_3", "nDCG@10": "ndcg_cut_10", "AP": "map", "AP@10": "map_cut_10", "P@3": "P_3",
    "P@10": "P_10", "R@3": "recall_3", "R@10": "recall_10", "RR": "recip_rank", "Bpref": "bpref", "Rprec": "Rprec",
}  # fmt: skip
TOLERANCE = 1e-9


def collection(seed: int) -> tuple[Qrels, Rows]:
    """Ties, ties of 32-bit floats alone, missing queries, queries of the run that are not judged, self-matches."""
    draw = random.Random(seed)
    queries = [f"q{number}" for number in range(40)]
    documents = [f"d{number}" for number in range(30)] + queries
    qrels = {
        query: {doc: draw.choice([0, 0, 1, 2, 3]) for doc in draw.sample(documents, draw.randint(1, 15))}
        for query in queries[:36]
    }
    rows = [
        (query, doc, draw.choice([20.0, 20.0000001, 20.0000002, 19.5, draw.uniform(0, 30)]))
        for query in queries[5:]
        for doc in {*draw.sample(documents, draw.randint(1, 25)), *([query] if draw.random() < 0.5 else [])}
    ]
    rows += [("q0", "q0", 3.0)]  # all that q0 finds is itself
    return qrels, rows


def run_of(rows: Rows) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for query, doc, score in rows:
        run.setdefault(query, {})[doc] = score
    return run


def write_files(folder: Path, qrels: Qrels, rows: Rows) -> None:
    judgements = [(query, doc, float(grade)) for query, pool in qrels.items() for doc, grade in pool.items()]
    write(folder / "qrels.txt", trec_qrels(judgements))
    write(folder / "a.run", trec_run(rows))


def scored(folder: Path, qrels: Qrels, rows: Rows, dialect: str, metrics: list[str], **retriever: str) -> Results:
    write_files(folder, qrels, rows)
    return run_experiment(
        folder,
        {
            "dataset": {"qrels": "qrels.txt"},
            "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run", **retriever}}],
            "metrics": metrics,
            "dialects": [dialect],
        },
    )


def means(results: Results) -> dict[str, float]:
    return {metric: row.mean for (_, name, metric), row in results.means.items() if name == "all"}


def counts(results: Results) -> tuple[int, int, int]:
    row = next(iter(results.means.values()))
    return row.queries, row.empty, row.missing


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *in_campaigns(1, 2)])
def test_pytrec_eval(tmp_path: Path, seed: int) -> None:
    qrels, rows = collection(seed)
    results = scored(tmp_path, qrels, rows, "pytrec_eval", list(METRICS))
    measures = {re.sub(r"_(\d+)$", r".\1", name) for name in METRICS.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run_of(rows))
    ours = query_values(results)["a:dialect=pytrec_eval"]
    assert {query for query, values in ours.items() if values} == set(expected)
    for query, values in expected.items():
        assert ours[query] == pytest.approx({name: values[theirs] for name, theirs in METRICS.items()}, abs=TOLERANCE)
    for name, theirs in METRICS.items():
        mean = sum(values[theirs] for values in expected.values()) / len(expected)
        assert means(results)[name] == pytest.approx(mean, abs=TOLERANCE)
    assert counts(results) == (len(expected), 0, len(qrels) - len(expected))
    plain = rankbeam("score", tmp_path / "qrels.txt", tmp_path / "a.run", "-m", "AP", "--format", "json")
    assert json.loads(plain.stdout)["leaderboard"][0]["slices"]["all"]["AP"]["mean"] != means(results)["AP"]


@pytest.mark.parametrize("seed", [0, *in_campaigns(1, 2)])
def test_beir(tmp_path: Path, seed: int) -> None:
    qrels, rows = collection(seed)
    names = {
        "nDCG@3": "NDCG@3", "nDCG@10": "NDCG@10", "AP@3": "MAP@3", "AP@10": "MAP@10",
        "R@3": "Recall@3", "R@10": "Recall@10", "P@3": "P@3", "P@10": "P@10",
    }  # fmt: skip
    results = scored(tmp_path, qrels, rows, "beir", list(names))
    expected: dict[str, float] = {}
    for part in EvaluateRetrieval.evaluate(qrels, run_of(rows), [3, 10]):
        expected |= part
    for ours, theirs in names.items():
        assert means(results)[ours] == pytest.approx(expected[theirs], abs=0.6e-5)  # BEIR rounds to 5 digits


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *in_campaigns(1, 2)])
def test_trec_eval_is_what_rankbeam_does_with_a_run(tmp_path: Path, seed: int) -> None:
    qrels, rows = collection(seed)
    results = scored(tmp_path, qrels, rows, "trec_eval", list(METRICS))
    plain = scored(tmp_path, qrels, rows, "rankbeam", list(METRICS))
    assert means(results) == means(plain)
    assert counts(results) == counts(plain)
    assert counts(results)[0] == len(qrels)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *in_campaigns(1, 2)])
def test_the_notebook(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    qrels = {f"q{q}": {f"d{d}": draw.randint(0, 3) for d in draw.sample(range(12), 5)} for q in range(20)}
    queries = list(qrels)[2:]
    ranks = [(query, rank) for query in queries for rank in range(draw.randint(1, 9))]
    rows = [(query, f"d{draw.randrange(12)}", float(100 - rank)) for query, rank in ranks]
    with_gains = "nDCG(gains={1:1,2:1,3:1})@5"
    results = scored(tmp_path, qrels, rows, "notebook", ["P@5", "R@5", "nDCG@5", with_gains], duplicates="collapse")
    expected = notebook(qrels, rows, 5)
    binary = {query: {doc: min(grade, 1) for doc, grade in pool.items()} for query, pool in qrels.items()}
    expected[with_gains] = notebook(binary, rows, 5)["nDCG@5"]
    assert means(results) == pytest.approx(expected, abs=1e-12)
    assert means(scored(tmp_path, qrels, rows, "rankbeam", ["nDCG@5"], duplicates="collapse"))["nDCG@5"] < 1


def notebook(qrels: Qrels, rows: Rows, top_k: int) -> dict[str, float]:
    """The values of Google's rag_engine_evaluation.ipynb for the first `top_k` chunks, written again from its text."""
    total = {f"P@{top_k}": 0.0, f"R@{top_k}": 0.0, f"nDCG@{top_k}": 0.0}
    for query, pool in qrels.items():
        chunks = [doc for name, doc, _ in rows if name == query][:top_k]
        if not chunks:
            continue  # counts as 0
        judged = [doc for doc in chunks if doc in pool]
        total[f"P@{top_k}"] += len(judged) / len(chunks)
        total[f"R@{top_k}"] += len(set(judged)) / len(pool)
        ideal = dcg(sorted(pool.values(), reverse=True)[:top_k])
        total[f"nDCG@{top_k}"] += dcg([pool.get(doc, 0) for doc in chunks]) / ideal if ideal else 0.0
    return {name: value / len(qrels) for name, value in total.items()}


def dcg(grades: list[int]) -> float:
    return sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


@pytest.mark.long
def test_side_by_side_in_one_command(tmp_path: Path) -> None:
    qrels, rows = collection(0)
    write_files(tmp_path, qrels, rows)
    dialects = ["trec_eval", "pytrec_eval", "beir", "notebook"]
    arguments: list[Any] = ["score", tmp_path / "qrels.txt", tmp_path / "a.run", "--dialect", ",".join(dialects)]
    result = rankbeam(*arguments, "-m", "nDCG@10", "--format", "json")
    document = json.loads(result.stdout)
    assert {row["configuration"] for row in document["leaderboard"]} == {f"a:dialect={name}" for name in dialects}
    assert len({row["slices"]["all"]["nDCG@10"]["mean"] for row in document["leaderboard"]}) == len(dialects)
    trec = rankbeam(*arguments, "-m", "map", "--format", "trec")
    counted = [line.split("	")[2] for line in trec.stdout.splitlines() if line.startswith("num_q")]
    assert counted == ["36", "32", "32", "36"]


def test_an_unknown_dialect_is_refused_with_the_nearest(tmp_path: Path) -> None:
    qrels, rows = collection(0)
    write_files(tmp_path, qrels, rows)
    result = rankbeam("score", tmp_path / "qrels.txt", tmp_path / "a.run", "--dialect", "pytrec-eval")
    assert result.exit_code == 2
    assert "unknown dialect 'pytrec-eval'; did you mean 'pytrec_eval'?" in result.stderr


@pytest.mark.long
def test_in_the_own_dialect_a_configuration_keeps_its_name_and_rank(tmp_path: Path) -> None:
    qrels, rows = collection(0)
    write_files(tmp_path, qrels, rows)
    write(tmp_path / "b.run", trec_run([(query, doc, -score) for query, doc, score in rows]))
    arguments: list[Any] = ["score", tmp_path / "qrels.txt", tmp_path / "a.run", tmp_path / "b.run", "-m", "nDCG@10"]
    alone = rankbeam(*arguments, "--output", tmp_path / "alone")
    together = rankbeam(*arguments, "--dialect", "pytrec_eval,rankbeam", "--output", tmp_path / "together")
    assert (alone.exit_code, together.exit_code) == (0, 0), together.stderr
    ranks = leaderboard_of(tmp_path / "together")
    assert ranks["rankbeam"] == leaderboard_of(tmp_path / "alone")["rankbeam"]
    assert {name: [rank for _, _, rank in rows] for name, rows in ranks.items()} == {
        "rankbeam": [1, 2],
        "pytrec_eval": [1, 2],
    }
    names = [{name for name, _, _ in ranks[dialect]} for dialect in ("rankbeam", "pytrec_eval")]
    assert names == [{"a", "b"}, {"a:dialect=pytrec_eval", "b:dialect=pytrec_eval"}]
    places = {
        place["name"]: place["rank"]
        for place in board(Study(find_run(str(tmp_path / "together"))), "nDCG@10")["places"]
    }
    assert places == {name: rank for rows in ranks.values() for name, _, rank in rows}


def leaderboard_of(output: Path) -> dict[str, list[tuple[str, str, int]]]:
    """By dialect: name, config_id and rank of its configurations, the best first."""
    rows: dict[str, list[tuple[str, str, int]]] = {}
    with duckdb.connect(str(output / "results.duckdb"), read_only=True) as connection:
        query = "SELECT dialect, configuration, config_id, rank FROM leaderboard ORDER BY rank"
        for dialect, *row in connection.execute(query).fetchall():
            rows.setdefault(dialect, []).append(tuple(row))
    return rows
