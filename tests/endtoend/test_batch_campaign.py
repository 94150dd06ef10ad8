"""Twenty thousand judgements through batch jobs, with kills: equal tables, half the price, nothing twice."""

import os
from pathlib import Path
from typing import Any

import pytest
from support import answering, batches
from support.standins import serve

from rankbeam.transforms.clients.ledger.batches import BatchFolder

QUERIES = int(os.environ.get("RANKBEAM_BATCH_QUERIES", "5000"))  # four judgements of each
KILLS = (2, 5, 9)  # writes of jobs' files at which the run is killed, one kill a run


class Killed(BaseException):
    """A kill: only handlers that always run see it."""


@pytest.mark.campaign
def test_judgements_cost_half_and_no_kill_pays_for_one_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    (tmp_path / "data").mkdir()
    dataset = answering.dataset(tmp_path / "data", QUERIES)
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path / "online", server, None, dataset=dataset)
        online = batches.evaluated(path, "r", monkeypatch)
        judgements = len(server.stats().queries) - QUERIES  # those of known items included
        port = int(server.address.rpartition(":")[2])
    with serve("openai_batches", port=port, batch={"polls": 2, "shuffled": True}) as server:
        path = batches.experiment(tmp_path / "jobs", server, {"min_calls": 200}, dataset=dataset)
        for step in KILLS:
            _killed(path, step, monkeypatch)
        results = batches.evaluated(path, "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == batches.rows(online)
    assert stats.extra["rows"] == judgements >= 4 * QUERIES
    assert set(stats.extra["answered"].values()) == {1}
    of_answers = [number for name, number in stats.queries.items() if not name.startswith(("GET /", "POST /"))]
    assert (len(of_answers), set(of_answers)) == (QUERIES, {1})
    full, half = (sum(row["cost"] for row in run.table("judge_quality").to_pylist()) for run in (online, results))
    cached = sum(row["cached_tokens"] for row in online.table("usage").to_pylist())
    assert half == pytest.approx(full / 2), cached
    records = BatchFolder(str(tmp_path / "jobs/out/ledger")).records()
    assert sum(record.answered for record in records) == judgements


def _killed(path: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until a file of jobs is written for that time, and kill the run there."""
    written, save, save_part = 0, BatchFolder.save, BatchFolder.save_part

    def counted(self: BatchFolder, *parts: Any) -> None:
        nonlocal written
        written += 1
        if written == step:
            raise Killed
        (save if len(parts) == 1 else save_part)(self, *parts)

    with monkeypatch.context() as patch:
        patch.setattr(BatchFolder, "save", counted)
        patch.setattr(BatchFolder, "save_part", counted)
        try:
            batches.evaluated(path, f"k{step}", monkeypatch)
        except Killed:
            return
