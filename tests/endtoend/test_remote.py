"""Remote retrievers, from the experiment to the tables: their calls, costs and messages about failures."""

import json
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support import runs
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.remote import (
    answers,
    dataset,
    failure_rows,
    http,
    rag,
    run_file,
    signalled,
    write_experiment,
)
from support.runs import query_values, without_run
from support.standins import Faults, Standin, serve

from rankbeam.pipelines.results.run import Results

QUERIES = 40
QUOTAS = {kind: {"requests_per_minute": 60_000} for kind in ("rag_engine", "http")}
RETRIEVERS = {"rag_engine": rag, "http": http}


def evaluated(path: str, run_id: str = "r1") -> Results:
    return runs.evaluated(path, run_id)


def experiment(folder: Path, retriever: dict[str, Any], **more: Any) -> str:
    """An experiment with one configuration that asks 20 results of every query."""
    base = {"dataset": dataset(folder, QUERIES), "quotas": QUOTAS}
    base["configurations"] = [{"name": "remote", "retriever": retriever, "top_k": 20}]
    return write_experiment(folder, base | more)


@pytest.mark.long
def test_a_remote_retriever_scores_as_its_answers_in_a_run_would(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(serve(kind, answers=answers(QUERIES))) for kind in RETRIEVERS}
        file = {"type": "run_file", "path": run_file(tmp_path, QUERIES)}
        retrievers = {kind: RETRIEVERS[kind](server) for kind, server in servers.items()} | {"file": file}
        configurations = [{"name": name, "retriever": one, "top_k": 20} for name, one in retrievers.items()]
        values = query_values(evaluated(experiment(tmp_path, {}, configurations=configurations)))
        assert values["rag_engine"] == values["http"] == values["file"]
        assert len(values["file"]) == QUERIES
        assert {server.stats().calls for server in servers.values()} == {QUERIES}


