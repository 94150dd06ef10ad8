"""`rewrite:` from the experiment to the tables: rankings by plain retrieval of the same texts, fusion, faults, plan."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support import stage_world
from support.cli import rankbeam
from support.stage_world import Rankings, evaluated, experiment, ids, outcome_of, questions, rankings
from support.standins import Faults, serve

from rankbeam.transforms.clients.models.rewriting import offline
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.forms import TEXT, list_of, object_of

SERVICES = {"writer": {"type": "extractive"}, "vectors": {"type": "hashed"}}
C = 60.0


def bm25(name: str = "bm25", top_k: int = 8, **more: Any) -> dict[str, Any]:
    return {"name": name, "retriever": {"type": "bm25"}, "top_k": top_k, **more}


def dense(name: str = "dense", **more: Any) -> dict[str, Any]:
    return {"name": name, "retriever": {"type": "dense", "embedding_model": "vectors"}, "top_k": 8, **more}


def hyde(**more: Any) -> dict[str, Any]:
    return {"service": "writer", "kind": "hyde"} | more


def passage(query: str) -> str:
    """The passage that the offline model writes."""
    return offline(Prompt("rewrite_hyde", {"query": query}), "english") or ""


def further(query: str, number: int) -> list[str]:
    """The further queries that the offline model writes."""
    prompt = Prompt("rewrite_multi_query", {"query": query}, schema=object_of(queries=list_of(TEXT, number)))
    reply: dict[str, list[str]] = json.loads(offline(prompt, "english") or "")
    return reply["queries"]


def retrieved_for(folder: Path, texts: dict[str, str], *configurations: dict[str, Any]) -> Rankings:
    """The rankings for other texts under the same ids, without any rewriting."""
    folder.mkdir()
    data = stage_world.dataset(folder)
    rows = "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts.items())
    Path(data["queries"]).write_text(rows)
    path = experiment(folder, dataset=data, services=SERVICES, configurations=list(configurations))
    Path(stage_world.dataset(folder)["queries"]).write_text(rows)
    evaluated(path)
    return rankings(path)


def add_queries(path: str, texts: dict[str, str]) -> None:
    """Add queries to an experiment, whose plain retrieval shows what the texts find."""
    folder = Path(path).parent
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as queries:
        queries.writelines(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts.items())
    with (folder / "qrels.trec").open("a", encoding="utf-8") as qrels:
        qrels.writelines(f"{name} 0 d0 1\n" for name in texts)


def fused(parts: list[dict[str, list[str]]], query: str) -> dict[str, float]:
    """The votes of reciprocal rank fusion, in plain Python."""
    votes: dict[str, float] = {}
    for part in parts:
        for rank, name in enumerate(part.get(query, []), start=1):
            votes[name] = votes.get(name, 0.0) + 1 / (C + rank)
    return votes


@pytest.mark.campaign
def test_words_search_with_query_and_passage_and_vectors_with_the_passage(tmp_path: Path) -> None:
    path = experiment(
        tmp_path / "a",
        services=SERVICES,
        configurations=[bm25(), bm25("words", rewrite=hyde()), dense("vectors", rewrite=hyde())],
    )
    evaluated(path)
    ranked = rankings(path)
    queries = questions()
    appended = {name: f"{text}\n{passage(text)}" for name, text in queries.items()}
    replaced = {name: passage(text) for name, text in queries.items()}
    assert ranked["words"] == retrieved_for(tmp_path / "b", appended, bm25())["bm25"]
    assert ranked["vectors"] == retrieved_for(tmp_path / "c", replaced, dense())["dense"]
    texts = stage_world.results(path).table("query_metrics").to_pylist()
    assert {row["text"] for row in texts} == set(queries.values())


@pytest.mark.long
def test_further_queries_are_fused_with_the_query_by_reciprocal_ranks(tmp_path: Path) -> None:
    multi = {"service": "writer", "kind": "multi_query", "n": 2}
    path = experiment(tmp_path, services=SERVICES, configurations=[bm25(), bm25("multi", rewrite=multi)])
    queries = questions()
    written = {f"{name}/{number}": further(text, 2)[number] for name, text in queries.items() for number in range(2)}
    add_queries(path, written)
    evaluated(path)
    ranked = rankings(path)
    plain = ids(ranked["bm25"])
    lists = [plain, *({name: plain[f"{name}/{number}"] for name in queries} for number in range(2))]
    for query in queries:
        hits = ranked["multi"][query]
        votes = fused(lists, query)
        assert dict(hits) == pytest.approx({name: votes[name] for name, _ in hits})
        assert [score for _, score in hits] == pytest.approx(sorted(votes.values(), reverse=True)[:8])
    usage = {row["stage"]: row for row in stage_world.results(path).table("usage").to_pylist()}
    assert usage["rewrite"]["calls"] == len({*queries.values(), *written.values()})


PASSAGES = {"rewrite": {"off": None, "one": hyde(), "two": hyde(n=2, temperature=0.0)}}


def test_the_plan_counts_passages_that_share_their_first_call(tmp_path: Path) -> None:
    path = experiment(tmp_path, services=SERVICES, configurations=[bm25()], grid=PASSAGES)
    planned = " ".join(rankbeam("plan", path).stdout.split())
    assert f"rewrite_hyde: {2 * len(questions())} calls" in planned


def test_calls_that_the_plan_proposes_have_a_cost_only_if_each_call_has_a_price(tmp_path: Path) -> None:
    retriever = {"type": "http", "url": "http://127.0.0.1:9/search", "results": "hits", "id": "id"}
    one = {"name": "one", "retriever": retriever, "top_k": 3, "rewrite": hyde()}
    shown = []
    for prices in ({"price_per_million": {"input": 1.0, "output": 1.0}}, {"price_per_1000": 2.0}):
        quotas = {"http": {"requests_per_minute": 600, **prices}}
        path = experiment(tmp_path, services=SERVICES, configurations=[one], quotas=quotas)
        shown.append(" ".join(rankbeam("plan", path).stdout.split()))
    assert "also evaluate `rewrite: null` (8 calls of http)" in shown[0]
    assert "also evaluate `rewrite: null` (8 calls of http, cost 0.02)" in shown[1]


@pytest.mark.campaign
def test_passages_share_their_first_call_and_the_plan_knows_all(tmp_path: Path) -> None:
    path = experiment(tmp_path, services=SERVICES, configurations=[bm25()], grid=PASSAGES)
    evaluated(path)
    usage = {row["stage"]: row for row in stage_world.results(path).table("usage").to_pylist()}
    assert usage["rewrite"]["calls"] == 2 * len(questions())
    assert "writer: 0 calls to make" in " ".join(rankbeam("plan", path).stdout.split())
    ranked = rankings(path)
    assert ids(ranked["bm25:rewrite=one"]) == ids(ranked["bm25:rewrite=two"])  # both passages are equal offline


@pytest.mark.campaign
def test_a_remote_retriever_is_asked_the_passage_and_a_reranker_the_query(tmp_path: Path) -> None:
    with serve("http") as search, serve("rerankers") as ranker:
        body = {"query": "{query}", "top_k": "{top_k}"}
        retriever = {
            "type": "http", "url": f"{search.url}/search", "body": body,
            "results": "hits.hits", "id": "_id", "score": "_score", "text": "_source.text",
        }  # fmt: skip
        reranker = {"type": "cohere", "model": "m", "url": f"{ranker.url}/v2/rerank", "headers": {}}
        one = {"name": "one", "retriever": retriever, "top_k": 3, "rewrite": hyde(), "rerank": {**reranker, "depth": 5}}
        path = experiment(tmp_path, services=SERVICES, configurations=[one])
        planned = " ".join(rankbeam("plan", path).stdout.split())
        assert rankbeam("evaluate", path, "--allow-disjoint").status == 0
        assert set(search.stats().queries) == {passage(text) for text in questions().values()}
        assert set(ranker.stats().queries) == set(questions().values())
    assert "http: 8 calls to make" in planned
    assert "cohere: 8 calls to make" in planned


@pytest.mark.long
def test_an_empty_or_refused_text_is_replaced_by_the_query_and_counted(tmp_path: Path) -> None:
    faults = ("empty", "safety")
    with ExitStack() as stack:
        servers = {
            fault: stack.enter_context(serve("openai", faults=Faults(rate=1, kinds=(fault,)))) for fault in faults
        }
        services = {
            fault: {"type": "openai", "base_url": f"{server.url}/v1", "model": "m-001"}
            for fault, server in servers.items()
        }
        rewritten = [bm25(fault, rewrite=hyde(service=fault)) for fault in faults]
        path = experiment(tmp_path, services=services, configurations=[bm25(), *rewritten])
        printed = " ".join(outcome_of(path).stderr.split())
    ranked = rankings(path)
    for fault in faults:
        assert ranked[fault] == ranked["bm25"]
        assert f"{fault}: 8 rewritten texts are empty; the query itself was used instead" in printed


@pytest.mark.long
def test_a_call_that_fails_is_a_failed_query_of_this_configuration_alone(tmp_path: Path) -> None:
    query, text = next(iter(questions().items()))
    with serve("openai", faults=Faults(only=text, kinds=("invalid",))) as server:
        services = {"writer": {"type": "openai", "base_url": f"{server.url}/v1", "model": "m-001"}}
        configurations = [bm25(), bm25("hyde", rewrite=hyde())]
        path = experiment(tmp_path, services=services, configurations=configurations)
        outcome_of(path, status=3)
    (failure,) = stage_world.results(path).table("failures").to_pylist()
    assert (failure["query_id"], failure["stage"]) == (query, "rewrite")
    ranked = rankings(path)
    assert not ranked["hyde"].get(query)
    assert ranked["bm25"][query]


@pytest.mark.long
def test_questions_of_a_conversation_stand_alone(tmp_path: Path) -> None:
    data = stage_world.dataset(tmp_path)
    history = [{"role": "user", "text": "green paper store"}, {"role": "assistant", "text": "Yes."}]
    rows = [{"_id": "q0", "text": "snow date"}, {"_id": "q1", "text": "winter home", "metadata": {"history": history}}]
    written = "".join(json.dumps(row) + "\n" for row in rows)
    standalone = {"service": "writer", "kind": "standalone"}
    path = experiment(tmp_path, services=SERVICES, configurations=[bm25(), bm25("alone", rewrite=standalone)])
    Path(data["queries"]).write_text(written)
    add_queries(path, {"q2/alone": "home winter green paper store"})
    evaluated(path)
    usage = {row["stage"]: row for row in stage_world.results(path).table("usage").to_pylist()}
    assert usage["rewrite"]["calls"] == 1
    ranked = rankings(path)
    assert ranked["alone"]["q0"] == ranked["bm25"]["q0"]
    assert ranked["alone"]["q1"] == ranked["bm25"]["q2/alone"]


HISTORY = [{"role": "user", "text": "green paper store"}, {"role": "assistant", "text": "in winter"}]


def in_conversation(path: str) -> None:
    """Replace the queries of an experiment by two, of which the second has a history."""
    rows = [{"_id": "q0", "text": "snow date"}, {"_id": "q1", "text": "winter home", "metadata": {"history": HISTORY}}]
    Path(stage_world.dataset(Path(path).parent)["queries"]).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.long
def test_the_history_is_joined_with_the_query(tmp_path: Path) -> None:
    whole = [bm25("whole"), dense("whole-vectors")]
    for one in whole:
        one["retriever"] = {**one["retriever"], "query": "history"}
    path = experiment(tmp_path, services=SERVICES, configurations=[bm25(), dense(), *whole])
    in_conversation(path)
    add_queries(path, {"q1/whole": "green paper store\nin winter\nwinter home"})
    evaluated(path)
    ranked = rankings(path)
    for joined, plain in (("whole", "bm25"), ("whole-vectors", "dense")):
        assert ranked[joined]["q0"] == ranked[plain]["q0"]
        assert ranked[joined]["q1"] == ranked[plain]["q1/whole"]
    assert ranked["whole"]["q1"] != ranked["bm25"]["q1"]


@pytest.mark.campaign
def test_a_remote_retriever_is_asked_the_joined_history_and_the_plan_counts_its_calls(tmp_path: Path) -> None:
    with serve("http") as search:
        retriever = {
            "type": "http", "url": f"{search.url}/search", "body": {"query": "{query}", "top_k": "{top_k}"},
            "results": "hits.hits", "id": "_id", "score": "_score", "text": "_source.text",
        }  # fmt: skip
        whole = {"name": "whole", "retriever": {**retriever, "query": "history"}, "top_k": 3}
        path = experiment(tmp_path, configurations=[{"name": "last", "retriever": retriever, "top_k": 3}, whole])
        in_conversation(path)
        planned = " ".join(rankbeam("plan", path).stdout.split())
        assert rankbeam("evaluate", path, "--allow-disjoint").status == 0
        texts = sorted(search.stats().queries)
    assert texts == ["green paper store\nin winter\nwinter home", "snow date", "winter home"]
    assert "http: 3 calls to make" in planned  # both configurations are asked the first query, which has no history


def test_the_default_is_no_part_of_an_identity(tmp_path: Path) -> None:
    configurations = [bm25(), {**bm25("last"), "retriever": {"type": "bm25", "query": "last"}}]
    refused = rankbeam("evaluate", experiment(tmp_path, configurations=configurations))
    assert "'last' is the same configuration as 'bm25'" in refused.stderr


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (bm25(rewrite={"kind": "hyde"}), "rewrite.service: is missing"),
        (bm25(rewrite=hyde(n=0)), "must be at least 1"),
        (bm25(rewrite={"service": "writer", "kind": "hide"}), "rewrite.kind"),
        (bm25(rewrite={"service": "wirter", "kind": "hyde"}), "did you mean 'writer'?"),
        (bm25(rewrite={"service": "writer", "kind": "standalone"}), "needs queries with a history"),
        (bm25(rewrite={"service": "writer", "kind": "standalone", "n": 2}), "leave out n"),
        (bm25(rewrite=hyde(template="nowhere.txt")), "nowhere.txt"),
        (
            bm25(retriever={"type": "bm25", "query": "history"}),
            "history needs queries with a history, but no query has one",
        ),
        (bm25(retriever={"type": "bm25", "query": "all"}), "retriever.query"),
        (
            bm25(retriever={"type": "bm25", "query": "history"}, rewrite=hyde()),
            "the model of rewrite: writes the queries",
        ),
        (
            {"name": "run", "retriever": {"type": "run_file", "path": "r.trec", "query": "history"}},
            "retriever receives no queries; leave it out",
        ),
        (bm25(rewrite=hyde(template="own.txt")), "unknown variable {langauge}"),
        (
            {"name": "run", "retriever": {"type": "run_file", "path": "r.trec"}, "rewrite": hyde()},
            "receives no queries",
        ),
    ],
)
def test_what_cannot_work_is_refused(configuration: dict[str, Any], problem: str, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("Write in {langauge}: {query}")
    path = experiment(tmp_path, services=SERVICES, configurations=[configuration])
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 2
    assert problem in " ".join(outcome.stderr.split())
