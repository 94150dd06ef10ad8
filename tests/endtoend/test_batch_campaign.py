"""Twenty thousand judgements through batch jobs, with processes killed: equal tables, half the price, nothing twice."""

import signal
from pathlib import Path

import pytest
from support import batches, standin_answers
from support.campaigns import sized
from support.killing import Step, killed_at
from support.standins import serve

from rankbeam.transforms.clients.ledger import waiting
from rankbeam.transforms.clients.models import openai_connection
from rankbeam.transforms.clients.models.batches import make, openai_jobs

QUERIES = sized(5_000, 500)  # four judgements of each
KILLS = {
    "calls written": Step(waiting, "BatchRound.write_pending"),
    "job made, not noted": Step(openai_connection, "OpenAiConnection.object", 3),
    "answers half read": Step(openai_jobs, "object_in", QUERIES // 2, "before"),
    "answers stored, not counted": Step(make, "_JobRecorder.add", moment="before"),
    "answers counted, job open": Step(make, "_JobRecorder.record"),
    "job closed, part kept": Step(waiting, "BatchFolder.delete_part", moment="before"),
    "second job made, not noted": Step(openai_connection, "OpenAiConnection.object", 3),
    "its answers half read": Step(openai_jobs, "object_in", QUERIES // 2, "before"),
    "its answers stored": Step(make, "_JobRecorder.add", moment="before"),
}
"""Steps at which one process after the other is killed."""


@pytest.mark.campaign
def test_judgements_cost_half_and_no_kill_pays_for_one_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    (tmp_path / "data").mkdir()
    dataset = standin_answers.dataset(tmp_path / "data", QUERIES)
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path / "online", server, None, dataset=dataset)
        online = batches.evaluated(path, "r", monkeypatch)
        judgements = len(server.stats().queries) - QUERIES  # those of known items included
        port = int(server.address.rpartition(":")[2])
    folder = tmp_path / "jobs"
    with serve("openai_batches", port=port, batch={"shuffled": True}) as server:
        path = batches.experiment(folder, server, {"min_calls": 200}, dataset=dataset)
        for number, (name, step) in enumerate(KILLS.items()):
            killed = killed_at(step, ["evaluate", path, "--run-id", f"k{number}"], folder, timeout_s=1800)
            assert killed.returncode == -signal.SIGKILL, (name, killed.stderr)
        results = batches.evaluated(path, "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == batches.rows(online)
    assert stats.extra["rows"] == judgements >= 4 * QUERIES
    assert set(stats.extra["answered"].values()) == {1}
    of_answers = {name: number for name, number in stats.queries.items() if not name.startswith(("GET /", "POST /"))}
    again = sum(of_answers.values()) - QUERIES  # in flight at the first kill, before the ledger had them
    assert len(of_answers) == QUERIES
    assert 0 <= again < QUERIES // 4
    full, half = (sum(row["cost"] for row in run.table("judge_quality").to_pylist()) for run in (online, results))
    cached = sum(row["cached_tokens"] for row in online.table("usage").to_pylist())
    assert half == pytest.approx(full / 2), cached
    records = waiting.BatchFolder(str(folder / "out/ledger")).records()
    assert sum(record.answered for record in records) == judgements
