"""Batches that are large enough to spill, and the folder they lie in."""

import os
import subprocess
import tempfile
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from support.data import REPOSITORY
from support.processes import Process

from rankbeam.transforms.clients.storage import batches, spill

batches.register()

ROWS = 20_000
"""So many rows of the batches below are worth a file."""


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's temporary files."""
    path = tmp_path / "scratch"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def spilled_bytes() -> int:
    folder = spill.folder()
    assert folder is not None
    return sum(path.stat().st_size for path in Path(folder).glob("*.arrows"))


def strings(count: int = ROWS) -> pa.RecordBatch:
    return pa.record_batch({"name": [f"é{number:06}" for number in range(count)], "value": pa.array(range(count))})


def run_python(code: str, scratch: Path, *arguments: str) -> Process:
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = os.environ | {"TMPDIR": str(scratch)}
    return Process(textwrap.dedent(code), *arguments, cwd=REPOSITORY, env=environment, **piped)
