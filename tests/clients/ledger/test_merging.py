"""Merging parts: files stay few over many runs, and nothing is lost to readers, other merges, a kill or a full disk."""

import json
import os
import random
import signal
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import memory_filesystem
from support.data import REPOSITORY
from support.processes import Process

from rankbeam.pipelines.manage.ledger import run
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, LedgerWriter, merging, store
from rankbeam.transforms.clients.ledger.leases import places
from rankbeam.transforms.clients.ledger.merging import compact
from rankbeam.transforms.clients.ledger.survey import clear, survey
from rankbeam.transforms.clients.storage.whole_files import StoredFile
from rankbeam.transforms.records.calls.steps import SearchDepth

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ANY = SearchDepth(0)


@pytest.fixture(params=["local", "elsewhere"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield "mem://bucket/ledger" if request.param == "elsewhere" else str(tmp_path / "ledger")
    memory_filesystem.FILES.clear()


def entry(number: int, answer: object = "good") -> LedgerEntry:
    moment = BEGIN + timedelta(seconds=number)
    return LedgerEntry(f"key{number}", SearchDepth(10), json.dumps(answer), 1, 0.5, moment)


def written(folder: str, *entries: LedgerEntry) -> None:
    writer = LedgerWriter(folder)
    for entry in entries:
        writer.add(entry)
    writer.close()


def keys_found(folder: str, count: int) -> set[str]:
    return {entry.key for entry in Ledger(folder).find({f"key{number}": ANY for number in range(count)})}


def keys(count: int) -> set[str]:
    return {f"key{number}" for number in range(count)}


def test_the_files_of_many_runs_stay_few(tmp_path: Path) -> None:
    for night in range(80):
        written(str(tmp_path), entry(night))
        assert len(store.parts_in(str(tmp_path))) <= merging.MANY
    assert keys_found(str(tmp_path), 80) == keys(80)
    seen = survey(str(tmp_path))
    assert (seen.entries, seen.answers, seen.damaged, seen.foreign) == (80, 80, (), ())


def test_all_small_parts_become_one_when_asked_to(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_SETTLE_S", 0.0)  # no other process claims this folder
    for night in range(3):
        written(folder, entry(night))
    assert run(folder, False, None, "table", compact=True).startswith(f"{folder}: 3 files of ")
    assert "1 file of " in run(folder, False, None, "table", compact=True)
    assert json.loads(run(folder, False, None, "json", compact=True))["files_after"] == 1
    assert keys_found(folder, 3) == keys(3)


def test_only_small_parts_are_merged_and_not_into_one_of_any_size() -> None:
    large, limit, small = (StoredFile(f"{size}", size << 20) for size in (9, 8, 3))
    assert merging.due([large] * 100 + [limit] + [small] * 31) == []
    assert merging.due([large] * 100 + [small] * 32) == [small] * 5
    assert merging.fitting_parts([StoredFile("7", 7 << 20)] * 5) == [StoredFile("7", 7 << 20)] * 2


def test_a_part_as_large_as_the_last_tier_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for night in range(2):
        written(str(tmp_path), entry(night))
    sizes = [part.bytes for part in store.parts_in(str(tmp_path))]
    monkeypatch.setattr(merging, "TIERS", (1, min(sizes)))
    assert merging.compact(str(tmp_path)).files_after == 2
    monkeypatch.setattr(merging, "TIERS", (1, max(sizes) + 1))
    assert merging.compact(str(tmp_path)).files_after == 1


@pytest.mark.parametrize(("age_s", "is_left"), [(86_340.0, True), (86_400.5, False)])
@pytest.mark.parametrize("merge", [compact, merging.tidy])
def test_what_a_killed_writer_left_behind_is_deleted_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merge: Callable[[str], object], age_s: float, is_left: bool
) -> None:
    monkeypatch.setattr(merging, "MANY", 1)
    written(str(tmp_path), entry(0))
    part = Path(store.parts_in(str(tmp_path))[0].path)
    unfinished = part.with_name(f"{store.UNFINISHED}{part.name}")
    unfinished.write_bytes(b"PAR1")
    at = time.time() - age_s
    os.utime(unfinished, (at, at))
    merge(str(tmp_path))
    assert unfinished.exists() == is_left
    assert keys_found(str(tmp_path), 1) == keys(1)


def test_a_damaged_part_is_left_alone_and_named(tmp_path: Path) -> None:
    for night in range(3):
        written(str(tmp_path), entry(night))
    part = Path(store.parts_in(str(tmp_path))[0].path)
    content = part.read_bytes()[:-100]
    part.write_bytes(content)
    compact(str(tmp_path))
    assert part.read_bytes() == content
    assert len(store.parts_in(str(tmp_path))) == 2
    assert [path for path, _ in survey(str(tmp_path)).damaged] == [str(part)]


@pytest.mark.parametrize("steps", range(6))
def test_a_merge_that_ends_at_any_step_loses_and_doubles_nothing(tmp_path: Path, steps: int) -> None:
    for night in range(4):
        written(str(tmp_path), entry(night))
    merge = merging.merge(str(tmp_path), store.parts_in(str(tmp_path)))
    for _ in range(steps):
        next(merge, None)
    merge.close()
    assert keys_found(str(tmp_path), 4) == keys(4)
    compact(str(tmp_path))
    seen = survey(str(tmp_path))
    assert (seen.files, seen.entries, seen.answers) == (1, 4, 4)


def test_each_part_is_a_step_of_a_merge(tmp_path: Path) -> None:
    for night in range(3):
        written(str(tmp_path), entry(night))
    merge = merging.merge(str(tmp_path), store.parts_in(str(tmp_path)))
    assert len(list(merge)) == 3 + 1  # the last one is before the sources are deleted


def test_what_is_cleared_during_a_merge_does_not_come_back(folder: str) -> None:
    for night in range(4):
        written(folder, entry(night))
    merge = merging.merge(folder, store.parts_in(folder))
    for _ in range(4):
        next(merge)
    assert clear(folder).files == 4
    for _ in merge:
        """To the end."""
    assert store.parts_in(folder) == []


@pytest.mark.parametrize("service", [None, "judge"])
def test_what_a_merge_moves_while_the_ledger_is_cleared_is_cleared_too(
    folder: str, service: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for night in range(4):
        written(folder, replace(entry(night), service="judge"))
    parts_in = store.parts_in

    def merged_when_listed(folder: str) -> list[StoredFile]:
        monkeypatch.setattr(store, "parts_in", parts_in)
        parts = parts_in(folder)
        merging.run_to_end(merging.merge(folder, parts))
        return parts

    monkeypatch.setattr(store, "parts_in", merged_when_listed)
    assert clear(folder, service=service).answers == 4
    assert keys_found(folder, 4) == set()


def test_two_merges_and_a_reader_at_once(tmp_path: Path) -> None:
    folder, done, missed = str(tmp_path), threading.Event(), []
    for night in range(12):
        written(folder, entry(night))

    def read() -> None:
        while not done.is_set():
            missed.extend(keys(12) - keys_found(folder, 12))

    def merge_often() -> None:
        for _ in range(10):
            for _ in merging.merge(folder, store.parts_in(folder)[:6]):
                """To the end."""
            written(folder, replace(entry(0), attempts=2))

    reader = threading.Thread(target=read)
    mergers = [threading.Thread(target=merge_often) for _ in range(2)]
    for thread in (reader, *mergers):
        thread.start()
    for thread in mergers:
        thread.join()
    done.set()
    reader.join()
    assert missed == []
    assert keys_found(folder, 12) == keys(12)
    assert survey(folder).damaged == ()


def in_process(code: str, *arguments: object) -> Process:
    head = "import sys, json\nfrom datetime import UTC, datetime\nfrom rankbeam.transforms.clients.ledger import *\n"
    head += "from rankbeam.transforms.clients.ledger.merging import compact\n"
    head += "from rankbeam.transforms.records.calls.steps import SearchDepth\n"
    head += "from rankbeam.transforms.records.errors import InputError\n"
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Process(head + textwrap.dedent(code), *map(str, arguments), cwd=REPOSITORY, **piped)


def test_a_process_that_is_killed_while_it_merges_loses_nothing(tmp_path: Path) -> None:
    code = """
    number = 0
    while True:
        for _ in range(3):
            writer = Ledger(sys.argv[1]).writer()
            writer.add(LedgerEntry(f"key{number}", SearchDepth(1), json.dumps("x" * 2000), 1, 0.1, datetime.now(UTC)))
            writer.close()
            print(number, flush=True)
            number += 1
        compact(sys.argv[1])
    """
    with in_process(code, tmp_path) as process:
        assert process.stdout is not None
        last = 0
        for line in process.stdout:
            last = int(line)
            if last == 50:  # whatever it does then
                process.send_signal(signal.SIGKILL)
    assert last >= 50
    assert keys_found(str(tmp_path), last + 1) == keys(last + 1)
    for lease in tmp_path.glob("leases/lease-*"):
        if not lease.read_bytes():  # killed while it wrote its lease, which others pass over after a minute
            lease.unlink()
    compact(str(tmp_path))
    seen = survey(str(tmp_path))
    assert (seen.files, seen.answers, seen.damaged) == (1, seen.entries, ())


def test_a_disk_without_room_for_the_merged_part_keeps_the_others(tmp_path: Path) -> None:
    dice = random.Random(1)
    for night in range(3):
        written(str(tmp_path), entry(night, dice.randbytes(30_000).hex()))
    before = store.parts_in(str(tmp_path))
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    try:
        compact(sys.argv[1])
    except InputError as error:
        print(error)
    """
    with in_process(code, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert "cannot be written: File too large" in out, err
    assert store.parts_in(str(tmp_path)) == before
    assert keys_found(str(tmp_path), 3) == keys(3)
