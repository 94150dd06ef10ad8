"""Damage to a ledger: its answers are paid for again, with a warning."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.remote import answers, dataset, http, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

QUERIES = 40


def experiment(folder: Path, server: Standin) -> str:
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": {"requests_per_minute": 6000}}}
    base["configurations"] = [{"name": "remote", "retriever": http(server), "top_k": 20}]
    return write_experiment(folder, base)


@pytest.mark.campaign
def test_damage_is_said_by_plan_and_evaluate_and_kept_with_the_run(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, server)
        assert "warning" not in rankbeam("evaluate", path, "--run-id", "first").stderr
        (part,) = (tmp_path / "out" / "ledger").glob("*.parquet")
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
        message = f"warning: {part}: answers of earlier calls cannot be read, and are paid for again"
        planned = rankbeam("plan", path, "--format", "json")
        again = rankbeam("evaluate", path, "--run-id", "again")
        assert server.stats().calls == 2 * QUERIES
    assert message in planned.stderr
    assert again.stderr.count(message) == 1
    (warning,) = Results(str(tmp_path / "out"), "again").run["warnings"]
    assert f"warning: {warning}" in again.stderr
    assert "rankbeam ledger" in warning


@pytest.mark.long
def test_flipped_bits_are_said(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, server)
        rankbeam("evaluate", path, "--run-id", "first")
        (part,) = (tmp_path / "out" / "ledger").glob("*.parquet")
        content = bytearray(part.read_bytes())
        content[len(content) // 3] ^= 1
        part.write_bytes(content)
        again = rankbeam("evaluate", path, "--run-id", "again")
        assert server.stats().calls > QUERIES
    assert f"warning: {part}: answers of earlier calls cannot be read" in again.stderr
