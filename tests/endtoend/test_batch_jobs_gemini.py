"""Judgements through batch jobs of Gemini, on both of its services: equal tables, and the same faults as of others."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support import batches
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.killing import Step, killed_at
from support.standins import serve
from support.standins.vertex_batches import BUCKET

from rankbeam.transforms.clients.ledger import waiting
from rankbeam.transforms.records.errors import InputError

MIN = {"min_calls": 5}
KINDS = {"gemini": MIN, "vertex": {**MIN, "staging": f"gs://{BUCKET}/jobs"}}
QUERIES, CLAIMS, SUPPORTS = 12, 12, 36


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tables of runs without batch jobs."""
    tables = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        with pytest.MonkeyPatch.context() as patch, batches.served(kind, folder, patch) as server:
            patch.setenv("RANKBEAM_TEST_KEY", "k")
            path = batches.experiment(folder, server, None, kind)
            tables[kind] = batches.rows(batches.evaluated(path, "r", patch))
    return tables


WAYLAID = {"shuffled": True, "name_page": 7, "create": ["lost"]}
EXPIRED = {"state": "expired", "answered": 0.25}
FAULTS: list[tuple[dict[str, Any], int, str]] = [
    (WAYLAID, CLAIMS + SUPPORTS, ""),
    (EXPIRED, (CLAIMS + SUPPORTS) // 4, "no answer"),
    ({"foreign": 1}, 0, "of its answers"),
    ({"swapped": 1}, 0, "too many of its answers"),
    ({"duplicated": 2}, 44, "several answers to one request"),
    ({"failed": 1.0}, 0, "the request failed"),
    ({"state": "failed"}, 0, "no answer"),
    ({"half_line": True}, 46, "a row that cannot be read"),
    ({"wrong_shape": 3}, 42, "the answer cannot be used"),
    ({"create": ["quota", "unavailable"]}, 48, ""),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "faults", "answered", "words"),
    [
        ("gemini", WAYLAID, CLAIMS + SUPPORTS, ""),
        ("vertex", WAYLAID | EXPIRED, (CLAIMS + SUPPORTS) // 4, "no answer"),
        *in_campaigns(*(("gemini", *fault) for fault in FAULTS[1:]), *(("vertex", *fault) for fault in FAULTS)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_whatever_goes_wrong_no_value_is_wrong_and_nothing_is_paid_twice(
    kind: str,
    faults: dict[str, Any],
    answered: int,
    words: str,
    tmp_path: Path,
    online: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with batches.served(kind, tmp_path, monkeypatch, batch={"polls": 2, **faults}) as server:
        results = batches.evaluated(batches.experiment(tmp_path, server, KINDS[kind], kind), "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == online[kind]
    records = waiting.BatchFolder(str(tmp_path / "out/ledger")).records()
    assert sum(record.answered for record in records) == answered
    assert stats.extra["jobs"] == 2
    of_calls = [number for name, number in stats.queries.items() if not name.startswith(("GET /", "POST /"))]
    assert len(of_calls) == QUERIES + CLAIMS + SUPPORTS - answered
    assert set(of_calls) == {1}
    warnings = " ".join(results.run["warnings"])
    assert words in warnings
    assert ("batch job" in warnings) == bool(words)


@pytest.mark.parametrize(
    ("kind", "settings", "problem"),
    [
        (
            "vertex",
            MIN,
            "services.m.batch: jobs of Vertex AI read and write files in Cloud Storage: add staging: gs://",
        ),
        ("gemini", KINDS["vertex"], "services.m.batch: staging is for Gemini on Vertex AI only; take it out"),
        ("vertex", {**MIN, "staging": "out/jobs"}, "services.m.batch.staging"),
    ],
)
def test_files_of_jobs_are_in_cloud_storage_where_the_service_needs_it(
    kind: str, settings: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with serve("gemini_batches") as server:
        outcome = rankbeam("validate", batches.experiment(tmp_path, server, settings, kind))
    assert outcome.status == 2
    assert problem in outcome.stderr


def test_a_bucket_that_cannot_be_written_ends_the_run_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**MIN, "staging": "gs://no-such-bucket/jobs", "answers": True}
    with batches.served("vertex", tmp_path, monkeypatch) as server:
        path = batches.experiment(tmp_path, server, settings, "vertex")
        with pytest.raises(InputError, match=r"no-such-bucket"):
            batches.evaluated(path, "r", monkeypatch)
        assert server.stats().extra["jobs"] == 0


@pytest.mark.campaign
def test_samples_of_one_request_are_matched_by_what_the_rows_repeat(
    tmp_path: Path, online: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with batches.served("vertex", tmp_path, monkeypatch, batch={"shuffled": True}) as server:
        path = batches.experiment(tmp_path, server, {**KINDS["vertex"], "answers": True}, "vertex")
        results = batches.evaluated(path, "r", monkeypatch)
        assert server.stats().extra["jobs"] == 3
        assert len([name for name in server.stats().queries if not name.startswith(("GET /", "POST /"))]) == 0
    assert batches.rows(results) == online["vertex"]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["vertex", pytest.param("gemini", marks=pytest.mark.campaign)])
def test_jobs_are_listed_cancelled_and_collected_by_the_command(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with batches.served(kind, tmp_path, monkeypatch, batch={"polls": 99}) as server:
        path = batches.experiment(tmp_path, server, KINDS[kind], kind)
        step = Step(waiting, "BatchFolder.save", 2)
        assert killed_at(step, ["evaluate", path], tmp_path).returncode == -signal.SIGKILL
        out = str(tmp_path / "out")
        (job,) = json.loads(rankbeam("batch", "list", out, "--format", "json").stdout)["jobs"]
        assert (job["calls"], job["state"], job["step"]) == (CLAIMS, "made", "claims")
        assert rankbeam("batch", "collect", out).stdout == "1 batch job left open\n"
        assert rankbeam("batch", "cancel", out).stdout == f"cancelled {job['name']}\n"
        collected = rankbeam("batch", "collect", out)
        assert collected.stdout == "no batch job is open\n", collected.stderr
        assert "12 of 12 calls are answered" in collected.stderr
