"""`rerank:` from the experiment to the tables: orders by plain Python, shared calls, faults, race, plan and usage."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support import stage_world
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.remote import http
from support.stage_world import evaluated, experiment, ids, outcome_of, questions, rankings, texts
from support.standins import Faults, Standin, serve
from support.standins.rerankers import relevance

QUOTAS = {"vertex_ranking": {"requests_per_minute": 60_000, "price_per_1000": 2.0}}
BM25 = {"type": "bm25", "title": "ignored"}


def vertex(server: Standin, **more: Any) -> dict[str, Any]:
    return {"type": "vertex_ranking", "project": "p", "api_endpoint": server.url, **more}


def bm25(name: str = "bm25", top_k: int = 30, **more: Any) -> dict[str, Any]:
    return {"name": name, "retriever": {"type": "bm25"}, "top_k": top_k, **more}


def expected(before: dict[str, list[str]], depth: int, top_k: int) -> dict[str, list[str]]:
    """Rankings by the stand-in's scores, in plain Python: ties in the order before, documents without text last."""
    documents, queries = texts(), questions()
    whole = {name: text if text.strip() else "snow" for name, text in documents.items()}  # those have a title
    return {
        query: sorted(hits[:depth], key=lambda name: -relevance(queries[query], whole[name]))[:top_k]
        for query, hits in before.items()
    }


@pytest.mark.long
def test_a_ranking_is_ordered_by_the_rerankers_scores_and_ties_keep_the_retrievers_order(tmp_path: Path) -> None:
    with serve("rerankers") as server:
        configurations = [
            bm25(),
            bm25("deep", 5, rerank=vertex(server, depth=20)),
            bm25("shallow", 3, rerank=vertex(server, depth=8)),
        ]
        path = experiment(tmp_path, configurations=configurations, quotas=QUOTAS)
        evaluated(path)
        ranked = {name: ids(one) for name, one in rankings(path).items()}
        assert ranked["deep"] == expected(ranked["bm25"], 20, 5)
        assert ranked["shallow"] == expected(ranked["bm25"], 8, 3)
        assert server.stats().calls == len(questions())  # one list serves all depths: its scores are pointwise
        evaluated(path, "r2")
        assert server.stats().calls == len(questions())
        assert rankings(path, "r2") == rankings(path)
    known, queries = texts(), questions()
    for query, hits in rankings(path)["deep"].items():
        for name, score in hits:
            assert score == relevance(queries[query], known[name] if known[name].strip() else "snow")


@pytest.mark.campaign
def test_a_list_that_is_not_pointwise_is_asked_for_each_depth(tmp_path: Path) -> None:
    with serve("rerankers") as server:
        own = {"type": "http", "url": f"{server.url}/v2/rerank"}
        grid = {"rerank.depth": [4, 6]}
        path = experiment(tmp_path, configurations=[bm25("one", 2, rerank=own)], grid=grid)
        evaluated(path)
        assert server.stats().calls == 2 * len(questions())


@pytest.mark.campaign
def test_more_than_200_texts_take_several_calls(tmp_path: Path) -> None:
    corpus = "".join(json.dumps({"_id": f"d{n}", "text": f"snow paper {n}"}) + "\n" for n in range(450))
    (tmp_path / "many.jsonl").write_text(corpus)
    (tmp_path / "one.jsonl").write_text(json.dumps({"_id": "q", "text": "snow 449"}) + "\n")
    (tmp_path / "one.tsv").write_text("query-id\tcorpus-id\tscore\nq\td449\t1\n")
    files = {"queries": "one.jsonl", "qrels": "one.tsv", "corpus": "many.jsonl"}
    with serve("rerankers") as server:
        configuration = bm25("deep", 450, rerank=vertex(server, depth=450))
        evaluated(experiment(tmp_path, dataset=files, configurations=[configuration], quotas=QUOTAS))
        sizes = [len(json.loads(request["body"])["records"]) for request in server.stats().requests]
    assert sorted(sizes) == [50, 200, 200]
    ranked = rankings(str(tmp_path / "experiment.yaml"))["deep"]["q"]
    assert ranked[0] == ("d449", 1.0)
    assert len({name for name, _ in ranked}) == 450


FAULTS = ("quota", "unavailable", "reset", "malformed", "partial", "no_number")


