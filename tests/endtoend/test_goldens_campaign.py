"""The fault campaign of benchmarks: one call in ten goes wrong, and the run is killed twice.

40 documents take about half a minute of CPU time; RANKBEAM_CAMPAIGN_GOLDENS=300 is the full size:

    RANKBEAM_CAMPAIGN_GOLDENS=300 python -m pytest -m campaign tests/endtoend/test_goldens_campaign.py
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from support.cli import rankbeam_process
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.remote import signalled
from support.standin_models import KEY, service
from support.standins import Faults, Standin, serve

pytestmark = pytest.mark.campaign

DOCUMENTS = int(os.environ.get("RANKBEAM_CAMPAIGN_GOLDENS", "40"))
ITEMS = DOCUMENTS * 5 // 3
PASSING = (
    "quota_info", "quota_hint", "unavailable", "internal", "timeout", "request_timeout", "reset", "partial",
    "bad_gateway",
)  # fmt: skip
"""Without malformed replies: three of them in a row are final, so the benchmark would differ by chance."""
PER_MINUTE = 1_800
"""Calls of the run with faults."""
FINAL = ("safety", "truncated")


def goldens(folder: Path, name: str, server: Standin, per_minute: int = 60_000) -> str:
    return goldens_file(
        folder,
        name,
        documents=corpus(folder, documents(DOCUMENTS)),
        services={"model": service("openai", server)},
        writer="model",
        checker="model",
        items=ITEMS,
        reviews={"pool": 5},
        quotas={"openai": {"requests_per_minute": per_minute, "timeout_s": 5}},
        output=name,
    )


def until_nothing_passes(path: str) -> None:
    """Make the benchmark, again as long as something failed that may pass."""
    for _ in range(4):
        outcome = rankbeam_process("goldens", path, timeout_s=900)
        assert outcome.status in (0, 3), outcome.stderr
        if "run the same command again" not in outcome.stderr:
            return
    raise AssertionError(outcome.stderr)


def test_a_killed_run_with_faults_ends_as_a_clean_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    final = Faults(contents=0.02, content_kinds=FINAL)
    with serve("openai", faults=final) as server:
        port = int(server.address.rpartition(":")[2])
        until_nothing_passes(goldens(tmp_path, "clean", server))
        needed = server.stats()
    every = Faults(rate=0.1, kinds=PASSING, hint_s=0.1, contents=0.02, content_kinds=FINAL)
    with serve("openai", faults=every, latency_s=(0.01, 0.05), port=port) as server:
        path = goldens(tmp_path, "faulty", server, PER_MINUTE)
        for share in (0.25, 0.6):
            is_reached = lambda share=share: server.stats().calls >= share * needed.calls  # noqa: E731
            killed = signalled(["goldens", path], signal.SIGKILL, is_reached, tmp_path, every_s=0.2)
            assert killed.status == -signal.SIGKILL
        until_nothing_passes(path)
        stats = server.stats()
    assert stable(tmp_path / "faulty") == stable(tmp_path / "clean")
    assert len(lines(tmp_path / "faulty" / "items.jsonl")) >= 0.9 * ITEMS
    assert set(stats.faults) >= set(FINAL)
    with capsys.disabled():
        sys.stdout.write(f"{stats.calls:,} calls of {needed.calls:,} needed\n")
    assert stats.calls <= 1.15 * needed.calls, stats.faults
