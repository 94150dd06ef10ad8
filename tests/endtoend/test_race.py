"""A race against stand-ins: what it asks, what it drops, and what its tables say of it."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import trec_run, write
from support.racing import FIRST, LOOKS, QUERIES, RACE, answers, calls, experiment, systems
from support.remote import http, signalled, write_experiment
from support.runs import evaluated, query_values, without_run
from support.standins import Faults, Standin, serve

from rankbeam import evaluate
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.race import order_of


@pytest.mark.long
def test_what_cannot_be_the_best_is_asked_no_more(tmp_path: Path) -> None:
    with systems(*FIRST) as servers:
        results = evaluated(experiment(tmp_path, servers, **RACE))
        sent = calls(servers)
    assert sent == {"best": QUERIES, "equal": QUERIES, "worse": sent["worse"], "worst": LOOKS[0]}
    assert sent["worse"] in LOOKS
    dropped = {row["name"]: row["dropped_at"] for row in results.configurations}
    assert dropped == {"best": None, "equal": None, "worse": sent["worse"], "worst": LOOKS[0]}
    assert results.run["calls"] == sum(sent.values())
    assert results.run["ledger_hits"] == 0
    assert results.run["failures"] == 0
    ids = {row["name"]: row["config_id"] for row in results.configurations}
    worst = results.means[ids["worst"], "all", "RR"]
    assert (worst.queries, worst.not_asked, worst.failed, worst.missing) == (LOOKS[0], QUERIES - LOOKS[0], 0, 0)
    assert worst.ci_low is not None
    assert worst.may_be_best is False
    assert results.means[ids["best"], "all", "RR"].may_be_best
    paired = {row.config_id: row for row in results.comparisons if row.metric == "RR"}[ids["worst"]]
    assert (paired.queries, paired.unpaired) == (LOOKS[0], QUERIES - LOOKS[0])
    values = query_values(results)["worst"]
    called = {name for name, of_query in values.items() if of_query}
    order = order_of(_ids(values))
    assert called == {name for name, place in zip(values, order, strict=True) if place in sorted(order)[: LOOKS[0]]}
    rows = [row for row in results.table("query_metrics").to_pylist() if row["config_id"] == ids["worst"]]
    assert {row["query_id"] for row in rows if row["status"] == "not_asked"} == set(values) - called
    ranked = [row["query_id"] for row in results.table("rankings").to_pylist() if row["config_id"] == ids["worst"]]
    assert set(ranked) == called
    assert not list((tmp_path / "out").glob("race*"))


def run_files(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Configurations with the rankings of systems in files, which need no call."""
    configurations = []
    for name in names:
        rows = [
            (f"q{query}", document["id"], document["score"])
            for query, documents in enumerate(answers(name).values())
            for document in documents
        ]
        path = write(folder / f"{name}.run", trec_run(rows))
        configurations.append({"name": f"file {name}", "retriever": {"type": "run_file", "path": path}})
    return configurations


def configured(folder: Path, servers: dict[str, Standin], configurations: list[dict[str, Any]], **also: Any) -> str:
    """Write a race of other configurations than one for each server."""
    return experiment(folder, servers, **{**RACE, "configurations": configurations, **also})


def share(path: str) -> str:
    """The share of calls in the plan's line of a race."""
    text = " ".join(rankbeam("plan", path).stdout.split())
    (planned,) = re.findall(r"of 120 queries, so (.+) of the calls above are made", text)
    return str(planned)