@pytest.mark.long
@pytest.mark.parametrize("fault", ["quota_info", *in_campaigns("twice", *FAULTS)])
def test_faults_that_pass_change_nothing(fault: str, tmp_path: Path) -> None:
    with serve("rerankers", faults=Faults(rate=0.3, kinds=(fault,), hint_s=0.01)) as server:
        configurations = [bm25(), bm25("one", 4, rerank=vertex(server, depth=9))]
        path = experiment(tmp_path, configurations=configurations, quotas=QUOTAS)
        evaluated(path)
    ranked = {name: ids(one) for name, one in rankings(path).items()}
    assert ranked["one"] == expected(ranked["bm25"], 9, 4)


@pytest.mark.long
def test_a_query_whose_call_fails_is_counted_and_has_no_ranking(tmp_path: Path) -> None:
    query, text = next(iter(questions().items()))
    with serve("rerankers", faults=Faults(only=text, kinds=("other_id",))) as server:
        path = experiment(tmp_path, configurations=[bm25(), bm25("one", 4, rerank=vertex(server))], quotas=QUOTAS)
        outcome = outcome_of(path, status=3)
    assert "scores text '999'" in outcome.stderr
    (failure,) = stage_world.results(path).table("failures").to_pylist()
    assert (failure["query_id"], failure["stage"], failure["kind"]) == (query, "rerank", "malformed")
    ranked = rankings(path)
    assert not ranked["one"].get(query)
    assert len(ranked["bm25"]) == len(questions())


@pytest.mark.long
def test_a_failed_call_of_a_retriever_counts_for_all_that_rerank_its_results(tmp_path: Path) -> None:
    query, text = next(iter(questions().items()))
    known = enumerate(texts().items())
    hits = [{"id": name, "score": 1 / (2 + place), "text": words} for place, (name, words) in known]
    replies = dict.fromkeys(questions().values(), hits[10:20])
    failing = {"max_failure_rate": 1.0, "services": {"demo": {"type": "lexical"}}}
    with serve("http", answers=replies, faults=Faults(only=text, kinds=("invalid",))) as server:
        configurations = [
            {"name": name, "retriever": http(server), "rerank": {"service": "demo", "depth": depth}, "top_k": 5}
            for name, depth in (("deep", 9), ("shallow", 6))
        ]
        quotas = {"http": {"requests_per_minute": 60_000}}
        path = experiment(tmp_path, configurations=configurations, quotas=quotas, **failing)
        outcome_of(path)
    with duckdb.connect(str(tmp_path / "out" / "results.duckdb"), read_only=True) as connection:
        shown = connection.execute("SELECT configuration, caller, query_id, stage FROM unanswered ORDER BY 1")
        assert shown.fetchall() == [(name, name, query, "retrieve") for name in ("deep", "shallow")]
        kinds = connection.execute("SELECT configuration, failures FROM failure_kinds ORDER BY 1")
        assert kinds.fetchall() == [("deep", 1), ("shallow", 1)]


@pytest.mark.long
def test_texts_without_a_score_come_last_and_are_counted(tmp_path: Path) -> None:
    with serve("rerankers", faults=Faults(rate=1, kinds=("fewer",))) as server:
        path = experiment(
            tmp_path, configurations=[bm25(), bm25("one", 9, rerank=vertex(server, depth=9))], quotas=QUOTAS
        )
        outcome = outcome_of(path)
    assert "one: 8 results of 8 queries got no score for the reranker" in " ".join(outcome.stderr.split())
    ranked = rankings(path)
    for query, hits in ranked["one"].items():
        before = [name for name, _ in ranked["bm25"][query]][:9]
        assert hits[-1][1] is None
        assert {name for name, _ in hits} == set(before)


@pytest.mark.long
def test_a_document_without_text_is_not_sent_and_comes_last(tmp_path: Path) -> None:
    run = "".join(
        f"{query} Q0 {name} {rank} {9 - rank} t\n"
        for query in questions()
        for rank, name in enumerate(("d3", "d1", "d9"), 1)
    )
    (tmp_path / "run.trec").write_text(run)
    corpus = "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts().items())
    data = {**stage_world.dataset(tmp_path), "corpus": "plain.jsonl"}
    (tmp_path / "plain.jsonl").write_text(corpus)
    retriever = {"type": "run_file", "path": "run.trec"}
    with serve("rerankers") as server:
        one = {"name": "one", "retriever": retriever, "rerank": vertex(server)}
        path = experiment(tmp_path, dataset=data, configurations=[one], quotas=QUOTAS)
        outcome = outcome_of(path)
    assert "one: 8 results of 8 queries have no text for the reranker" in " ".join(outcome.stderr.split())
    assert all(hits[-1] == ("d3", None) for hits in rankings(path)["one"].values())


