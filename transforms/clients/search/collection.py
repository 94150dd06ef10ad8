"""The documents of a dataset for retrievers: in one file that is mapped into memory, by descending id.

Documents are in descending byte order of their ids. So of several documents with equal scores, the first is the one
that trec_eval ranks first, and no result depends on the order of the corpus file.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.formats.overlap import corpus_warnings, hash_ids
from rankbeam.transforms.clients.search.index_folder import IndexFolder
from rankbeam.transforms.clients.storage import files, spill
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Documents, Judgements

DOCUMENTS = pa.schema(
    [
        ("doc_id", pa.string()),
        ("title", pa.large_string()),
        ("text", pa.large_string()),
        ("has_title", pa.bool_()),
        ("has_text", pa.bool_()),
    ]
)
_AT_ONCE = 4000
_FILE, _ORDER = "documents.arrow", "order.npy"


@dataclass(frozen=True, eq=False)
class Collection:
    """The documents of a dataset."""

    path: str  # path of the dataset's corpus
    indexes: IndexFolder  # folder of the documents' indexes
    rows: pa.Table  # rows of `DOCUMENTS`, in the order of the files
    doc_ids: pa.StringArray  # ids in the order of the rows, in one piece because every query reads some of them
    order: IntArray  # int64[d], the rows by descending id

    def batches(self) -> Iterator[tuple[list[str], list[str]]]:
        """Titles and texts, some documents at a time, in the order of the rows."""
        for batch in self.rows.to_batches():
            yield batch["title"].to_pylist(), batch["text"].to_pylist()

    def warnings(self, fields: Sequence[str]) -> Iterator[str]:
        """A warning with the number of documents for which these fields are empty, and some of their ids."""
        has_any = np.logical_or.reduce([self.rows[f"has_{field}"].to_numpy() for field in fields])
        if not has_any.all():
            empty = self.order[~has_any[self.order]][::-1]
            examples = ", ".join(map(repr, self.doc_ids.take(empty[:3]).to_pylist()))
            yield f"{len(empty):,} of {len(has_any):,} documents without text, such as {examples}"

    def text(self, row: int) -> str:
        text: str = self.rows["text"][row].as_py()
        return text


@lru_cache(2)
def lacking_documents(collection: Collection, judgements: Judgements | None) -> tuple[str, ...]:
    """Warnings about relevant documents that a collection lacks."""
    return tuple(corpus_warnings(judgements, hash_ids(collection.doc_ids)))


@lru_cache(2)
def _collection(path: str, root: str, shared: str | None, version: object) -> Collection:
    del version
    indexes = IndexFolder.of(root, path, content_of(path), shared)
    folder = indexes.get("documents", [], lambda into: _write(path, into / _FILE))
    rows = pa.ipc.open_file(pa.memory_map(str(folder / _FILE))).read_all()
    doc_ids = rows["doc_id"].combine_chunks()
    ordered = indexes.get("order", [], lambda into: np.save(into / _ORDER, _descending_order(doc_ids)))
    return Collection(path, indexes, rows, doc_ids, np.asarray(np.load(ordered / _ORDER, mmap_mode="r")))


def _descending_order(doc_ids: pa.StringArray) -> IntArray:
    names = np.array([name.encode() for name in doc_ids.to_pylist()], object)
    return np.argsort(names, kind="stable")[::-1].copy()


def collection_of(documents: Documents) -> Collection:
    if documents.path is None:
        raise InputError("the retriever needs dataset.corpus")
    folder, version = documents.index_folder, sources.version(documents.path)
    if folder is None or not files.is_local(folder):
        return _collection(documents.path, _temporary(), folder, version)
    return _collection(documents.path, folder, None, version)


def content_of(path: str) -> str:
    """A hash of the bytes of all files that a path matches; for a table, of its name, size and time of change."""
    checksum = hashlib.sha256()
    for file in sources.expand(path):
        if is_table(file):
            checksum.update(repr(sources.version(file)).encode())
            continue
        file_checksum = hashlib.sha256()
        with files.open_raw(file) as stream:
            while block := stream.read(1 << 22):
                file_checksum.update(block)
        checksum.update(file_checksum.digest())
    return checksum.hexdigest()[:16]


@lru_cache(1)
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rankbeam-index-", ignore_cleanup_errors=True)


def _temporary() -> str:
    """The folder for temporary indexes, which are deleted with the run's files, or at the end of this process."""
    folder = spill.folder()
    return _temporary_folder().name if folder is None else str(Path(folder) / "indexes")


def _write(path: str, file: Path) -> None:
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, DOCUMENTS) as writer:
        documents = texts.refuse_repeated(texts.entries_in(path, "corpus"))
        while part := list(islice(documents, _AT_ONCE)):
            ids, titles, bodies = zip(*((entry.id, entry.title, entry.text) for _, entry in part), strict=True)
            flags = ([bool(text.strip()) for text in column] for column in (titles, bodies))
            columns = [ids, titles, bodies, *flags]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, DOCUMENTS, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=DOCUMENTS))
