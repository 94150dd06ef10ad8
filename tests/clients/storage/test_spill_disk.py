# ruff: noqa: F811  fixtures are named as what they give
"""Spilled batches on a disk without room."""

import errno
import os
import pickle
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.spilled import (
    run_python,
    scratch,  # noqa: F401  pytest finds it by name
    spilled_bytes,
    strings,
)

from rankbeam.transforms.clients.storage import batches, spill

# --- No room -----------------------------------------------------------------------------------------------------

FULL = """
    import pickle, resource, signal, sys
    import pyarrow as pa
    from rankbeam.transforms.clients.storage import batches, spill
    batches.register()
    batch = pa.record_batch({"bytes": [bytes(1000)] * 100})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    allowed = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, allowed))
    try:
        with spill.spilling():
            print(spill.folder())
            places = [pickle.dumps(batch) for _ in range(3)]
            for _ in range(100):
                pickle.dumps(batch)
    except OSError as error:
        print(repr(error.errno), error.filename, error.strerror, sep="\\n")
"""


def no_room(scratch: Path, allowed: int) -> tuple[str, list[str]]:
    """The folder, and errno, file name and text of the error."""
    with run_python(FULL, scratch, str(allowed)) as other:
        printed, stderr = other.communicate()
    assert (other.returncode, stderr) == (0, "")
    folder, *error = printed.splitlines()
    assert list(scratch.iterdir()) == []
    return folder, error


def test_no_room_is_an_error_that_says_what_to_do(scratch: Path) -> None:
    folder, (number, name, text) = no_room(scratch, 350_000)
    assert (int(number), name) == (errno.EFBIG, folder)
    assert text == f"{os.strerror(errno.EFBIG)}; temporary files need more space, set TMPDIR to a larger disk"


def batch_bytes() -> int:
    """Size of one batch of FULL in a file."""
    with spill.spilling():
        pickle.dumps(pa.record_batch({"bytes": [bytes(1000)] * 100}))
        return spilled_bytes()


@pytest.mark.parametrize("missing", [1, 4000])
def test_no_room_for_the_last_bytes(scratch: Path, missing: int) -> None:
    # Python still has these in a buffer, and tries to write them again when the file is closed.
    folder, (number, name, text) = no_room(scratch, 4 * batch_bytes() - missing)
    assert (int(number), name) == (errno.EFBIG, folder)
    assert "set TMPDIR to a larger disk" in text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of one megabyte; skipped where none may be mounted."""
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(OSError, match="set TMPDIR to a larger disk") as caught:
        fill()
    assert caught.value.errno == errno.ENOSPC
    assert str(caught.value.filename).startswith(f"{small_disk}/rankbeam-spill-")
    assert list(small_disk.iterdir()) == []


def test_a_full_disk_has_no_room_for_a_mapped_file(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(OSError, match="set TMPDIR to a larger disk") as caught:
        spill.join_pieces((600_000 * place, bytes(600_000)) for place in range(4))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(small_disk))
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_pieces_are_one_buffer_in_memory_or_mapped(number: int, is_reversed: bool) -> None:
    pieces = [(700_000 * value, bytes([value]) * 700_000) for value in range(number)]
    expected = b"".join(piece for _, piece in pieces)
    assert bytes(spill.join_pieces(pieces[::-1] if is_reversed else pieces)) == expected


def fill() -> None:
    with spill.spilling():
        for _ in range(100):
            pickle.dumps(strings())


def test_a_block_within_another_spills_into_its_folder() -> None:
    with spill.spilling():
        outer = spill.folder()
        with spill.spilling():
            assert spill.folder() == outer
            place = batches.Reference.to(strings()).encoded
        assert spill.folder() == outer
        assert spill.holds(place)
    assert spill.folder() is None
