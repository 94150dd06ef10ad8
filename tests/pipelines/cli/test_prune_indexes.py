"""`rankbeam runs --prune --indexes`: indexes that no run has used for some days go, here and in a bucket."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import memory_filesystem
from support.cli import rankbeam
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.clients.search import collection, units
from rankbeam.transforms.records.chunking import Chunking
from rankbeam.transforms.records.queries import Documents

LONG_AGO = time.time() - 40 * 86_400
BUCKET = "mem://bucket/out"


@pytest.fixture(autouse=True)
def empty_bucket() -> Iterator[None]:
    yield
    memory_filesystem.FILES.clear()


def index(folder: Path, output: str, size: int) -> None:
    """Build an index of chunks, or use the one that is kept, as a new process would."""
    for cached in (collection._collection, units.tokens_of, units.units_of, units._index_documents):
        cached.cache_clear()
    path = write(folder / "corpus.jsonl", json_texts([("d1", "the cat sat on the mat"), ("d2", "a dog ran")]))
    Bm25().prepare(Documents(path, Chunking("words", size, 0), index_folder=f"{output}/indexes"))


def pruned(output: str, *more: str) -> list[str]:
    """The kinds of the indexes that are listed for deletion."""
    done = rankbeam("runs", output, "--prune", "--indexes", "--format", "json", *more)
    assert done.status == 0, done.stderr
    folders = [index["folder"] for index in json.loads(done.stdout)["indexes"]]
    return sorted(folder.rpartition("/")[2].rpartition("-")[0] for folder in folders)


def test_what_no_run_has_used_for_some_days_is_deleted(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    index(tmp_path, output, 2)
    index(tmp_path, output, 3)
    for path in (tmp_path / "out").rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    index(tmp_path, output, 3)

    assert pruned(output, "--dry-run") == ["chunks", "postings", "tokens"]  # of size 2; tokens are not read any more
    assert pruned(output, "--dry-run", "--older-than", "50") == []
    assert pruned(output, "--yes") == ["chunks", "postings", "tokens"]
    again = rankbeam("runs", output, "--prune", "--indexes")
    assert again.stdout == "every index was used since then; nothing to delete\n"
    index(tmp_path, output, 2)
    assert len(list((tmp_path / "out").rglob("postings-*/manifest.json"))) == 2


def test_indexes_in_a_bucket_are_marked_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_temporary", lambda: str(tmp_path / "one"))
    index(tmp_path, BUCKET, 2)
    index(tmp_path, BUCKET, 3)
    assert pruned(BUCKET) == []
    memory_filesystem.WRITTEN.update(dict.fromkeys(memory_filesystem.FILES, LONG_AGO))
    monkeypatch.setattr(collection, "_temporary", lambda: str(tmp_path / "other machine"))
    index(tmp_path, BUCKET, 3)

    assert pruned(BUCKET, "--yes") == ["chunks", "postings", "tokens"]  # of size 2
    left = {path.split("/")[-2].rpartition("-")[0] for path in memory_filesystem.FILES}
    assert left == {"chunks", "documents", "order", "postings", "vocabulary"}


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    assert rankbeam("runs", str(tmp_path), "--indexes").status == 2
    assert rankbeam("runs", str(tmp_path), "--prune", "--indexes", "--keep", "2").status == 2
