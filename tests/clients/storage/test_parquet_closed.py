"""Readers of Parquet close their files: one that a thread of Arrow's drops while Python ends aborts the process."""

import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbeam.pipelines.results.tables import InFolder
from rankbeam.transforms.clients.formats import texts
from rankbeam.transforms.clients.storage import files

ROWS, COLUMNS, TIMES = 6_000, 8, 15


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ["id", "text", "text_hash", *(f"more{number}" for number in range(COLUMNS))]
    rows = pa.table({name: [f"{name} {row}" for row in range(ROWS)] for name in names})
    (tmp_path / "texts" / "run").mkdir(parents=True)
    pq.write_table(rows, tmp_path / "texts" / "run" / "part.parquet", row_group_size=ROWS // 3)
    return tmp_path


@pytest.fixture
def droppers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread that dropped each file that was opened."""
    threads: list[int] = []
    open_raw = files.open_raw

    def opened(path: str, *arguments: Any) -> Any:
        handle = open_raw(path, *arguments)
        weakref.finalize(handle, lambda: threads.append(threading.get_ident()))
        return handle

    monkeypatch.setattr(files, "open_raw", opened)
    return threads


def whole_table(folder: Path) -> None:
    assert InFolder(str(folder), "run").table("texts", ["text_hash", "text"]).num_rows == ROWS


def first_batch(folder: Path) -> None:
    assert next(InFolder(str(folder), "run").batches("texts", ["text_hash", "text"], 10)).num_rows == 10


def first_query(folder: Path) -> None:
    assert next(texts.read_entries(str(folder / "texts" / "run" / "part.parquet"), "queries")).id == "id 0"


@pytest.mark.parametrize("read", [whole_table, first_batch, first_query])
def test_the_reading_thread_drops_the_file(read: Callable[[Path], None], folder: Path, droppers: list[int]) -> None:
    for _ in range(TIMES):
        read(folder)
    assert set(droppers) == {threading.get_ident()}
