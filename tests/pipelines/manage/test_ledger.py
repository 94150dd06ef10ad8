"""`rankbeam ledger`: showing a ledger's place and content, and clearing it."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError
from support import memory_filesystem, processes
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.pipelines.manage.ledger import ledger_folder, run, show
from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, LedgerEntry, Owner
from rankbeam.transforms.clients.ledger.survey import survey
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError

NOW = datetime.now(UTC)


@pytest.fixture(params=["local", "elsewhere"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An output folder with a ledger of three answers to two calls, one of them five days old."""
    folder = "mem://bucket/out" if request.param == "elsewhere" else str(tmp_path / "out")
    ledger = Ledger(folder + "/ledger")
    for key, age in (("a", 5.0), ("b", 0.125), ("b", 0.25)):
        writer = ledger.writer()
        writer.add(LedgerEntry(key, SearchDepth(1), '"x"', 1, 90.0, NOW - timedelta(days=age)))
        writer.close()
    for run_id, counted in (("monday", LaneCounts(0, 1200, 1200)), ("tuesday", LaneCounts(1200, 3, 3))):
        Ledger(ledger.folder, Owner(run_id)).record("pool", 0, lambda counted=counted: counted).write()
    yield folder
    memory_filesystem.FILES.clear()


def test_an_output_folder_and_the_ledger_itself(output: str) -> None:
    assert ledger_folder(output) == ledger_folder(output + "/") == ledger_folder(output + "/ledger")
    assert ledger_folder(output) == output + "/ledger"


def test_an_experiment_names_its_ledger() -> None:
    example = str(REPOSITORY / "examples" / "helpdesk" / "experiment.yaml")
    assert ledger_folder(example).endswith("/ledger")


def test_what_people_see(output: str) -> None:
    text = show(survey(output + "/ledger"), NOW + timedelta(seconds=1))
    lines = text.splitlines()
    assert lines[0] == f"ledger   {output}/ledger"
    assert lines[1] == "answers  2, and 1 older or lesser ones to the same calls"
    assert lines[2].endswith("kB in 3 files")
    assert "age      3 hours to 5 days" in lines
    assert "calls    took 4 minutes in all" in lines
    assert "hits     1,200 calls saved, 1,203 calls made" in lines
    heading, _, *runs = lines[-4:]
    rows = {line.split()[0]: line.split()[1:3] for line in (heading, *runs)}
    assert rows == {"run": ["hits", "calls"], "monday": ["0", "1,200"], "tuesday": ["1,200", "3"]}
    assert len({len(line) for line in lines[-4:]}) == 1


def test_one_age_is_not_a_range(tmp_path: Path) -> None:
    writer = Ledger(str(tmp_path)).writer()
    writer.add(LedgerEntry("a", SearchDepth(1), '"x"', 1, 90.0, NOW - timedelta(hours=3)))
    writer.close()
    assert "age      3 hours" in show(survey(str(tmp_path)), NOW + timedelta(seconds=1)).splitlines()


@pytest.mark.parametrize(("count", "end"), [(1, "s0"), (20, "s19"), (1023, "s19 and 1,003 more")])
def test_the_first_services_are_named(count: int, end: str, output: str) -> None:
    shown = show(replace(survey(output + "/ledger"), services=tuple(f"s{number}" for number in range(count))))
    (line,) = (line for line in shown.splitlines() if line.startswith("services "))
    assert line.endswith(f" {end}")


def test_what_programs_see(output: str) -> None:
    shown = json.loads(run(output, False, None, "json"))
    expected = {"entries": 2, "answers": 3, "hits": 1200, "calls": 1203, "damaged": []}
    assert {name: shown[name] for name in expected} == expected
    assert datetime.fromisoformat(shown["newest"]) == NOW - timedelta(days=0.125)
    assert {row["run_id"] for row in shown["runs"]} == {"monday", "tuesday"}


