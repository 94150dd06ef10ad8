"""A race against stand-ins: what it asks, what it drops, and what its tables say of it."""

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import trec_qrels, write
from support.remote import http, signalled, write_experiment
from support.runs import query_values, without_run
from support.standins import Standin, serve

from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.race import order_of

QUERIES, LOOKS = 120, [30, 60]
FIRST = {"best": (1, 2), "equal": (2, 1), "worse": (2, 3), "worst": (6, 9)}
"""For each system the ranks of the relevant document, at even and at odd queries."""


def answers(name: str) -> dict[str, list[dict[str, Any]]]:
    said = {}
    for query in range(QUERIES):
        rank = FIRST[name][query % 2] + (query % 7 == 0)
        ids = [f"d{query}" if place == rank else f"x{query}-{place}" for place in range(1, 12)]
        said[f"question {query}"] = [
            {"id": doc_id, "score": 20.0 - place, "text": "t"} for place, doc_id in enumerate(ids)
        ]
    return said


@contextlib.contextmanager
def systems(*names: str) -> Iterator[dict[str, Standin]]:
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(serve("http", answers=answers(name))) for name in names}


def experiment(folder: Path, servers: dict[str, Standin], **also: Any) -> str:
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"_id": f"q{query}", "text": f"question {query}"}) + "\n" for query in range(QUERIES)]
    judged = [(f"q{query}", f"d{query}", 1.0) for query in range(QUERIES)]
    given = {
        "dataset": {
            "queries": write(folder / "queries.jsonl", "".join(rows)),
            "qrels": write(folder / "qrels", trec_qrels(judged)),
        },
        "configurations": [{"name": name, "retriever": http(server), "top_k": 10} for name, server in servers.items()],
        "metrics": ["RR", "nDCG@10"],
        "quotas": {"http": {"requests_per_minute": 60_000}},
        **also,
    }
    return write_experiment(folder, given)


RACE = {"race": {"metric": "MRR", "alpha": 0.1, "looks": LOOKS}}


def evaluated(path: str, *options: str) -> Results:
    outcome = rankbeam("evaluate", path, *options)
    assert outcome.status == 0, outcome.stderr
    return find_run(str(Path(path).parent / "out"))


def test_what_cannot_be_the_best_is_asked_no_more(tmp_path: Path) -> None:
    with systems(*FIRST) as servers:
        results = evaluated(experiment(tmp_path, servers, **RACE))
        calls = {name: server.stats().calls for name, server in servers.items()}
    assert calls == {"best": QUERIES, "equal": QUERIES, "worse": calls["worse"], "worst": LOOKS[0]}
    assert calls["worse"] in LOOKS
    dropped = {row["name"]: row["dropped_at"] for row in results.configurations}
    assert dropped == {"best": None, "equal": None, "worse": calls["worse"], "worst": LOOKS[0]}
    assert results.run["calls"] == sum(calls.values())
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
    asked = {name for name, of_query in values.items() if of_query}
    order = order_of(_ids(values))
    assert asked == {name for name, place in zip(values, order, strict=True) if place in sorted(order)[: LOOKS[0]]}
    rows = [row for row in results.table("query_metrics").to_pylist() if row["config_id"] == ids["worst"]]
    assert {row["query_id"] for row in rows if row["status"] == "not_asked"} == set(values) - asked
    ranked = [row["query_id"] for row in results.table("rankings").to_pylist() if row["config_id"] == ids["worst"]]
    assert set(ranked) == asked
    assert not list((tmp_path / "out").glob("race*"))


def test_a_plan_says_what_a_race_may_save(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        plan = rankbeam("plan", experiment(tmp_path, servers, **RACE))
    assert "race by RR: drops configurations after 30, 60 of 120 queries, so 62% to 100% of the calls" in plan.stdout


def _ids(values: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.array(list(values), pa.string())


def test_parts_of_a_fusion_that_is_left_are_asked_on(tmp_path: Path) -> None:
    fused = {"name": "fused", "retriever": {"type": "fusion", "parts": ["best", "worst"], "method": "rrf"}, "top_k": 10}
    with systems("best", "worst") as servers:
        path = experiment(tmp_path, servers)
        given = yaml.safe_load(Path(path).read_text("utf-8"))
        given["configurations"].append(fused)
        results = evaluated(write_experiment(tmp_path, {**given, **RACE, "race": {**RACE["race"], "looks": [30]}}))
        calls = {name: server.stats().calls for name, server in servers.items()}
    dropped = {row["name"]: row["dropped_at"] for row in results.configurations}
    needed = QUERIES if dropped["fused"] is None else 30
    assert (dropped["best"], dropped["worst"]) == (None, 30)
    assert calls == {"best": QUERIES, "worst": needed}


def test_a_race_that_drops_nothing_changes_no_table(tmp_path: Path) -> None:
    with systems("best", "equal") as servers:
        raced = evaluated(experiment(tmp_path / "raced", servers, **RACE))
        plain = evaluated(experiment(tmp_path / "plain", servers))
    for table in ("configurations", "query_metrics", "configuration_metrics", "comparisons", "rankings", "usage"):
        assert without_run(raced.table(table)) == without_run(plain.table(table)), table
    counted = ("calls", "ledger_hits", "failures", "warnings", "state", "dataset_fingerprint")
    assert {name: raced.run[name] for name in counted} == {name: plain.run[name] for name in counted}


def test_killed_in_the_middle_and_run_again_it_makes_no_call_twice(tmp_path: Path) -> None:
    with systems(*FIRST) as servers:
        slow = {"quotas": {"http": {"requests_per_minute": 3000}}}
        path = experiment(tmp_path, servers, **RACE, **slow)

        def begun() -> bool:
            return sum(server.stats().calls for server in servers.values()) > 3 * LOOKS[0] + 40

        signalled(["evaluate", path], signal.SIGINT, begun, tmp_path)
        before = sum(server.stats().calls for server in servers.values())
        results = evaluated(experiment(tmp_path, servers, **RACE))
        calls = {name: server.stats().calls for name, server in servers.items()}
    assert calls == {"best": QUERIES, "equal": QUERIES, "worse": calls["worse"], "worst": LOOKS[0]}
    assert results.run["calls"] == sum(calls.values()) - before
    assert results.run["ledger_hits"] == before


@pytest.mark.parametrize(
    ("race", "problem"),
    [
        ({"metric": "P@5"}, "race.metric: P@5 is not one of the metrics"),
        ({"metric": "RR", "looks": [50, 50]}, "must rise from one look to the next"),
        ({"metric": "RR", "alpha": 0.7}, "race.alpha: input should be less than 0.5, found 0.7"),
        ({"metric": "RR", "statistics": {"replicates": 0}}, "compares by the bootstrap"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused(race: dict[str, Any], problem: str, tmp_path: Path) -> None:
    also = {"statistics": race.pop("statistics")} if "statistics" in race else {}
    run = write(tmp_path / "a.run", "q0 Q0 d0 1 1.0 a\n")
    path = experiment(tmp_path, {}, race=race, **also)
    given = yaml.safe_load(Path(path).read_text("utf-8"))
    given["configurations"] = [{"name": "a", "retriever": {"type": "run_file", "path": run}}]
    stderr = rankbeam("validate", write_experiment(tmp_path, given)).stderr
    assert problem in stderr
