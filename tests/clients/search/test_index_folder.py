"""Kept indexes: built once, found again, and never damaged or of other documents."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import memory_filesystem
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.clients.search import collection, units
from rankbeam.transforms.clients.search.index_folder import IndexFolder
from rankbeam.transforms.records.chunking import Chunking
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Documents, Query, Ranking

CORPUS = {"d1": "the cat sat on the mat", "d2": "a dog ran after the cat and the other cat", "d3": ""}


@pytest.fixture
def indexed(tmp_path: Path) -> Documents:
    path = write(tmp_path / "corpus.jsonl", json_texts(CORPUS.items()))
    return Documents(path, Chunking("words", 4, 1), as_documents=False, index_folder=str(tmp_path / "indexes"))


def search(documents: Documents, text: str = "cat dog") -> Ranking:
    """The ranking that a new process would have."""
    for cached in (collection._collection, units.tokens_of, units.units_of, units._index_documents):
        cached.cache_clear()
    return Bm25().search(documents).retrieve(Query("q", text), 10)


def files_of(documents: Documents) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path(documents.index_folder or "").rglob("*.*32")}


def test_an_index_is_found_again(indexed: Documents) -> None:
    first = search(indexed)
    written = files_of(indexed)

    assert search(indexed) == first
    assert files_of(indexed) == written


def test_a_damaged_index_is_said_and_built_again(indexed: Documents, caplog: pytest.LogCaptureFixture) -> None:
    first = search(indexed)
    (damaged,) = Path(indexed.index_folder or "").rglob("unit.i32")
    content = bytearray(damaged.read_bytes())
    content[0] ^= 1
    damaged.write_bytes(content)

    with caplog.at_level(logging.WARNING):
        assert search(indexed) == first
    assert "is damaged (unit.i32); it is built again" in caplog.text


def test_an_index_without_its_manifest_is_built_again(indexed: Documents) -> None:
    first = search(indexed)
    for manifest in Path(indexed.index_folder or "").rglob("manifest.json"):
        manifest.unlink()

    assert search(indexed) == first


def test_other_documents_under_the_same_name_have_another_index(
    indexed: Documents, caplog: pytest.LogCaptureFixture
) -> None:
    search(indexed)
    write(Path(indexed.path or ""), json_texts([*CORPUS.items(), ("d4", "dog dog")]))

    with caplog.at_level(logging.INFO):
        assert search(indexed).doc_ids[0] == "d4#0-7"
    assert "has changed since it was indexed" in caplog.text
    assert len(list(Path(indexed.index_folder or "").glob("*/*"))) == 1  # that of the earlier documents is deleted


def test_what_a_killed_process_left_is_no_index(tmp_path: Path) -> None:
    def fail(into: Path) -> None:
        (into / "half").write_text("x")
        raise KeyboardInterrupt

    indexes = IndexFolder(tmp_path / "indexes")
    with pytest.raises(KeyboardInterrupt):
        indexes.get("any", 1, fail)
    folder = indexes.get("any", 1, lambda into: into.joinpath("whole").touch())
    assert {path.name for path in folder.iterdir()} == {"whole", "manifest.json"}


def test_the_cuts_of_documents_share_their_tokens(indexed: Documents) -> None:
    search(indexed)
    search(Documents(indexed.path, Chunking("sentences", 9, 0), index_folder=indexed.index_folder))

    names = sorted(
        path.name.partition("-")[0] for path in Path(indexed.index_folder or "").glob("*/*/*-*") if path.is_dir()
    )
    assert names == ["chunks", "chunks", "documents", "order", "postings", "postings", "tokens", "vocabulary"]


def test_an_index_that_is_kept_needs_no_tokens(indexed: Documents) -> None:
    first = search(indexed)
    (tokens_folder,) = Path(indexed.index_folder or "").glob("*/*/tokens-*/")
    shutil.rmtree(tokens_folder)

    assert search(indexed) == first
    assert not tokens_folder.exists()


def test_an_index_in_a_bucket_is_copied_to_other_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "corpus.jsonl", json_texts(CORPUS.items()))
    documents = Documents(path, index_folder="mem://bucket/out/indexes")
    on_machine(tmp_path / "one", monkeypatch)
    first = search(documents)
    (unit,) = (name for name in memory_filesystem.FILES if name.endswith("/unit.i32"))
    memory_filesystem.FILES[f"{unit}.mark"] = b""  # what is built has no such file
    on_machine(tmp_path / "other", monkeypatch)
    assert search(documents) == first
    assert [mark.name for mark in (tmp_path / "other").rglob("*.mark")] == ["unit.i32.mark"]

    memory_filesystem.FILES[unit] = b"\0" + memory_filesystem.FILES[unit][1:-1]
    on_machine(tmp_path / "third", monkeypatch)
    assert search(documents) == first  # what is damaged is built again


@pytest.fixture(autouse=True)
def empty_bucket() -> Iterator[None]:
    yield
    memory_filesystem.FILES.clear()


def on_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have no index on its disk."""
    folder.mkdir()
    monkeypatch.setattr(collection, "_temporary", lambda: str(folder))


def test_an_index_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "indexes").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match="File exists; free disk space or grant write access to the folder"):
        IndexFolder(tmp_path / "indexes").find("tokens", [])