def test_damage_and_files_of_others_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "ledger"
    folder.mkdir(parents=True)
    (folder / f"calls-{'a' * 32}.parquet").write_bytes(b"")
    (folder / "mine.txt").write_text("mine")
    text = run(str(tmp_path / "out"), False, None, "table")
    assert "1 damaged file, of which only the undamaged content is used:" in text
    assert f"{folder}/calls-{'a' * 32}.parquet: cut short or damaged" in text
    assert f"1 file of other programs, neither read nor cleared:\n  {folder}/mine.txt" in text
    assert json.loads(run(str(folder), False, None, "json"))["damaged"][0]["path"].endswith("a.parquet")


def test_clearing(output: str) -> None:
    assert "no answer of 'jugde' to clear" in run(output, True, None, "table", service="jugde")
    assert "cleared 1 answer," in run(output, True, 3, "table")
    assert "nothing to clear" in run(output, True, 1e9, "table")
    assert json.loads(run(output, True, None, "json"))["answers"] == 2
    assert survey(output + "/ledger").files == 0


@pytest.mark.parametrize("output", ["elsewhere"], indirect=True)
@pytest.mark.parametrize("days", [None, 1.0])
def test_answers_that_may_not_be_deleted_are_not_cleared(
    days: float | None, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, paths: list[str]) -> None:
        raise BeamIOError("403", dict.fromkeys(paths, PermissionError()))

    monkeypatch.setattr(memory_filesystem.MemoryFileSystem, "delete", refuse)
    with pytest.raises(InputError, match=r"\.parquet: cannot be deleted; its answers stay"):
        run(output, True, days, "table")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_refused_deletion_leaves_no_second_copy_of_the_other_answers() -> None:
    with tempfile.TemporaryDirectory() as name:
        writer = Ledger(f"{name}/ledger").writer()
        for key, age in (("a", 5.0), ("b", 0.5)):
            writer.add(LedgerEntry(key, SearchDepth(1), '"x"', 1, 90.0, NOW - timedelta(days=age)))
        writer.close()
        Path(name).chmod(0o755)
        (Path(name) / "ledger").chmod(0o1777)  # as /tmp: only the owner may delete a file
        processes.as_nobody(lambda: run(name, True, 1.0, "table"))
        assert survey(f"{name}/ledger").answers == 2


def test_a_service_without_answers_is_not_cleared_and_those_with_answers_are_named(tmp_path: Path) -> None:
    writer = Ledger(str(tmp_path)).writer()
    writer.add(LedgerEntry("a", SearchDepth(1), '"x"', 1, 90.0, NOW, service="judge"))
    writer.close()
    text = run(str(tmp_path), True, None, "table", service="jugde")
    assert text.endswith("no answer of 'jugde' to clear; did you mean 'judge'?")
    assert "cleared 1 answer" in run(str(tmp_path), True, None, "table", service="judge")


def test_a_run_without_remote_calls_has_no_ledger(tmp_path: Path) -> None:
    assert "holds no finished calls" in run(str(tmp_path), False, None, "table")
    assert "nothing to clear" in run(str(tmp_path), True, None, "table")
    assert json.loads(run(str(tmp_path), False, None, "json"))["files"] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["{}/none", "{}/none/ledger", "{}/none.yaml", "mem://bucket/none"])
def test_a_place_that_is_not_there_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match="none"):
        run(place.format(tmp_path), False, None, "table")


@pytest.mark.parametrize(("clear", "days"), [(False, 3.0), (True, -1.0), (True, float("nan"))])
def test_ages_that_mean_nothing_are_refused(tmp_path: Path, clear: bool, days: float) -> None:
    with pytest.raises(InputError, match="--older-than"):
        run(str(tmp_path), clear, days, "table")


def test_the_command_clears_no_paid_answers_unasked(output: str) -> None:
    refused = rankbeam("ledger", output, "--clear", "--older-than", "2")
    assert (refused.status, refused.stdout, survey(output + "/ledger").answers) == (2, "", 3)
    assert f"Delete the answers in {output}/ledger older than 2 days?" in refused.stderr
    assert rankbeam("ledger", output, "--clear", "--older-than", "2", "--yes").status == 0
    assert survey(output + "/ledger").answers == 2
    assert rankbeam("ledger", output, "--yes").status == 2
