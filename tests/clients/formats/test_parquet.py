"""Parquet files that are refused: missing columns, wrong types, nulls, damage."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inputs import (
    write,
    write_table,
)
from support.readers import Reader, read_corpus, refusal

from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.syntax.tables import batches
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.records.errors import InputError

GOOD = {"query_id": ["a", "b", "c"], "doc_id": ["d", "e", "f"], "grade": [1.0, 0.0, 2.0], "score": [1.0, 0.0, 2.0]}


@pytest.mark.parametrize("name", ["query_id", "doc_id", "grade"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_null_or_empty_value_in_parquet_qrels_is_refused_by_row(tmp_path: Path, name: str, value: str | None) -> None:
    texts = [str(cell) for cell in GOOD[name]]
    path = write_table(tmp_path / "qrels.parquet", {**GOOD, name: [texts[0], value, texts[2]]})
    error = refusal(read_qrels, path)
    assert (error.line, name.partition("_")[0] in str(error)) == (2, True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_in_parquet_is_refused_by_row(tmp_path: Path, value: float) -> None:
    for reader, name in ((read_qrels, "grade"), (read_run, "score")):
        error = refusal(reader, write_table(tmp_path / f"{name}.parquet", {**GOOD, name: [1.0, 2.0, value]}))
        assert (error.line, f"{name} is not a finite number" in str(error)) == (3, True)


def test_rows_are_counted_past_the_first_batch(tmp_path: Path) -> None:
    ids, scores = ["q"] * 200_000, np.ones(200_000)
    scores[199_998] = np.nan
    path = write_table(tmp_path / "run.parquet", {"query_id": ids, "doc_id": ids, "score": scores})
    assert refusal(read_run, path).line == 199_999


def test_batches_stay_small_if_a_dictionary_repeats_a_long_value(tmp_path: Path) -> None:
    path = write_table(tmp_path / "texts.parquet", {"text": ["x" * 10_000] * 6000})  # 60 MB, in a file of a few KB
    sizes = [batch.get_total_buffer_size() for batch in batches(path)]
    assert max(sizes) <= 17 << 20


@pytest.mark.parametrize("reader", [read_queries, read_corpus])
def test_a_null_or_empty_id_in_parquet_texts_is_refused_by_row(tmp_path: Path, reader: Reader) -> None:
    for value in (None, ""):
        path = write_table(tmp_path / "texts.parquet", {"_id": ["a", value], "text": ["x", "y"]})
        assert refusal(reader, path).line == 2


@pytest.mark.parametrize(
    ("reader", "columns", "missing"),
    [
        (read_qrels, ["doc_id", "grade"], "query_id"),
        (read_qrels, ["query_id", "doc_id"], "grade"),
        (read_run, ["query_id", "score"], "doc_id"),
        (read_run, ["query_id", "doc_id", "grade"], "score"),
        (read_queries, ["query_id", "grade"], "text"),
        (read_corpus, ["grade", "score"], "id"),
    ],
)
def test_a_missing_column_is_named_with_those_there_are(
    tmp_path: Path, reader: Reader, columns: list[str], missing: str
) -> None:
    error = refusal(reader, write_table(tmp_path / "file.parquet", {name: GOOD[name] for name in columns}))
    assert f"no column for {missing} " in str(error)
    assert str(error).endswith(f"the table has: {', '.join(columns)}")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([["x"], ["y"]]), r"list<.*cannot be read"),
        (pa.array(["1", "high"]), r"high"),
        (pa.array([{"a": 1}, {"a": 2}]), r"struct<.*cannot be read"),
    ],
)
def test_a_column_of_a_wrong_type_is_refused(tmp_path: Path, column: pa.Array, words: str) -> None:
    path = write_table(tmp_path / "qrels.parquet", {"qid": ["a", "b"], "docid": ["x", "y"], "grade": column})
    with pytest.raises(InputError, match=f"grade.*{words}"):
        raise refusal(read_qrels, path)


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
@pytest.mark.parametrize("share", [5, 0.5, -1])
def test_a_parquet_file_cut_short_is_refused(tmp_path: Path, reader: Reader, share: float) -> None:
    data = Path(write_table(tmp_path / "whole", {**GOOD, "text": ["a", "b", "c"]})).read_bytes()
    path = write(tmp_path / "cut", data[: int(len(data) * share) if share == 0.5 else int(share)])
    assert "cut short or damaged" in str(refusal(reader, path))


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
def test_a_damaged_parquet_file_is_refused(tmp_path: Path, reader: Reader) -> None:
    words = [f"word {number * number}" for number in range(10_000)]
    columns = {"query_id": words, "doc_id": words, "grade": range(10_000), "score": range(10_000), "text": words}
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    data = bytearray(path.read_bytes())
    data[100 : len(data) // 2] = b"\xff" * (len(data) // 2 - 100)
    path.write_bytes(data)
    assert refusal(reader, str(path)).path == str(path)
