"""Files that another process reads while this one imports its modules."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.data import REPOSITORY

from rankbeam.pipelines.run import buckets
from rankbeam.transforms.clients.formats import read_ahead, rows
from rankbeam.transforms.clients.formats.bucketing import DividedPart, in_parts
from rankbeam.transforms.clients.storage import batches, spill
from rankbeam.transforms.records.errors import InputError

LINES, BUCKETS = 50, 3


@pytest.fixture
def qrels(tmp_path: Path) -> str:
    path = tmp_path / "qrels.txt"
    path.write_text("".join(f"q{line} 0 d{line} 1\n" for line in range(LINES)))
    return str(path)


@pytest.fixture
def run(tmp_path: Path) -> str:
    path = tmp_path / "a.run"
    path.write_text("".join(f"q{line} Q0 d{line} 1 0.5 tag\n" for line in range(LINES)))
    return str(path)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    batches.register()
    yield
    assert read_ahead._begun == {}
    assert spill.folder() is None


def taken(role: str, path: str) -> list[DividedPart]:
    parts = read_ahead.take_parts((role, path))
    assert parts is not None
    return list(parts)


def test_what_the_process_sends_is_what_a_reader_here_makes(qrels: str, run: str) -> None:
    expected = [list(in_parts(read(path), BUCKETS)) for read, path in ((rows.read_qrels, qrels), (rows.read_run, run))]
    files = [("qrels", qrels), ("run", run)]
    with read_ahead.reading(files, BUCKETS):
        assert [read_ahead.is_begun(file) for file in files] == [True, True]
        assert read_ahead.buckets() == BUCKETS
        second, first = taken("run", run), taken("qrels", qrels)  # asked for in another order
        assert [first, second] == expected
        assert [read_ahead.take_parts(file) for file in files] == [None, None]  # a second reader reads anew
        assert read_ahead.buckets() is None


def test_errors_are_raised_where_the_file_is_wanted_and_the_next_file_is_read(qrels: str, tmp_path: Path) -> None:
    bad, absent = tmp_path / "bad.run", str(tmp_path / "absent.run")
    bad.write_text("q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 best tag\n")
    with read_ahead.reading([("run", str(bad)), ("run", absent), ("qrels", qrels)], BUCKETS):
        with pytest.raises(InputError, match=r"bad\.run:2: the score 'best' is not a number"):
            taken("run", str(bad))
        with pytest.raises(InputError, match=r"absent\.run: cannot be opened"):
            taken("run", absent)
        assert sum(part.rows for part in taken("qrels", qrels)) == LINES


def test_a_process_that_is_killed_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    pipe = tmp_path / "a.run"
    os.mkfifo(pipe)  # its reader waits
    with read_ahead.reading([("run", str(pipe))], BUCKETS) as process:
        process.kill()
        with pytest.raises(InputError, match=r"a\.run: the process that read it was killed; free memory, and run"):
            taken("run", str(pipe))


def test_what_is_not_asked_for_ends_with_the_block(tmp_path: Path) -> None:
    pipe = tmp_path / "a.run"
    os.mkfifo(pipe)
    with read_ahead.reading([("run", str(pipe))], BUCKETS) as process:
        assert process.poll() is None
    assert process.poll() is not None


def test_large_pieces_come_through_the_spill_file(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("".join(f"q{line} Q0 d{line} 1 0.5 tag\n" for line in range(20_000)))
    with read_ahead.reading([("run", str(path))], 1):
        (part,) = taken("run", str(path))
        ((_, piece),) = part.pieces
        assert isinstance(piece, batches.SpilledBatch)
        assert batches.decode_spilled(piece.place).num_rows == 20_000


@pytest.mark.parametrize(
    ("program", "slow"),
    [
        (["-c", "import rankbeam.pipelines.run.buckets"], {"apache_beam", "numpy", "pyarrow"}),
        (["-m", "rankbeam.transforms.clients.formats.read_ahead", "[[], 1]"], {"apache_beam", "google.auth", "grpc"}),
    ],
    ids=["this process", "the other one"],
)
def test_neither_process_imports_slow_modules_before_files_are_read(program: list[str], slow: set[str]) -> None:
    command = [sys.executable, "-X", "importtime", *program]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {name for name in imported if name.startswith("rankbeam.transforms.clients")}
    assert not imported & slow


@pytest.mark.parametrize("name", ["gs://bucket/a.run", "absent.run", "*.run"])
def test_only_files_of_this_machine_are_begun(name: str, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_LARGE_BYTES", 0)
    with buckets.start_reading(run, [run, name if "://" in name else str(Path(run).parent / name)]):
        assert read_ahead.buckets() is None


def test_only_large_files_are_begun(qrels: str, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with buckets.start_reading(qrels, [run, run]):
        assert read_ahead.buckets() is None
    monkeypatch.setattr(buckets, "_LARGE_BYTES", 0)
    with buckets.start_reading(qrels, [run, run]):
        assert list(read_ahead._begun) == [("qrels", qrels), ("run", run)]
        assert read_ahead.buckets() == buckets.LEAST
