"""Twelve corpora, built by a command that is killed five times, against a service with quotas and every kind of fault.

By default it is small, and the quota of the data API wide. At full size, at the documented quota:

    RANKBEAM_CORPORA_DOCUMENTS=3000 RANKBEAM_CORPORA_QUOTA=60 pytest -m campaign tests/endtoend/test_corpora_campaign.py
"""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import rag_corpora as rag
from support.campaigns import sized
from support.cli import rankbeam_process
from support.remote import signalled
from support.standins import Faults, Standin
from support.standins.reception import Stats

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse.duckdb import finished_runs

pytestmark = pytest.mark.campaign

DOCUMENTS = int(os.environ.get("RANKBEAM_CORPORA_DOCUMENTS", sized(200, 40)))
QUOTA = float(os.environ.get("RANKBEAM_CORPORA_QUOTA", "3000"))
GRID = {
    "chunk_size": [12, 16, 20],
    "chunk_overlap": [0, 4],
    "embedding_model": ["text-embedding-004", "text-embedding-005"],
}
MOMENTS: dict[str, Callable[[Stats], bool]] = {
    "corpora are made": lambda stats: stats.extra["created"] > 4,
    "documents are uploaded": lambda stats: stats.extra["uploads"] > 10,
    "imports begin": lambda stats: stats.queries.get("ImportRagFiles", 0) > 1,
    "imports are polled": lambda stats: sum(len(files) == DOCUMENTS for files in stats.extra["imports"].values()) > 2,
    "corpora are complete": lambda stats: (
        sum('"complete": true' in corpus["description"] for corpus in stats.extra["corpora"]) > 6
    ),
}
LOOK_EVERY_S = 0.2 if DOCUMENTS < 1000 else 2.0
FAULTS = Faults(rate=0.06, kinds=("unavailable", "internal", "quota_hint", "reset", "malformed"), hint_s=0.5)


def test_what_is_killed_five_times_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour = {"lost_creates": 2, "lost_imports": 2, "failed_operations": 1, "failing": 0.01, "skipped": 0.01}
    with rag.rag_engine(
        tmp_path, monkeypatch, requests_per_minute=QUOTA, faults=FAULTS, seconds_per_file=0.3 / DOCUMENTS, **behaviour
    ) as server:
        files = rag.dataset(tmp_path, DOCUMENTS)
        corpus = {"keep": "run", "max_import_failures": 0}
        path = rag.experiment(tmp_path, server, files, corpus=corpus, grid=GRID, requests_per_minute=QUOTA)
        for moment, has_come in MOMENTS.items():
            when = partial(_has_come, has_come, server)
            ended = signalled(["evaluate", path], signal.SIGKILL, when, tmp_path, LOOK_EVERY_S, within_s=3600)
            assert ended.status == -signal.SIGKILL, moment
        done = rankbeam_process("evaluate", path, timeout_s=3600)
        stats = server.stats()

    assert done.status == 0, done.stderr
    (run_id,) = finished_runs(str(tmp_path / "out"))
    rows = Results(str(tmp_path / "out"), run_id).table("corpora").to_pylist()
    assert len({row["resource"] for row in rows}) == 12
    assert {(row["files"], row["failed_files"]) for row in rows} == {(DOCUMENTS, 0)}
    imports = stats.extra["imports"]
    assert len(imports) == 12
    assert {len(files) for files in imports.values()} == {DOCUMENTS}
    assert {times for files in imports.values() for times in files.values()} == {1}
    assert stats.violations_per_minute == 0
    assert "over_quota" not in stats.faults
    assert stats.extra["most_imports"] <= 3
    assert stats.extra["most_embeddings"] <= 1400
    assert (stats.extra["corpora"], stats.extra["objects"]) == ([], [])
    assert stats.extra["created"] == stats.extra["deleted"] == 12
    print({name: stats.extra[name] for name in ("uploads", "created", "most_imports", "most_embeddings")})  # noqa: T201  figures
    print(stats.calls, stats.queries, stats.faults, stats.busiest_minute)  # noqa: T201  figures of the campaign


def _has_come(moment: Callable[[Stats], bool], server: Standin) -> bool:
    return moment(server.stats())