@pytest.mark.long
def test_an_offline_model_reranks_by_ratings_shares_them_and_leaves_what_answers_are_made_from(tmp_path: Path) -> None:
    grid = {"rerank": {"off": None, "demo": {"service": "demo", "depth": 12}, "less": {"service": "demo", "depth": 6}}}
    services = {"demo": {"type": "lexical"}, "writer": {"type": "extractive"}}
    one = bm25(top_k=5, generate={"service": "writer", "contexts": 5})
    path = experiment(tmp_path, services=services, configurations=[one], grid=grid)
    planned = rankbeam("plan", path).stdout
    evaluated(path)
    usage = {row["stage"]: row for row in stage_world.results(path).table("usage").to_pylist()}
    assert f"rerank: {usage['rerank']['calls']} calls" in planned
    assert usage["rerank"]["calls"] <= 12 * len(questions())
    assert len(usage["rerank"]["configurations"]) == 2
    assert "0 calls to make" in rankbeam("plan", path).stdout
    names = {row["config_id"]: row["name"] for row in stage_world.results(path).configurations}
    assert [*names.values()] == ["bm25:rerank=off", "bm25:rerank=demo", "bm25:rerank=less"]
    ranked, known = rankings(path), texts()
    for row in stage_world.results(path).table("answers").to_pylist():
        hits = ids(ranked[names[row["config_id"]]])[row["query_id"]]
        assert [context["doc_id"] for context in row["contexts"]] == hits
        assert known.keys() >= set(hits)


@pytest.mark.long
def test_the_plan_counts_calls_and_cost_before_any_is_made(tmp_path: Path) -> None:
    with serve("rerankers") as server:
        path = experiment(tmp_path, configurations=[bm25("one", 4, rerank=vertex(server, depth=9))], quotas=QUOTAS)
        planned = rankbeam("plan", path).stdout
        assert server.stats().calls == 0
    assert "vertex_ranking: 8 calls to make" in planned
    assert "cost 0.02" in planned
    assert "first 9 results reranked by vertex_ranking" in planned


@pytest.mark.campaign
def test_a_race_reranks_only_for_configurations_that_are_left(tmp_path: Path) -> None:
    with serve("rerankers") as server:
        good = {"name": "good", "retriever": {"type": "bm25"}, "rerank": vertex(server, depth=20), "top_k": 10}
        race = {"metric": "nDCG@5", "looks": [4]}
        path = experiment(tmp_path, configurations=[bm25(), good], quotas=QUOTAS, race=race)
        evaluated(path)
        assert server.stats().calls == len(questions())


@pytest.mark.campaign
def test_a_plan_counts_answers_from_results_that_are_not_reranked_yet(tmp_path: Path) -> None:
    services = {"demo": {"type": "lexical"}, "writer": {"type": "extractive"}}
    one = bm25("one", 3, rerank={"service": "demo", "depth": 10}, generate={"service": "writer", "contexts": 3})
    planned = rankbeam("plan", experiment(tmp_path, services=services, configurations=[one]))
    assert planned.status == 0, planned.stderr
    assert f"answer: {len(questions())} calls" in " ".join(planned.stdout.split())


@pytest.mark.parametrize(
    ("rerank", "top_k", "problem"),
    [
        ({"depth": 10}, 5, "rerank.type: is missing, and so is service"),
        ({"type": "vertex", "project": "p"}, 5, "unknown reranker type 'vertex'"),
        ({"type": "vertex_ranking"}, 5, "project: is missing"),
        ({"service": "nobody"}, 5, "services: has no 'nobody'"),
        ({"type": "vertex_ranking", "service": "demo"}, 5, "has a type and a service"),
        ({"service": "demo", "depht": 3}, 5, "unknown key; did you mean 'depth'?"),
        ({"service": "demo", "depth": 3}, 5, "is 5, and the reranker of 'bm25' scores 3 results"),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(
    rerank: dict[str, Any], top_k: int, problem: str, tmp_path: Path
) -> None:
    services = {"demo": {"type": "lexical"}}
    path = experiment(tmp_path, services=services, configurations=[bm25(top_k=top_k, rerank=rerank)])
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 2
    assert problem in " ".join(outcome.stderr.split())


def test_existing_answers_cannot_be_reranked(tmp_path: Path) -> None:
    one = {"name": "one", "answers": {"type": "replay", "path": "a.jsonl"}, "rerank": {"service": "demo"}}
    outcome = rankbeam("evaluate", experiment(tmp_path, configurations=[one]))
    assert outcome.status == 2
    assert "has existing answers" in outcome.stderr
