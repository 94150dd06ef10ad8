"""The dense retriever in this process: vectors that cannot be compared are never ranked in silence."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.dense import Dense, DenseIndex
from rankbeam.transforms.clients.search.matrix import Writer
from rankbeam.transforms.kernels.arrays import SingleArray
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Documents, Query, Ranking

Rows = list[tuple[str, list[float]]]
DOCUMENTS: Rows = [("d1", [1.0, 0.0]), ("d2", [0.0, 1.0]), ("d3", [0.6, 0.8])]
QUERIES: Rows = [("q1", [1.0, 0.0]), ("q2", [0.0, 2.0])]


class Dictated:
    """The embeddings of texts that are JSON lists; any other text has none."""

    identity, is_kept = "dictated", True

    def of_queries(self) -> "Dictated":
        return self

    def vectors(self, texts: Iterable[str], cut: list[int]) -> Iterator[SingleArray | None]:
        del cut
        yield from (np.array(json.loads(text), np.float32) if text.startswith("[") else None for text in texts)

    def cut_warning(self, what: str, cut: int, total: int) -> str:
        raise NotImplementedError


def opened(folder: Path, vectors: Rows | None, queries: Rows | None, texts: Rows = DOCUMENTS) -> DenseIndex:
    """The retriever of vectors in files; a model embeds the texts that have none there."""
    write(folder / "corpus.jsonl", json_texts((name, json.dumps(vector)) for name, vector in texts))
    files = {"vectors": vectors, "query_vectors": queries}
    for name, rows in files.items():
        columns = {"id": [key for key, _ in rows or ()], "vector": [vector for _, vector in rows or ()]}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    paths = {name: str(folder / f"{name}.parquet") for name, rows in files.items() if rows is not None}
    parameters = Dense(**paths, embedding_model=None if len(paths) == 2 else "m")
    documents = Documents(str(folder / "corpus.jsonl"), index_folder=str(folder / "indexes"), embeddings=Dictated())
    index = parameters.search(documents)
    assert isinstance(index, DenseIndex)
    return index


def ranked(index: DenseIndex, *texts: str) -> list[object]:
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts, 1)]
    answers = index.retrieve_all(queries, 10)
    return [answer.doc_ids if isinstance(answer, Ranking) else answer.message for answer in answers]


def test_a_vector_of_zeros_has_no_direction_and_counts_as_none(tmp_path: Path) -> None:
    index = opened(tmp_path, [*DOCUMENTS[:2], ("d3", [0.0, 0.0])], [QUERIES[0], ("q2", [0.0, 0.0])])

    assert index.warnings == ["1 of 3 documents have no embedding, and are not ranked"]
    assert ranked(index, "", "") == [("d1", "d2"), "the query has no embedding"]


def test_a_model_that_embeds_a_document_as_zeros_has_its_vectors_kept(tmp_path: Path) -> None:
    texts = [*DOCUMENTS, ("d4", [0.0, 0.0])]
    inodes = []
    for _ in range(2):
        index = opened(tmp_path, None, QUERIES, texts)
        inodes += [path.stat().st_ino for path in (tmp_path / "indexes").rglob("vectors.npy")]

    assert index.warnings == ["1 of 4 documents have no embedding, and are not ranked"]
    assert inodes[0] == inodes[1]


@pytest.mark.parametrize("file", ["vectors", "query_vectors"])
def test_an_id_with_two_vectors_is_refused(file: str, tmp_path: Path) -> None:
    rows = {"vectors": DOCUMENTS, "query_vectors": QUERIES}
    name = rows[file][0][0]
    rows[file] = [*rows[file], (name, [0.0, 1.0])]
    with pytest.raises(InputError, match=rf"{file}\.parquet: '{name}' has more than one vector"):
        opened(tmp_path, rows["vectors"], rows["query_vectors"])


def test_a_file_without_a_vector_of_any_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"vectors\.parquet: none of the 3 documents or chunks has a vector here"):
        opened(tmp_path, [("1", [1.0, 0.0])], QUERIES)


def test_queries_are_not_compared_with_vectors_of_another_width(tmp_path: Path) -> None:
    index = opened(tmp_path, DOCUMENTS, None)
    with pytest.raises(
        InputError, match=r"vectors\.parquet: vectors of queries have 3 components, and those of documents 2"
    ):
        ranked(index, "[1, 0, 0]")


def test_queries_fail_where_the_model_embedded_no_document(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(json_texts([("d1", "no list")]), encoding="utf-8")
    documents = Documents(str(tmp_path / "corpus.jsonl"), index_folder=str(tmp_path / "i"), embeddings=Dictated())
    index = Dense(embedding_model="m").search(documents)
    assert isinstance(index, DenseIndex)
    assert ranked(index, "[1, 0]") == ["no document or chunk has an embedding"]


def test_the_disk_has_room_for_all_vectors_before_they_are_mapped(tmp_path: Path) -> None:
    Writer(tmp_path, 1000).add(np.array([999]), np.ones((1, 1000), np.float32))
    state = (tmp_path / "vectors.npy").stat()
    assert state.st_blocks * 512 >= state.st_size > 4_000_000  # writing to a page without a block kills the process
