"""Thresholds of scores, from the experiment to the rankings, against plain Python, with scores that may be absent."""

import itertools
import json
import math
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import stage_world
from support.json_server import Respond, responding
from support.runs import run_experiment
from support.standins import Faults, serve

RANDOM = Random(5)
QUERIES = [f"q{number}" for number in range(12)]
FAILED, UNSCORED = "q3", "q7"
DEPTHS, DISTANCES, SCORES = [2, 5], [0.3, 0.5, None], [0.5, 0, -0.25, None]
Hits = list[tuple[str, float]]


def rankings(direction: int) -> dict[str, Hits]:
    """For each query documents with scores, best first; many are equal to a threshold."""
    choices = [-0.25, 0.0, 0.3, 0.5, 0.5000001, 0.7]
    scores = {query: [RANDOM.choice(choices) for _ in range(RANDOM.choice([0, 1, 4, 8]))] for query in QUERIES}
    scores[UNSCORED] = [0.7, 0.6, 0.1]
    return {
        query: [(f"d{place}", score) for place, score in enumerate(sorted(some, key=lambda score: direction * score))]
        for query, some in scores.items()
    }


SIMILAR, DISTANT = rankings(-1), rankings(1)
RUN = {
    query: [(name, score - place * 1e-9) for place, (name, score) in enumerate(some)]
    for query, some in rankings(-1).items()
}


def service(hits: dict[str, Hits]) -> Respond:
    def respond(query: str) -> tuple[int, bytes]:
        if query == FAILED:
            return 400, b""
        results: list[dict[str, Any]] = [{"id": name, "score": score} for name, score in hits[query]]
        if query == UNSCORED:
            del results[1]["score"]
        return 200, json.dumps({"results": results}).encode()

    return respond


def http(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, "results": "results", "id": "id", "score": "score", **more}


def experiment(similar: str, exact: str, distant: str) -> dict[str, Any]:
    return {
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels.tsv"},
        "configurations": [
            {"name": "similar", "retriever": http(similar)},
            {"name": "exact", "retriever": http(exact, derive=False)},
            {"name": "distant", "retriever": http(distant, lower_is_better=True)},
            {"name": "run", "retriever": {"type": "run_file", "path": "old.run"}},
        ],
        "grid": {"top_k": DEPTHS, "vector_distance_threshold": DISTANCES, "min_score": SCORES},
        "metrics": ["NumRet"],
        "max_failure_rate": 0.5,
        "quotas": {"http": {"requests_per_minute": 60_000, "attempts": 1}},
        "output": {"path": "out", "rankings": True},
    }


def is_kept(score: float, parameters: dict[str, Any]) -> bool:
    most, least = parameters.get("vector_distance_threshold", math.inf), parameters.get("min_score", -math.inf)
    return bool(least <= score < most)


def plain(parameters: dict[str, Any]) -> dict[str, list[str]]:
    """The ranking of every query that has one."""
    retriever = parameters["retriever"]
    is_cut = {"vector_distance_threshold", "min_score"} & parameters.keys()
    hits, failed = (
        (DISTANT if retriever.get("lower_is_better") else SIMILAR),
        {FAILED, UNSCORED} if is_cut else {FAILED},
    )
    if retriever["type"] == "run_file":
        hits, failed = RUN, set[str]()
    within = {query: [name for name, score in some if is_kept(score, parameters)] for query, some in hits.items()}
    return {query: names[: parameters["top_k"]] for query, names in within.items() if query not in failed}


