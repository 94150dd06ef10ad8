"""Folders of a user: one ledger and one folder of leases for all runs, and results that only their owner may read."""

from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.remote import answers, dataset, http, write_experiment
from support.standins import Standin, serve

QUERIES = 4


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("RANKBEAM_LEDGER", raising=False)
    return tmp_path / "data" / "rankbeam"


def experiment(folder: Path, server: Standin, **output: Any) -> str:
    folder.mkdir(exist_ok=True)
    base = {
        "dataset": dataset(folder, QUERIES),
        "quotas": {"http": {"requests_per_minute": 60_000}},
        "configurations": [{"name": "remote", "retriever": http(server), "top_k": 20}],
        "output": {"path": "out", **output},
    }
    return write_experiment(folder, base)


def modes(folder: Path) -> set[tuple[bool, int]]:
    return {(each.is_dir(), each.stat().st_mode & 0o777) for each in (folder, *folder.rglob("*"))}


@pytest.mark.xfail(strict=True, reason="issue 24, points 20 and 27")
def test_a_ledger_of_the_user_serves_all_outputs_and_reads_their_own_first(tmp_path: Path, home: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        before = experiment(tmp_path / "a", server)
        assert rankbeam("evaluate", before).status == 0
        assert server.stats().calls == QUERIES
        shared = experiment(tmp_path / "a", server, ledger="user")
        planned = rankbeam("plan", shared)
        assert f"{QUERIES} of {QUERIES} are in the ledger" in planned.stdout
        assert rankbeam("evaluate", shared).status == 0  # from out/ledger
        other = experiment(tmp_path / "b", server, ledger="user")
        assert rankbeam("evaluate", other).status == 0
        assert server.stats().calls == QUERIES
        assert not (tmp_path / "b" / "out" / "ledger").exists()
    assert modes(home / "ledger") == {(True, 0o700), (False, 0o600)}


@pytest.mark.xfail(strict=True, reason="issue 24, points 20 and 27")
@pytest.mark.usefixtures("home")
def test_private_results_are_for_their_owner_alone(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        assert rankbeam("evaluate", experiment(tmp_path / "a", server, private=True)).status == 0
        assert rankbeam("evaluate", experiment(tmp_path / "b", server)).status == 0
    assert modes(tmp_path / "a" / "out") == {(True, 0o700), (False, 0o600)}
    assert (tmp_path / "a" / "out" / "results.duckdb").exists()
    assert modes(tmp_path / "b" / "out") == {(True, 0o755), (False, 0o644)}
