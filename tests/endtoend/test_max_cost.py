"""`max_cost`, through the command line: what is refused before a run, what is not made during one, and what goes on."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import goldens_file
from support.remote import answers, dataset, failure_rows, http
from support.remote import write_experiment as write_retrieving
from support.standin_answers import cost, model, write_experiment
from support.standins import Faults, serve

from rankbeam.pipelines.results.run import Results

PRICES = {"price_per_million": {"input": 100.0, "output": 4.0}}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def values(folder: Path, run_id: str) -> list[Any]:
    """The mean of every metric."""
    rows = Results(str(folder / "out"), run_id).table("configuration_metrics").to_pylist()
    return sorted((row["metric"], row["slice"], row["mean"]) for row in rows)


def test_a_run_that_costs_more_at_the_least_is_refused_before_any_call(tmp_path: Path) -> None:
    with serve("openai") as server:
        path = write_experiment(tmp_path, model(server, "openai"), PRICES, max_cost=0.01)
        outcome = rankbeam("evaluate", path)
        assert server.stats().calls == 0
    assert outcome.status == 2
    line = Path(path).read_text().splitlines().index("max_cost: 0.01") + 1
    message = r"experiment\.yaml:(\d+): max_cost: is 0\.01, and the calls are planned to cost ([\d.]+) to \d"
    match = re.search(message, outcome.stderr)
    assert match is not None, outcome.stderr
    assert int(match[1]) == line
    assert float(match[2]) > 0.01


@pytest.mark.campaign
def test_a_run_stays_below_its_limit_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with serve("openai") as clean:
        path = write_experiment(tmp_path / "free", model(clean, "openai"), PRICES)
        assert rankbeam("evaluate", path, "--run-id", "r1").status == 0
    whole, expected = cost(tmp_path / "free", "r1"), values(tmp_path / "free", "r1")
    limit = 0.99 * whole
    with serve("openai", latency_s=0.01, faults=Faults(rate=0.1, kinds=("unavailable",))) as server:
        path = write_experiment(tmp_path, model(server, "openai"), {**PRICES, "concurrent_calls": 4}, max_cost=limit)
        first = rankbeam("evaluate", path, "--run-id", "r1")
        second = rankbeam("evaluate", path, "--run-id", "r2")
        stats = server.stats()
    assert first.status == 3, first.stderr
    assert re.search(r"max_cost: \d+ calls? of m (was|were) not made", first.stderr.splitlines()[-1])
    assert 0.9 * limit < cost(tmp_path, "r1") <= limit
    assert "over_budget" in {row["kind"] for row in failure_rows(tmp_path / "out", "r1")}
    assert Results(str(tmp_path / "out"), "r1").run["state"] == "missed"
    assert second.status == 0, second.stderr
    assert values(tmp_path, "r2") == expected
    assert stats.answered == len(stats.queries)  # nothing was paid for twice
    assert cost(tmp_path, "r1") + cost(tmp_path, "r2") == pytest.approx(whole)


@pytest.mark.campaign
def test_what_retrieving_costs_is_limited_too(tmp_path: Path) -> None:
    queries = 40
    with serve("http", answers=answers(queries), faults=Faults(first=10, kinds=("unavailable",))) as server:
        experiment = {
            "dataset": dataset(tmp_path, queries),
            "quotas": {"http": {"requests_per_minute": 6000, "price_per_1000": 1000}},
            "configurations": [{"name": "http", "retriever": http(server), "top_k": 20}],
            "max_cost": queries,
        }
        path = write_retrieving(tmp_path, experiment)
        first = rankbeam("evaluate", path, "--run-id", "r1")
        assert server.stats().calls == queries  # attempts that failed had their price, too
        second = rankbeam("evaluate", path, "--run-id", "r2")
    assert first.status == 3
    assert "max_cost: 10 calls of http were not made" in first.stderr
    assert second.status == 0
    assert "cost    10 (10 calls)" in second.stdout


@pytest.mark.long
def test_a_benchmark_that_the_ledger_answers_is_made_again_at_any_limit(tmp_path: Path) -> None:
    with serve("openai") as server:
        model_of_all = {"services": {"m": model(server, "openai")}, "writer": "m", "checker": "m", "items": 3}
        quotas = {"m": {"requests_per_minute": 60_000, **PRICES}}
        first = rankbeam("goldens", goldens_file(tmp_path, **model_of_all, quotas=quotas))
        calls = server.stats().calls
        again = rankbeam("goldens", goldens_file(tmp_path, **model_of_all, quotas=quotas, max_cost=1e-9))
        assert server.stats().calls == calls > 0
    assert (first.status, again.status) == (0, 0), again.stderr