@pytest.mark.long
def test_every_threshold_is_cut_from_one_answer_as_plain_python_does(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text("".join(f'{{"_id": "{name}", "text": "{name}"}}\n' for name in QUERIES))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"{q}\td1\t1\n" for q in QUERIES))
    lines = [f"{query} Q0 {name} 0 {score} r\n" for query in QUERIES for name, score in RUN[query]]
    (tmp_path / "old.run").write_text("".join(lines))
    with ExitStack() as stack:
        servers = [stack.enter_context(responding(service(hits))) for hits in (SIMILAR, SIMILAR, DISTANT)]
        results = run_experiment(tmp_path, experiment(*(url for url, _ in servers)))
    # One that does not derive reranks what it retrieves, so every depth is a call, and no threshold is.
    assert [len(queries) for _, queries in servers] == [12, 12 * len(DEPTHS), 12]
    ranked: dict[str, dict[str, list[str]]] = {}
    for row in results.table("rankings").to_pylist():
        names = [document["doc_id"] for document in row["documents"]]
        ranked.setdefault(row["config_id"], {})[row["query_id"]] = names
    assert len(results.configurations) == len(DEPTHS) * (3 * len(SCORES) + len(DISTANCES))
    for row in results.configurations:
        states = {query["query_id"]: query["status"] for query in results.query_metrics(row["config_id"])}
        answered = {query: ranked[row["config_id"]][query] for query in QUERIES if states[query] != "failed"}
        assert answered == plain(json.loads(row["parameters"])), row["name"]


def test_a_threshold_cuts_what_is_fused_and_reranked(tmp_path: Path) -> None:
    multi = {"service": "writer", "kind": "multi_query", "n": 1}
    words = {"retriever": {"type": "bm25"}, "top_k": 30}
    path = stage_world.experiment(
        tmp_path,
        services={"writer": {"type": "extractive"}, "ratings": {"type": "lexical"}},
        configurations=[
            {"name": "plain", **words},
            {"name": "fused", **words, "rewrite": multi},
            {"name": "reranked", **words, "rerank": {"service": "ratings", "depth": 30}},
        ],
        grid={"min_score": [0.9, 0.7, None]},
    )
    stage_world.evaluated(path)
    ranked = {name: stage_world.ids(one) for name, one in stage_world.rankings(path).items()}
    fused = [ranked[f"fused:min_score={least}"] for least in (0.9, 0.7, None)]
    assert fused[0] != fused[1] != fused[2]
    for least in (0.9, 0.7, None):
        for query, hits in stage_world.rankings(path)["plain:min_score=None"].items():
            near = [name for name, score in hits if least is None or (score or 0.0) >= least]
            assert ranked[f"plain:min_score={least}"][query] == near
            assert sorted(ranked[f"reranked:min_score={least}"][query]) == sorted(near)
            assert {*near} <= {*ranked[f"fused:min_score={least}"][query]}


@pytest.mark.long
def test_a_rerankers_threshold_cuts_its_own_scores_and_costs_no_call(tmp_path: Path) -> None:
    with serve("rerankers", faults=Faults(rate=0.4, kinds=("fewer",))) as server:
        reranker = {"type": "vertex_ranking", "project": "p", "api_endpoint": server.url}
        path = stage_world.experiment(
            tmp_path,
            configurations=[
                {"name": "plain", "retriever": {"type": "bm25"}, "top_k": 30},
                {"name": "reranked", "retriever": {"type": "bm25"}, "rerank": reranker},
            ],
            grid={
                "top_k": [4, 30],
                "min_score": [0.7, None],
                "rerank.min_score": [0.4, 0.2, 0, None],
                "rerank.depth": [30, 40],
            },
            quotas={"vertex_ranking": {"requests_per_minute": 60_000}},
        )
        stage_world.evaluated(path)
        assert server.stats().calls <= 2 * len(stage_world.questions())  # one for each threshold before it
    ranked = stage_world.rankings(path)
    seen = set[int]()
    for before, top_k, depth in itertools.product((0.7, None), (4, 30), (30, 40)):
        own = f"min_score={before},rerank.min_score={{}},rerank.depth={depth}"
        whole = ranked[f"reranked:top_k=30,{own.format(None)}"]
        for least in (0.4, 0.2, 0):
            cut = ranked[f"reranked:top_k={top_k},{own.format(least)}"]
            for query, hits in whole.items():
                assert cut[query] == [(name, score) for name, score in hits if (score or -1) >= least][:top_k]
                seen.add(len(hits) - len(cut[query]))
    assert len(seen) > 5
