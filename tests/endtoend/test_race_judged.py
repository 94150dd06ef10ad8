"""A race by a judged metric, killed in the middle: judged values decide, and nothing that was kept is asked again."""

import signal
from pathlib import Path

import pytest
import yaml
from support.cli import rankbeam
from support.racing import FIRST, LOOKS, QUERIES, calls, experiment, systems
from support.remote import signalled
from support.runs import without_run
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

METRIC = "ContextRecall@2"
RACE = {"race": {"metric": METRIC, "alpha": 0.1, "looks": LOOKS}}
TABLES = ("configurations", "query_metrics", "configuration_metrics", "comparisons", "rankings", "claims", "verdicts")


def judged(folder: Path, servers: dict[str, Standin]) -> str:
    path = experiment(
        folder,
        servers,
        **RACE,
        metrics=["RR", METRIC],
        services={"words": {"type": "lexical"}},
        judge={"service": "words"},
        quotas={"http": {"requests_per_minute": 3000}},
    )
    content = yaml.safe_load(Path(path).read_text("utf-8"))
    content["dataset"]["answers"] = "answer"
    Path(path).write_text(yaml.safe_dump(content), "utf-8")
    return path


def values(results: Results) -> dict[tuple[str, int], tuple[str, float | None]]:
    names = {row["config_id"]: row["name"] for row in results.configurations}
    return {
        (names[row["config_id"]], int(row["query_id"][1:])): (cell["status"] or row["status"], cell["value"])
        for row in results.table("query_metrics").to_pylist()
        for cell in row["metrics"]
        if cell["metric"].startswith("ContextRecall")
    }


def is_recalled(name: str, query: int) -> float:
    """Return whether one of the first two results agrees with the reference answer."""
    return float(FIRST[name][query % 2] + (query % 7 == 0) <= 2)


def assert_the_worst_is_dropped(results: Results) -> None:
    raced = values(results)
    asked_of_worst = {query for (name, query), cell in raced.items() if name == "worst" and cell[0] != "not_asked"}
    assert len(asked_of_worst) == LOOKS[0]
    for (name, query), cell in raced.items():
        is_asked = name == "best" or query in asked_of_worst
        assert cell == (("ok", is_recalled(name, query)) if is_asked else ("not_asked", None))


@pytest.mark.campaign
def test_judged_values_decide(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        outcome = rankbeam("evaluate", judged(tmp_path, servers), "--run-id", "r")
        assert calls(servers) == {"best": QUERIES, "worst": LOOKS[0]}
    assert outcome.status == 0, outcome.stderr
    assert_the_worst_is_dropped(Results(str(tmp_path / "out"), "r"))


@pytest.mark.campaign
def test_max_cost_is_lowered_once_by_what_earlier_rounds_retrieved(tmp_path: Path) -> None:
    """Calls to retrieve cost 1, and those of the judge less than 0.001."""
    with systems("best", "worst") as servers, serve("openai") as server:
        path = judged(tmp_path, servers)
        content = yaml.safe_load(Path(path).read_text("utf-8"))
        content["services"] = {"words": {"type": "openai", "base_url": f"{server.url}/v1", "model": "m"}}
        content["quotas"] = {
            "http": {"requests_per_minute": 60_000, "price_per_1000": 1000},
            "words": {"requests_per_minute": 60_000, "price_per_million": {"input": 0.1, "output": 0.1}},
        }
        content["max_cost"] = QUERIES + LOOKS[0] + 10
        Path(path).write_text(yaml.safe_dump(content), "utf-8")
        outcome = rankbeam("evaluate", path, "--run-id", "r")
    assert "max_cost" not in outcome.stderr
    assert 150 < sum(row["cost"] for row in Results(str(tmp_path / "out"), "r").table("usage").to_pylist()) < 160


@pytest.mark.campaign
def test_killed_in_the_middle_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    first = 2 * LOOKS[0]
    with systems("best", "worst") as servers:
        path = judged(tmp_path / "killed", servers)
        evaluate, second_round = ["evaluate", path, "--run-id", "k"], lambda: sum(calls(servers).values()) > first + 5
        signalled(evaluate, signal.SIGKILL, second_round, tmp_path)
        before = sum(calls(servers).values())
        again = rankbeam("evaluate", path, "--run-id", "r")
        counts = [number for server in servers.values() for number in server.stats().queries.values()]
        earlier = calls(servers)
        whole = rankbeam("evaluate", judged(tmp_path / "whole", servers), "--run-id", "r")
        needed = {name: count - earlier[name] for name, count in calls(servers).items()}

    assert (whole.status, again.status) == (0, 0), whole.stderr + again.stderr
    assert needed == {"best": QUERIES, "worst": LOOKS[0]}
    expected, ended = (Results(str(tmp_path / name / "out"), "r") for name in ("whole", "killed"))
    for table in TABLES:
        assert without_run(ended.table(table)) == without_run(expected.table(table)), table
    assert_the_worst_is_dropped(ended)
    assert len(counts) == sum(needed.values())
    assert sum(counts) - len(counts) <= before - first  # what was answered in the round that was killed
    assert ended.run["calls"] + ended.run["ledger_hits"] == expected.run["calls"] + expected.run["ledger_hits"]