def test_a_plan_says_what_a_race_may_save(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        plan = rankbeam("plan", experiment(tmp_path, servers, **RACE))
    assert "race by RR: drops configurations after 30, 60 of 120 queries, so 62% to 100% of the calls" in plan.stdout


@pytest.mark.long
def test_the_log_counts_answers_of_earlier_runs_once_and_those_of_earlier_rounds_never(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        first = rankbeam("evaluate", experiment(tmp_path, servers, **RACE))
        again = rankbeam("evaluate", experiment(tmp_path, servers, **RACE))
    for sent in (QUERIES, LOOKS[0]):
        assert f": {sent}/{sent} calls · 0 retries" in first.stderr
        assert f": 0/0 calls · {sent} more from the ledger" in again.stderr


@pytest.mark.long
def test_a_plan_of_a_race_counts_no_files_and_shared_calls_once(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        url = http(servers["worst"])
        cut = [{"name": f"first {top_k}", "retriever": url, "top_k": top_k} for top_k in (5, 10)]
        assert share(configured(tmp_path, servers, cut)) == "all"
        two = [*run_files(tmp_path, "best"), {"name": "worst", "retriever": url, "top_k": 10}]
        mixed = configured(tmp_path, servers, two)
        assert share(mixed) == "25% to 100%"
        evaluated(mixed)
        assert calls(servers) == {"best": 0, "worst": 0.25 * QUERIES}
        three = [*two, {"name": "best", "retriever": http(servers["best"]), "top_k": 10}]
        assert share(configured(tmp_path, servers, three)) == "14% to 100%"  # 30 of 60 calls, of 210, are made already


@pytest.mark.long
def test_a_plan_of_a_race_counts_all_embeddings(tmp_path: Path) -> None:
    with systems("best", "worst") as servers, serve("openai") as models:
        body = {"query": "{query}", "vector": "{vector}", "size": "{top_k}"}
        configurations = [
            {"name": name, "retriever": http(server, body=body, embedding_model="e"), "top_k": 10}
            for name, server in servers.items()
        ]
        services = {"e": {"type": "openai", "base_url": f"{models.url}/v1", "model": "m"}}
        path = configured(tmp_path, servers, configurations, services=services)
        assert share(path) == "75% to 100%"
        evaluated(path)
        total = sum(calls(servers).values()) + len(models.stats().queries)
    assert total == 0.75 * 3 * QUERIES


@pytest.mark.long
def test_a_plan_of_a_race_counts_answers(tmp_path: Path) -> None:
    documents = {row["id"]: row["text"] for rows in answers("best").values() for row in rows}
    documents |= {row["id"]: row["text"] for rows in answers("worst").values() for row in rows}
    lines = "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in documents.items())
    path = configured(
        tmp_path,
        {},
        [{**row, "generate": {"service": "extractive", "contexts": 3}} for row in run_files(tmp_path, "best", "worst")],
    )
    content = yaml.safe_load(Path(path).read_text("utf-8"))
    content["dataset"]["corpus"] = write(tmp_path / "corpus.jsonl", lines)
    assert share(write_experiment(tmp_path, content)) == "62% to 100%"


def _ids(values: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.array(list(values), pa.string())


@pytest.mark.campaign
def test_parts_of_a_fusion_that_is_left_are_asked_on(tmp_path: Path) -> None:
    fused = {"name": "fused", "retriever": {"type": "fusion", "parts": ["best", "worst"], "method": "rrf"}, "top_k": 10}
    with systems("best", "worst") as servers:
        path = experiment(tmp_path, servers)
        content = yaml.safe_load(Path(path).read_text("utf-8"))
        content["configurations"].append(fused)
        results = evaluated(write_experiment(tmp_path, {**content, **RACE, "race": {**RACE["race"], "looks": [30]}}))
        sent = calls(servers)
    dropped = {row["name"]: row["dropped_at"] for row in results.configurations}
    needed = QUERIES if dropped["fused"] is None else 30
    assert (dropped["best"], dropped["worst"]) == (None, 30)
    assert sent == {"best": QUERIES, "worst": needed}


def without_durations(results: Results) -> list[str]:
    """The rows of the table of usage but for how long calls took."""
    return sorted(re.sub(r'"p(50|95)_s": [0-9.e-]+', "", row) for row in without_run(results.table("usage")))


@pytest.mark.campaign
def test_a_race_that_drops_nothing_changes_no_table(tmp_path: Path) -> None:
    with systems("best", "equal") as servers:
        raced = evaluated(experiment(tmp_path / "raced", servers, **RACE))
        plain = evaluated(experiment(tmp_path / "plain", servers))
    for table in ("configurations", "query_metrics", "configuration_metrics", "comparisons", "rankings"):
        assert without_run(raced.table(table)) == without_run(plain.table(table)), table
    assert without_durations(raced) == without_durations(plain)
    counted = ("calls", "ledger_hits", "failures", "warnings", "state", "dataset_fingerprint")
    assert {name: raced.run[name] for name in counted} == {name: plain.run[name] for name in counted}


@pytest.mark.campaign
def test_killed_in_the_middle_and_run_again_it_makes_no_call_twice(tmp_path: Path) -> None:
    with systems(*FIRST) as servers:
        slow = {"quotas": {"http": {"requests_per_minute": 3000}}}
        path = experiment(tmp_path, servers, **RACE, **slow)

        def begun() -> bool:
            return sum(calls(servers).values()) > 3 * LOOKS[0] + 40

        signalled(["evaluate", path], signal.SIGINT, begun, tmp_path)
        assert not list((tmp_path / "out").glob("race-*"))
        before = sum(calls(servers).values())
        results = evaluated(experiment(tmp_path, servers, **RACE))
        sent = calls(servers)
    assert sent == {"best": QUERIES, "equal": QUERIES, "worse": sent["worse"], "worst": LOOKS[0]}
    assert results.run["calls"] == sum(sent.values()) - before
    assert results.run["ledger_hits"] == before


@pytest.mark.campaign
def test_what_a_killed_race_left_is_deleted_by_the_next_one_and_by_a_prune(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with systems("best", "worst") as servers:
        slow = {"quotas": {"http": {"requests_per_minute": 1500}}}
        path = experiment(tmp_path, servers, **RACE, **slow)

        def begun() -> bool:
            return sum(calls(servers).values()) > 10

        signalled(["evaluate", path], signal.SIGKILL, begun, tmp_path)
        (killed,) = out.glob("race-*")
        owner = json.loads((killed / "owner").read_text())
        running = {**owner, "pid": os.getpid(), "started": process.own_start_time()}
        write(out / "race-running" / "owner", json.dumps(running))
        elsewhere = {**owner, "machine": "another one"}
        write(out / "race-elsewhere" / "owner", json.dumps(elsewhere))
        write(out / "race-old" / "owner", json.dumps({**elsewhere, "at": "2020-01-01T00:00:00+00:00"}))
        assert rankbeam("runs", str(out), "--prune", "--dry-run").stderr.count("would delete") == 2
        pruned = rankbeam("runs", str(out), "--prune")
        assert pruned.stderr.count("which a killed race left") == 2
        left = {"race-running", "race-elsewhere"}
        assert {folder.name for folder in out.glob("race-*")} == left
        write(out / "race-killed" / "owner", json.dumps(owner))
        evaluated(experiment(tmp_path, servers, **RACE))
    assert {folder.name for folder in out.glob("race-*")} == left


@pytest.mark.parametrize(
    ("race", "problem"),
    [
        ({"metric": "P@5"}, "race.metric: P@5 is not one of the metrics"),
        ({"metric": "RR", "looks": [50, 50]}, "must increase from one look to the next"),
        ({"metric": "RR", "alpha": 0.7}, "race.alpha: must be less than 0.5, found 0.7"),
        ({"metric": "RR", "statistics": {"replicates": 0}}, "compares by the bootstrap"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused(race: dict[str, Any], problem: str, tmp_path: Path) -> None:
    also = {"statistics": race.pop("statistics")} if "statistics" in race else {}
    run = write(tmp_path / "a.run", "q0 Q0 d0 1 1.0 a\n")
    path = experiment(tmp_path, {}, race=race, **also)
    content = yaml.safe_load(Path(path).read_text("utf-8"))
    content["configurations"] = [{"name": "a", "retriever": {"type": "run_file", "path": run}}]
    stderr = rankbeam("validate", write_experiment(tmp_path, content)).stderr
    assert problem in stderr


@pytest.mark.campaign
def test_max_cost_holds_for_all_rounds_and_is_compared_with_the_least_that_a_race_makes(tmp_path: Path) -> None:
    quotas = {"shared": {"requests_per_minute": 60_000, "price_per_1000": 1000}}
    with systems("best", "worst") as servers:
        of_one_pool = [
            {"name": name, "retriever": http(server, quota="shared"), "top_k": 10} for name, server in servers.items()
        ]
        prices, least = {"quotas": quotas, "configurations": of_one_pool}, 2 * LOOKS[0]
        refused = rankbeam("evaluate", experiment(tmp_path, servers, **RACE, **prices, max_cost=least - 1))
        assert sum(calls(servers).values()) == 0
        path = experiment(tmp_path, servers, **RACE, **prices, max_cost=100)
        stopped, spent = rankbeam("evaluate", path), calls(servers)
        goes_on = rankbeam("evaluate", path)
        sent = calls(servers)
    assert refused.status == 2
    assert f"the calls are planned to cost {least} to {2 * QUERIES}: no call was made" in refused.stderr
    assert stopped.status == 3
    assert spent == {"best": 70, "worst": LOOKS[0]}
    assert "max_cost: 50 calls of shared were not made" in stopped.stderr
    assert goes_on.status == 0, goes_on.stderr
    assert sent == {"best": QUERIES, "worst": LOOKS[0]}


@pytest.mark.campaign
def test_what_fails_is_never_dropped_and_keeps_no_other_in_the_race(tmp_path: Path) -> None:
    with systems("best", "worst") as servers, serve("http", faults=Faults(rate=1.0, kinds=("invalid",))) as down:
        path = experiment(tmp_path, {**servers, "down": down}, **RACE, max_failure_rate=1.0)
        results, sent = evaluated(path), calls(servers)
    dropped = {row["name"]: row["dropped_at"] for row in results.configurations}
    assert dropped == {"best": None, "worst": LOOKS[0], "down": None}
    assert sent == {"best": QUERIES, "worst": LOOKS[0]}
    (failed,) = (row["config_id"] for row in results.configurations if row["name"] == "down")
    assert results.means[failed, "all", "RR"].failed == QUERIES


def test_a_dataset_that_changes_during_the_race_is_refused(tmp_path: Path) -> None:
    queries = [{"_id": f"q{n}", "text": f"question {n}", "metadata": {"answer": f"shelf {n}."}} for n in range(QUERIES)]
    path = Path(write(tmp_path / "queries.jsonl", "".join(json.dumps(query) + "\n" for query in queries)))

    def wrong(_: str) -> str:
        path.write_text("".join(json.dumps(query) + "\n" for query in queries[:100]))
        return "an empty room"

    content = {
        "name": "changed",
        "dataset": {"queries": str(path), "answers": "answer"},
        "metrics": ["ExactMatch"],
        "race": {"metric": "ExactMatch", "looks": LOOKS},
    }
    systems = {"right": lambda query: f"shelf {query.split()[1]}.", "wrong": wrong}
    with pytest.raises(InputError, match=r"queries\.jsonl: has changed during the race"):
        evaluate(content, output=tmp_path / "out", system=systems)
