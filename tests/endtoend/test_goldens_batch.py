"""A benchmark whose questions and checks are written by batch jobs: the same as online, at half the price."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.killing import Step, killed_at
from support.standin_models import KEY, service
from support.standins import Standin, serve

from rankbeam.transforms.clients.ledger import waiting

PRICES = {"price_per_million": {"input": 100.0, "output": 400.0}}


def written(folder: Path, server: Standin, batch: dict[str, Any] | None, **more: Any) -> str:
    """A file of goldens whose model leaves calls to batch jobs."""
    own = {} if batch is None else {"batch": batch}
    return goldens_file(
        folder,
        documents=corpus(folder, documents(24)),
        services={"model": {**service("openai", server), **own}},
        writer="model",
        checker="model",
        items=12,
        reviews={"pool": 4},
        quotas={"openai": {"requests_per_minute": 60_000, **PRICES}},
        **more,
    )


def cost(text: str) -> float:
    """The cost of a benchmark, as the command says it."""
    (amount,) = re.findall(r"cost ([\d.,]+)", text)
    return float(amount.rstrip(".,").replace(",", ""))


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int, float]:
    """The files of a benchmark that is made online, the port of its model, and its cost."""
    folder = tmp_path_factory.mktemp("online")
    with pytest.MonkeyPatch.context() as patch, serve("openai_batches") as server:
        patch.setenv(KEY, "not a secret")
        outcome = rankbeam("goldens", written(folder, server, None))
        assert outcome.status == 0, outcome.stderr
        port = int(server.address.rpartition(":")[2])
    return stable(folder / "out"), port, cost(outcome.stdout)


@pytest.mark.campaign
def test_jobs_write_the_same_benchmark_and_a_second_run_pays_nothing(
    tmp_path: Path, online: tuple[Any, int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai_batches", port=online[1], batch={"shuffled": True}) as server:
        path = written(tmp_path, server, {"min_calls": 2})
        planned = json.loads(rankbeam("goldens", "plan", path, "--format", "json").stdout)
        assert server.stats().calls == 0
        first = rankbeam("goldens", path)
        assert first.status == 0, first.stderr
        stats = server.stats()
        again = rankbeam("goldens", path)
        assert server.stats().calls == stats.calls
    assert stable(tmp_path / "out") == online[0]
    assert "(0 calls, " in again.stdout
    online_calls = sum(not name.startswith(("GET /", "POST /")) for name in stats.queries)
    assert online_calls < 3 < 100 < stats.extra["rows"]  # a step with one call is not left to a job
    assert cost(first.stdout) == pytest.approx(online[2] / 2, rel=0.05)  # cached tokens cost as much as others
    by_call = {call["content_key"]: call for row in lines(tmp_path / "out/costs.jsonl") for call in row["by_call"]}
    assert sum(call["cost"] for call in by_call.values()) == pytest.approx(cost(first.stdout), rel=0.001)
    (pool,) = planned["pools"]
    assert planned["cost"] == pool["batch_cost"]
    assert pool["batch_cost"][0] == pytest.approx(pool["cost"][0] / 2, rel=0.05)
    assert set(stats.extra["answered"].values()) == {1}
    assert not list((tmp_path / "out/ledger/batches").glob("round-*"))


@pytest.mark.campaign
def test_killed_when_a_job_is_made_the_next_run_collects_it(
    tmp_path: Path, online: tuple[Any, int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai_batches", port=online[1]) as server:
        path = written(tmp_path, server, {"min_calls": 2})
        step = Step(waiting, "BatchFolder.save", 2)  # with the id of the first job
        killed = killed_at(step, ["goldens", path], tmp_path)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        listed = json.loads(rankbeam("batch", "list", str(tmp_path / "out/ledger"), "--format", "json").stdout)
        assert [job["state"] for job in listed["jobs"]] == ["made"]
        outcome = rankbeam("goldens", path)
        assert outcome.status == 0, outcome.stderr
        assert set(server.stats().extra["answered"].values()) == {1}
    assert stable(tmp_path / "out") == online[0]
    assert {record.state for record in waiting.BatchFolder(str(tmp_path / "out/ledger")).records()} == {"collected"}


@pytest.mark.long
def test_an_answer_of_a_job_that_its_step_cannot_read_is_called_online(
    tmp_path: Path, online: tuple[Any, int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for the last of three replies, which would reject its question for good."""
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai_batches", port=online[1], batch={"wrong_shape": 2}) as server:
        outcome = rankbeam("goldens", written(tmp_path, server, {"min_calls": 2}))
    assert outcome.status == 0, outcome.stderr
    assert stable(tmp_path / "out") == online[0]