@pytest.mark.campaign
def test_chunks_keep_their_text(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        evaluated(experiment(tmp_path, rag(server)))
    rankings = Results(str(tmp_path / "out"), "r1").table("rankings").to_pylist()
    first = next(row for row in rankings if row["query_id"] == "q3")["documents"][0]
    assert (first["text"], first["score"]) == ("said 3 0", pytest.approx(0.1003, abs=1e-6))


SMALL = {"top_k": [5, 20], "vector_distance_threshold": [0.3]}
LARGE = {"top_k": [5, 10, 20], "vector_distance_threshold": [0.15, 0.3, 0.5]}


def sweep(
    server: Standin, folder: Path, grid: dict[str, list[Any]], *, together: bool
) -> dict[str, dict[str, dict[str, float]]]:
    """Values of a sweep over top_k and threshold, in one experiment or in one for each cell."""
    if together:
        return query_values(evaluated(experiment(folder, rag(server), grid=grid)))
    values = {}
    for top_k in grid["top_k"]:
        for threshold in grid["vector_distance_threshold"]:
            name = f"remote:top_k={top_k},vector_distance_threshold={threshold}"
            cell = {"name": name, "retriever": rag(server), "top_k": top_k, "vector_distance_threshold": threshold}
            below = folder / f"{top_k}-{threshold}"
            values |= query_values(evaluated(experiment(below, {}, configurations=[cell])))
    return values


@pytest.mark.long
@pytest.mark.parametrize("grid", [SMALL, pytest.param(LARGE, marks=pytest.mark.campaign)], ids=["small", "large"])
def test_a_sweep_over_top_k_and_threshold_makes_one_call_a_query(grid: dict[str, list[Any]], tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        together = sweep(server, tmp_path / "together", grid, together=True)
        assert server.stats().calls == QUERIES
        assert together == sweep(server, tmp_path / "apart", grid, together=False)
        assert server.stats().calls == QUERIES * (1 + len(together))
    values = {name: sum(metrics["R@20"] for metrics in queries.values()) for name, queries in together.items()}
    assert len(set(values.values())) > len(together) / 3  # the cells do differ


@pytest.mark.campaign
def test_tools_that_order_by_score_put_the_nearest_first(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        evaluated(experiment(tmp_path, rag(server), dialects=["rankbeam", "trec_eval"]))
        assert server.stats().calls == QUERIES
    values = query_values(Results(str(tmp_path / "out"), "r1"))
    assert values["remote:dialect=trec_eval"] == values["remote"]


@pytest.mark.campaign
def test_a_derived_cell_is_that_of_a_call_of_its_own_for_tools_that_order_by_score(tmp_path: Path) -> None:
    rankings = {
        query: [document | {"score": document["score"] * (-1) ** rank} for rank, document in enumerate(ranking)]
        for query, ranking in answers(QUERIES).items()
    }
    with serve("http", answers=rankings) as server:
        dialects = ["rankbeam", "trec_eval"]
        swept = experiment(tmp_path / "swept", http(server), dialects=dialects, grid={"top_k": [4, 20]})
        alone = experiment(tmp_path / "alone", http(server), dialects=dialects, grid={"top_k": [4]})
        for path in (swept, alone):
            evaluated(path)
    one, other = (query_values(Results(str(tmp_path / name / "out"), "r1")) for name in ("swept", "alone"))
    assert {name: one[name] for name in other} == other
    assert len({str(values) for values in other.values()}) == 2  # the order does matter


def test_scores_that_are_no_distances_are_not_cut_as_if_they_were(tmp_path: Path) -> None:
    rankings = {
        query: [document | {"score": 1 - document["score"]} for document in ranking]
        for query, ranking in answers(QUERIES).items()
    }
    with serve("rag_engine", answers=rankings) as server:
        grid = {"vector_distance_threshold": [0.4, 0.99]}
        outcome = rankbeam("evaluate", experiment(tmp_path, rag(server), grid=grid))
    assert outcome.status == 2
    assert "scores decrease along its rankings, so they are not distances" in outcome.stderr


@pytest.mark.long
def test_one_answer_that_cannot_be_scored_fails_one_query(tmp_path: Path) -> None:
    rankings = answers(QUERIES)
    rankings["question 5"][3] = rankings["question 5"][0]
    with serve("rag_engine", answers=rankings) as server:
        data = dataset(tmp_path, QUERIES) | {"unit": "chunk"}
        results = evaluated(experiment(tmp_path, rag(server), dataset=data))
    assert not results.over_failure_rate(0.05)  # it is one of forty
    (row,) = failure_rows(tmp_path / "out", "r1")
    assert (row["query_id"], row["kind"]) == ("q5", "malformed")
    assert "occurs twice in the answer" in row["message"]
    assert query_values(results)["remote"]["q5"] == {}


@pytest.mark.campaign
def test_a_reranked_sweep_is_asked_cell_by_cell(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        evaluated(experiment(tmp_path, rag(server, rank_service="ranker"), grid={"top_k": [5, 10]}))
        assert server.stats().calls == 2 * QUERIES


@pytest.mark.campaign
def test_only_what_changes_an_answer_costs_calls(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:

        def calls(**changes: Any) -> int:
            before = server.stats().calls
            evaluated(experiment(tmp_path, changes.pop("retriever", rag(server)), **changes), "again")
            return server.stats().calls - before

        smaller = [{"name": "remote", "retriever": rag(server), "top_k": 7, "vector_distance_threshold": 0.3}]
        larger = [{"name": "remote", "retriever": rag(server), "top_k": 21}]
        assert calls() == QUERIES
        assert calls() == 0
        assert calls(configurations=smaller, metrics=["AP", "RR", "nDCG@3"], slices=["language"]) == 0
        named = {"field": "source_uri", "pattern": r"(doc-\d+)\.txt$"}
        own = {"own": {"requests_per_minute": 60_000}}
        assert calls(retriever=rag(server, quota="own", doc_id=named), quotas=own) == 0
        assert calls(configurations=larger) == QUERIES
        assert calls(retriever=rag(server, version="2")) == QUERIES
        assert calls(retriever=rag(server, metadata_filter="year > 2020")) == QUERIES
        queries = Path(tmp_path / "queries.jsonl")
        queries.write_text(queries.read_text().replace('"question 3"', '"another question"'))
        before = server.stats().calls
        outcome = rankbeam("evaluate", str(tmp_path / "experiment.yaml"), "--run-id", "edited", "--format", "json")
        assert outcome.status == 0, outcome.stderr
        assert server.stats().calls - before == 1


@pytest.mark.long
def test_a_query_whose_call_failed_is_neither_zero_nor_dropped_and_too_many_end_with_status_3(tmp_path: Path) -> None:
    with serve(
        "rag_engine", answers=answers(QUERIES), faults=Faults(kinds=("permission",), only="question 11")
    ) as server:
        path = experiment(tmp_path, rag(server), max_failure_rate=0.01)
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
    assert outcome.status == 3
    assert "remote (2.5%)" in outcome.stderr
    assert "nDCG@10" in outcome.stdout
    assert "had failed queries been answered" in outcome.stdout
    results = Results(str(tmp_path / "out"), "r1")
    (configuration,) = results.configurations
    mean = results.means[configuration["config_id"], "all", "P@5"]
    values = query_values(results)["remote"]
    assert (mean.queries, mean.failed, values["q11"]) == (QUERIES - 1, 1, {})
    scored = [value["P@5"] for query, value in values.items() if query != "q11"]
    assert mean.mean == pytest.approx(sum(scored) / (QUERIES - 1), abs=1e-12)
    assert mean.lowest == pytest.approx(sum(scored) / QUERIES, abs=1e-12)
    assert mean.highest == pytest.approx((sum(scored) + 1) / QUERIES, abs=1e-12)
    (row,) = failure_rows(tmp_path / "out", "r1")
    assert (row["query_id"], row["stage"], row["kind"], row["attempts"]) == ("q11", "retrieve", "permission", 1)
    assert row["config_id"] == configuration["config_id"]


@pytest.mark.campaign
def test_a_configuration_whose_every_call_fails_is_failed_and_not_zero(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES), faults=Faults(kinds=("invalid",), only="question")) as server:
        two = [
            {"name": "broken", "retriever": rag(server), "top_k": 20},
            {"name": "file", "retriever": {"type": "run_file", "path": run_file(tmp_path, QUERIES)}},
        ]
        path = experiment(tmp_path, {}, configurations=two)
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
        shown = rankbeam("evaluate", path, "--run-id", "r2")
    assert shown.status == 3
    assert next(line for line in shown.stdout.splitlines() if line.startswith("broken")).split()[1] == "failed"
    results = Results(str(tmp_path / "out"), "r1")
    assert [row["name"] for row in results.leaderboard()] == ["file", "broken"]
    broken = next(row for row in results.configurations if row["name"] == "broken")
    mean = results.means[broken["config_id"], "all", "P@5"]
    assert (mean.mean, mean.lowest, mean.highest, mean.failed) == (None, 0.0, 1.0, QUERIES)
    assert len(failure_rows(tmp_path / "out", "r1")) == QUERIES
    assert outcome.status == 3


@pytest.mark.long
def test_a_run_warns_when_nothing_that_was_retrieved_is_judged(tmp_path: Path) -> None:
    rankings = {
        query: [document | {"id": document["id"] + "-v2"} for document in ranking]
        for query, ranking in answers(QUERIES).items()
    }
    with serve("rag_engine", answers=rankings) as server:
        outcome = rankbeam("evaluate", experiment(tmp_path, rag(server)), "--run-id", "r1")
        assert "warning: remote: no document that it retrieved is judged" in outcome.stderr
        mended = rag(server, doc_id={"field": "source_uri", "pattern": r"([^/]+)-v2\.txt$"})
        assert evaluated(experiment(tmp_path, mended), "r2").run["warnings"] == []
        assert server.stats().calls == QUERIES


@pytest.mark.campaign
def test_a_fusion_adds_no_call(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        run = run_file(tmp_path, QUERIES)
        three = [
            {"name": "remote", "retriever": rag(server), "top_k": 20},
            {"name": "file", "retriever": {"type": "run_file", "path": run}},
            {"name": "both", "retriever": {"type": "fusion", "parts": ["remote", "file"]}, "top_k": 20},
        ]
        evaluated(experiment(tmp_path, {}, configurations=three))
        assert server.stats().calls == QUERIES
    values = query_values(Results(str(tmp_path / "out"), "r1"))
    assert values["both"] == values["file"]  # two equal rankings fuse to themselves


@pytest.mark.long
def test_a_plan_makes_no_call_and_says_what_evaluate_would_make_and_the_ledger_is_shown_and_cleared(
    tmp_path: Path,
) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        quotas = {"rag_engine": {"requests_per_minute": 1500, "price_per_1000": 2.5}}
        path = experiment(tmp_path, rag(server), grid={"top_k": [5, 20]}, quotas=quotas)
        planned = json.loads(rankbeam("plan", path, "--format", "json").stdout)
        (pool,) = planned["pools"]
        assert (pool["pool"], pool["calls"], pool["ledger_hits"]) == ("rag_engine", QUERIES, 0)
        assert (pool["seconds"], pool["cost"]) == (pytest.approx(1.6), pytest.approx(0.1))
        assert "derived from remote:top_k=20" in rankbeam("plan", path).stdout
        assert server.stats().calls == 0
        evaluated(path, "first")
        assert server.stats().calls == QUERIES
        (pool,) = json.loads(rankbeam("plan", path, "--format", "json").stdout)["pools"]
        assert (pool["ledger_hits"], pool["seconds"], pool["cost"]) == (QUERIES, 0, 0)
        evaluated(path, "second")
        shown = rankbeam("ledger", str(tmp_path / "out"))
        assert shown.status == 0
        assert "40" in shown.stdout
        assert rankbeam("ledger", path, "--clear", "--yes").status == 0
        evaluated(path, "third")
        assert server.stats().calls == 2 * QUERIES
    runs = [Results(str(tmp_path / "out"), run).run for run in ("first", "second", "third")]
    assert [(run["calls"], run["ledger_hits"]) for run in runs] == [(QUERIES, 0), (0, QUERIES), (QUERIES, 0)]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["http", *in_campaigns("rag_engine")])
def test_torn_and_foreign_files_in_the_ledger_do_no_harm(kind: str, tmp_path: Path) -> None:
    with serve(kind, answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, RETRIEVERS[kind](server))
        evaluated(path)
        for part in (tmp_path / "out" / "ledger").rglob("*.parquet"):
            part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
        (tmp_path / "out" / "ledger" / "calls-foreign.parquet").write_bytes(b"PAR1 not at all")
        (tmp_path / "out" / "ledger" / "notes.txt").write_text("mine")
        evaluated(path, "again")
        assert server.stats().calls == 2 * QUERIES
    first, second = (Results(str(tmp_path / "out"), run) for run in ("r1", "again"))
    assert without_run(first.table("query_metrics")) == without_run(second.table("query_metrics"))


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_ended_goes_on_where_it_was(number: signal.Signals, tmp_path: Path) -> None:
    queries = 300
    with serve("http", answers=answers(queries), latency_s=0.2) as server:
        base = {"dataset": dataset(tmp_path, queries), "quotas": {"http": {"requests_per_minute": 30 * 60}}}
        base["configurations"] = [{"name": "remote", "retriever": http(server), "top_k": 20}]
        path = write_experiment(tmp_path, base)
        arguments = ["evaluate", path, "--run-id", "r1"]
        ended = signalled(arguments, number, lambda: server.stats().calls >= 200, tmp_path)
        before = server.stats().calls
        assert not (tmp_path / "out" / "runs").exists() or not list((tmp_path / "out" / "runs").rglob("*.parquet"))
        evaluated(path)
        repeated = {text: times for text, times in server.stats().queries.items() if times > 1}
    if number is signal.SIGINT:
        assert ended.status == 130
        assert "same command" in ended.stderr
        assert not repeated
    assert before >= 200
    assert len(repeated) <= 5 * 30  # what ended in the five seconds before the kill
    assert server.stats().busiest_second <= 1.5 * 30 if number is signal.SIGINT else True
    assert len(query_values(Results(str(tmp_path / "out"), "r1"))["remote"]) == queries


@pytest.mark.campaign
def test_a_service_that_pushes_back_is_given_time(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(200), latency_s=0.05, quota_per_minute=900, enforce=True) as server:
        base = {"dataset": dataset(tmp_path, 200), "quotas": {"rag_engine": {"requests_per_minute": 1800}}}
        base["configurations"] = [{"name": "remote", "retriever": rag(server), "top_k": 20}]
        evaluated(write_experiment(tmp_path, base))
        stats = server.stats()
    assert len(query_values(Results(str(tmp_path / "out"), "r1"))["remote"]) == 200
    assert stats.answered >= 200
    assert 0 < stats.faults["over_quota"] < 100  # at full pace half of all calls would be refused
    assert not failure_rows(tmp_path / "out", "r1")


@pytest.mark.campaign
def test_two_worker_processes_keep_one_quota(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(120), latency_s=0.1) as server:
        base = {"dataset": dataset(tmp_path, 120), "quotas": {"rag_engine": {"requests_per_minute": 20 * 60}}}
        base["configurations"] = [{"name": "remote", "retriever": rag(server), "top_k": 20}]
        options = ["--direct_running_mode", "multi_processing", "--direct_num_workers", "2"]
        outcome = rankbeam("evaluate", write_experiment(tmp_path, base), "--run-id", "r1", *options)
        assert outcome.status == 0, outcome.stderr
        stats = server.stats()
    assert stats.calls == 120
    assert stats.busiest_second <= 30  # two that do not share it would make 40; a busy server sees some late


@pytest.mark.campaign
def test_several_lanes_keep_one_quota(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(120), latency_s=0.5) as server:
        quotas = {"rag_engine": {"requests_per_minute": 30 * 60, "lanes": 3}}
        base = {"dataset": dataset(tmp_path, 120), "quotas": quotas}
        base["configurations"] = [{"name": "remote", "retriever": rag(server), "top_k": 20}]
        evaluated(write_experiment(tmp_path, base))
        stats = server.stats()
    assert stats.calls == 120
    assert stats.busiest_second <= 45  # lanes that do not share the quota would make 90; a busy server sees some late
