"""Processes that wait for batch jobs and are killed: the next run ends with equal tables, and nothing is paid twice."""

import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import batches
from support.killing import Step, killed_at
from support.standins import serve

from rankbeam.transforms.clients.ledger import waiting
from rankbeam.transforms.clients.models import openai_connection
from rankbeam.transforms.clients.models.batches import gemini_jobs, make, openai_jobs

QUERIES, CLAIMS, SUPPORTS = 12, 12, 36
STANDINS = {"openai": "openai_batches", "gemini": "gemini_batches"}

# list of jobs, upload, creation, state: the requests of a job, in order
_REQUESTS = {
    "openai": (openai_connection, "OpenAiConnection.object"),
    "gemini": (gemini_jobs, "GeminiJobs._result"),
}
_JOBS = {"openai": openai_jobs, "gemini": gemini_jobs}

STEPS = {
    "waiting": Step(waiting, "BatchRound.write_pending"),
    "decided": Step(waiting, "BatchRound.decide", moment="before"),
    "part": Step(waiting, "BatchFolder.save_part"),
    "record": Step(waiting, "BatchFolder.save"),
    "stored": Step(make, "_JobRecorder.add", moment="before"),
    "counted": Step(make, "_JobRecorder.record"),
    "closed": Step(waiting, "BatchFolder.delete_part", moment="before"),
}


def steps_of(kind: str) -> dict[str, Step]:
    """Steps at a service."""
    every = [Step(*_REQUESTS[kind], number) for number in range(1, 5)]
    named = dict(zip(("listed", "uploaded", "created", "polled"), every, strict=True))
    second = Step(*_REQUESTS[kind], 8 if kind == "gemini" else 7)
    return {**named, "downloading": Step(_JOBS[kind], "object_in", 5, "before"), "second": second, **STEPS}


CASES = [(kind, step) for kind in STANDINS for step in steps_of(kind)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, int]]:
    """The tables of a run of one kind without batch jobs, and its port; each kind is run once."""

    @cache
    def tables(kind: str) -> tuple[Any, int]:
        with pytest.MonkeyPatch.context() as patch, serve(STANDINS[kind]) as server:
            patch.setenv("RANKBEAM_TEST_KEY", "k")
            path = batches.experiment(tmp_path_factory.mktemp(kind), server, None, kind)
            rows = batches.rows(batches.evaluated(path, "r", patch))
            return rows, int(server.address.rpartition(":")[2])  # the address may be part of the identity

    return tables


@pytest.mark.campaign
@pytest.mark.parametrize(("kind", "step"), CASES)
def test_after_a_kill_the_next_run_pays_for_nothing_twice(
    kind: str, step: str, tmp_path: Path, online: Callable[[str], tuple[Any, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out/ledger/batches"
    tables, port = online(kind)
    with serve(STANDINS[kind], port=port, batch={"shuffled": True}) as server:
        path = batches.experiment(tmp_path, server, {"min_calls": 5}, kind)
        killed = killed_at(steps_of(kind)[step], ["evaluate", path, "--run-id", "k"], tmp_path)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(list(folder.glob("round-*"))) == 1
        results = batches.evaluated(path, "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == tables
    assert (stats.extra["jobs"], stats.extra["rows"]) == (2, CLAIMS + SUPPORTS)
    assert set(stats.extra["answered"].values()) == {1}
    online_calls = [number for name, number in stats.queries.items() if not name.startswith(("GET /", "POST /"))]
    assert len(online_calls) == QUERIES
    assert set(online_calls) == {1} or step == "waiting"  # lanes had answers that were not in the ledger yet
    records = waiting.BatchFolder(str(tmp_path / "out/ledger")).records()
    assert [record.state for record in records] == ["collected", "collected"]
    assert {file.name.partition("-")[0] for file in folder.iterdir()} == {"job"}
