"""Folders of a user: one ledger and one folder of leases for all runs, and results that only their owner may read."""

from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.remote import answers, dataset, http, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.experiment.file.output import data_folder
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.ledger import Ledger, Owner

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
    return {(path.is_dir(), path.stat().st_mode & 0o777) for path in (folder, *folder.rglob("*"))}


@pytest.mark.long
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


@pytest.mark.campaign
def test_the_variable_names_the_ledger_of_experiments_that_name_none(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        monkeypatch.setenv("RANKBEAM_LEDGER", str(tmp_path / "mine"))
        own = load_experiment(experiment(tmp_path / "a", server, ledger="here"))
        assert (own.ledger, own.calls.shares_ledger) == (str(tmp_path / "a" / "here"), False)
        path = experiment(tmp_path / "a", server)
        assert load_experiment(path).ledger == str(tmp_path / "mine")
        assert rankbeam("evaluate", path).status == 0
        assert list((tmp_path / "mine").glob("calls-*"))
        (tmp_path / "team").mkdir(mode=0o755)
        monkeypatch.setenv("RANKBEAM_LEDGER", str(tmp_path / "team"))
        assert rankbeam("evaluate", path).status == 0
        assert (tmp_path / "team").stat().st_mode & 0o777 == 0o755
        monkeypatch.setenv("RANKBEAM_LEDGER", "gs://bucket/ledger")
        assert (load_experiment(path).ledger, load_experiment(path).calls.shares_ledger) == (
            "gs://bucket/ledger",
            False,
        )
        monkeypatch.setenv("RANKBEAM_LEDGER", "user")
        assert load_experiment(path).ledger == str(home / "ledger") == data_folder("ledger")


@pytest.mark.campaign
def test_leases_of_the_user_are_seen_by_runs_with_other_ledgers(tmp_path: Path, home: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path / "a", server, leases="user")
        loaded = load_experiment(path)
        assert loaded.calls.leases_path == str(home / "leases")
        assert loaded.ledger == str(tmp_path / "a" / "out" / "ledger")
        assert rankbeam("evaluate", path).status == 0
        assert not (tmp_path / "a" / "out" / "ledger" / "leases").exists()
    first, second = (
        Ledger(str(tmp_path / name), Owner(name, "now", leases=str(home / "leases"))).lease("pool") for name in "ab"
    )
    assert first.claim() is None
    holder = second.claim()
    assert holder is not None
    assert holder.run_id == "a"
    first.release()
    assert second.claim() is None


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_private_results_are_for_their_owner_alone(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        assert rankbeam("plan", experiment(tmp_path / "a", server, private=True)).status == 0
        assert not (tmp_path / "a" / "out").exists()
        assert rankbeam("evaluate", experiment(tmp_path / "a", server, private=True)).status == 0
        assert rankbeam("evaluate", experiment(tmp_path / "b", server)).status == 0
    assert modes(tmp_path / "a" / "out") == {(True, 0o700), (False, 0o600)}
    assert (tmp_path / "a" / "out" / "results.duckdb").exists()
    assert modes(tmp_path / "b" / "out") == {(True, 0o755), (False, 0o644)}


@pytest.mark.parametrize("output", [{"ledger": "user"}, {"leases": "user"}, {"private": True}])
def test_runners_elsewhere_refuse_folders_of_the_user(output: dict[str, Any], tmp_path: Path, home: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path / "a", server, **output)
        done = rankbeam("evaluate", path, "--runner", "DataflowRunner", "--project", "p", "--region", "r")
        assert done.status == 2
        assert f"output.{next(iter(output))}: " in done.stderr
        assert server.stats().calls == 0
    assert not home.exists()
