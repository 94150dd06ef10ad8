"""One definition of costs: answers and judgements cost what their attempts do, as the table `usage` counts them."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.inputs import write
from support.json_server import responding
from support.runs import evaluated
from support.standin_answers import model, write_experiment
from support.standins import Faults, serve

from rankbeam.pipelines.results.run import Results

CALL_PRICE = {"price_per_1000": 3.0}
TOKEN_PRICE = {"price_per_million": {"input": 100.0, "output": 4.0}}
PRICES = [CALL_PRICE, TOKEN_PRICE, {**CALL_PRICE, **TOKEN_PRICE}]
QUOTA = {"requests_per_minute": 60_000, "attempts": 3}
ENDINGS = ("ok after 1", "ok after 3", "empty after 1", "lost after 3", "down after 3")
"""Queries by how their answer ends after how many attempts; the second of the last two reports no tokens."""


def of_usage(results: Results, pool: str) -> tuple[float, float]:
    """The cost of a pool's calls by `usage`, of those that this run made and of those that the ledger answered."""
    rows = [row for row in results.table("usage").to_pylist() if row["pool"] == pool]
    return sum(row["cost"] for row in rows), sum(part["cost"] for row in rows for part in row["from_ledger"])


def total(results: Results, table: str) -> float:
    return sum(row["cost"] for row in results.table(table).to_pylist())


def application(folder: Path, url: str, texts: Sequence[str], usage: dict[str, str], price: dict[str, Any]) -> Path:
    queries = [{"_id": text, "text": text, "metadata": {"answer": "Owners pay."}} for text in texts]
    write(folder / "queries.jsonl", "".join(f"{json.dumps(query)}\n" for query in queries))
    answers = {"type": "http", "url": url, "version": "1", "body": {"query": "{query}"}, "answer": "text"}
    experiment = {
        "name": "e", "dataset": {"queries": "queries.jsonl", "answers": "answer"}, "output": {"path": "out"},
        "configurations": [{"name": "app", "answers": answers | ({"usage": usage} if usage else {})}],
        "metrics": ["ExactMatch"], "quotas": {"http": {**QUOTA, **price}}, "max_failure_rate": 1.0,
    }  # fmt: skip
    return write(folder / "e.yaml", yaml.safe_dump(experiment))


@pytest.mark.long
@pytest.mark.parametrize("price", PRICES)
def test_answers_and_judgements_of_models_cost_their_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, price: dict[str, Any]
) -> None:
    """Some attempts fail, some answers are blocked, some report no tokens, and the ledger answers the second run."""
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    faults = Faults(rate=0.3, kinds=("unavailable", "broken_json", "no_usage"), contents=0.2)
    with serve("openai", faults=faults) as server:
        services = {"m": model(server, "openai"), "j": model(server, "openai", model="m-002")}
        parts = {"services": services, "quotas": {name: {**QUOTA, **price} for name in services}}
        judge = {"service": "j", "repeat_share": 0.5}
        path = write_experiment(tmp_path, {}, {}, **parts, judge=judge, max_failure_rate=1.0)
        first, second = evaluated(path, "first"), evaluated(path, "second")
        stats = server.stats()
    assert first.run["calls"] + second.run["calls"] == stats.calls > stats.answered
    assert {row["status"] for row in first.table("answers").to_pylist()} >= {"ok", "blocked"}
    (paid, _), (again, recalled) = of_usage(first, "m"), of_usage(second, "m")
    assert total(first, "answers") == pytest.approx(paid)
    assert total(second, "answers") == pytest.approx(recalled + again)
    assert total(first, "judge_quality") == pytest.approx(of_usage(first, "j")[0])
    if second.run["calls"] == 0:
        assert total(second, "judge_quality") == pytest.approx(total(first, "judge_quality"))
        assert recalled == pytest.approx(paid)


@pytest.mark.long
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("are_reported", [True, False])
def test_answers_of_applications_cost_their_attempts(
    tmp_path: Path, price: dict[str, Any], *, are_reported: bool
) -> None:
    attempts: Counter[str] = Counter()

    def respond(query: str) -> tuple[int, bytes]:
        attempts[query] += 1
        ending, needed = query.split()[0], int(query.split()[-1])
        if ending == "down" or (ending == "ok" and attempts[query] < needed):
            return 503, b"{}"
        answer = {"ok": {"text": "Owners pay."}, "empty": {"text": " "}, "lost": {}}[ending]
        return 200, json.dumps({**answer, "usage": {"in": 90, "out": 8}}).encode()

    usage = {"input": "usage.in", "output": "usage.out"} if are_reported else {}
    with responding(respond) as (url, _):
        path = application(tmp_path, url, ENDINGS, usage, price)
        first = evaluated(path, "first")
        requests = dict(attempts)
        second = evaluated(path, "second")
    assert requests == {text: int(text[-1]) for text in ENDINGS}
    prices = {"input": 0.0, "output": 0.0} | price.get("price_per_million", {})
    for results in (first, second):
        for row in results.table("answers").to_pylist():
            ending, needed = row["query_id"].split()[0], int(row["query_id"][-1])
            replies = {"ok": 1, "empty": 1, "lost": 3, "down": 0}[ending] * are_reported
            cost = needed * price.get("price_per_1000", 0.0) / 1000
            cost += replies * (90 * prices["input"] + 8 * prices["output"]) / 1e6
            is_known = replies or "price_per_million" not in price
            assert row["cost"] == (pytest.approx(cost) if is_known else None), row
    if are_reported and "price_per_million" not in price:
        assert total(first, "answers") == pytest.approx(of_usage(first, "http")[0])


def test_a_usage_that_is_completed_later_counts_the_tokens_of_stored_answers(tmp_path: Path) -> None:
    body = json.dumps({"text": "Owners pay.", "usage": {"in": 90, "out": 8}}).encode()
    with responding(lambda _: (200, body)) as (url, _):
        for usage in ({"input": "usage.in"}, {"input": "usage.in", "output": "usage.out"}):
            results = evaluated(application(tmp_path, url, ["who?"], usage, TOKEN_PRICE), "out")
    (row,) = results.table("answers").to_pylist()
    assert (results.run["calls"], row["output_tokens"], row["cost"]) == (0, 8, pytest.approx(9032e-6))
