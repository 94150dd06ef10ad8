"""Arrow files, and folders of them, as `save_to_disk` of Hugging Face's datasets writes them."""

import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inputs import write
from support.readers import Reader, attributes, qrels, queries, read_corpus, refusal, run

from rankbeam.pipelines.experiment.dataset_checks import check
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.cases.objects import rows_in
from rankbeam.transforms.clients.formats.clicks import ClickGrades, grades_of
from rankbeam.transforms.clients.formats.evidence import read_evidence
from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.syntax import tables
from rankbeam.transforms.clients.formats.texts import entries_in, read_entries, read_queries
from rankbeam.transforms.records.errors import InputError

QRELS = {"query-id": ["q1", "q2"], "corpus-id": ["d1", "d2"], "score": [1, 2]}
WRITERS = pytest.mark.parametrize("writer", [pa.ipc.new_stream, pa.ipc.new_file])


def write_arrow(
    path: Path, columns: Mapping[str, Sequence[Any]], writer: Callable[..., Any] = pa.ipc.new_stream, rows: int = 1000
) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(columns))
    with writer(str(path), table.schema) as opened:
        opened.write_table(table, max_chunksize=rows)
    return str(path)


def grades(path: str) -> list[ClickGrades]:
    return [grades_of(path, [0.1], 1)]


@WRITERS
def test_every_role_reads_arrow(tmp_path: Path, writer: Callable[..., Any]) -> None:
    path = write_arrow(tmp_path / "queries.arrow", {"_id": [7, 8], "text": ["who", None], "lang": ["de", "en"]}, writer)
    assert queries(path) == [("7", "who", 1), ("8", "", 2)]
    assert attributes(path) == [{"lang": "de"}, {"lang": "en"}]
    assert qrels(write_arrow(tmp_path / "qrels.arrow", QRELS, writer)) == [("q1", "d1", 1.0, 1), ("q2", "d2", 2.0, 2)]
    scored = {"query_id": ["q1"], "doc_id": ["d1"], "score": [0.5]}
    assert run(write_arrow(tmp_path / "run.arrow", scored, writer)) == [("q1", "d1", 0.5, 1)]
    span = {"query_id": ["q1"], "doc_id": ["d1"], "start": [0], "end": [2], "quote": ["ab"]}
    (batch,) = read_evidence(write_arrow(tmp_path / "evidence.arrow", span, writer))
    assert (batch["query_id"][0].as_py(), batch["grade"][0].as_py()) == ("q1", 1.0)


def test_names_in_upper_case_are_attributes_as_in_parquet(tmp_path: Path) -> None:
    columns = {"_id": ["d1"], "Title": ["T"], "title": ["t"], "text": ["x"], "Lang": ["de"]}
    pq.write_table(pa.table(columns), tmp_path / "corpus.parquet")
    for path in (write_arrow(tmp_path / "corpus.arrow", columns), str(tmp_path / "corpus.parquet")):
        (entry,) = read_entries(path, "corpus")
        assert (entry.title, entry.attributes) == ("t", {"Title": "T", "Lang": "de"})


def test_a_saved_dataset_is_a_folder_of_its_parts(tmp_path: Path) -> None:
    for part in range(2):
        rows = {"_id": [f"d{part}"], "title": ["T"], "text": [f"text {part}"]}
        write_arrow(tmp_path / "corpus" / f"data-0000{part}-of-00002.arrow", rows)
    write_arrow(tmp_path / "corpus" / "cache-1f.arrow", {"_id": ["d9"], "text": ["of a map, not of the dataset"]})
    write(tmp_path / "corpus" / "state.json", "{}")
    read = [(entry.id, entry.titled_text) for _, entry in entries_in(f"{tmp_path}/corpus", "corpus")]
    assert read == [("d0", "T\ntext 0"), ("d1", "T\ntext 1")]
    assert [version[0] for version in sources.version(f"{tmp_path}/corpus")] == sources.expand(f"{tmp_path}/corpus")


@pytest.mark.parametrize("name", ["part[1]", "st*r", "q?", "two words"])
def test_the_folder_of_a_saved_dataset_may_have_characters_of_patterns(tmp_path: Path, name: str) -> None:
    write_arrow(tmp_path / name / "data-00001-of-00002.arrow", {"_id": ["d1"], "text": ["x"]})
    write_arrow(tmp_path / name / "data-00000-of-00002.arrow", {"_id": pa.array([], pa.string()), "text": pa.nulls(0)})
    assert [entry.id for _, entry in entries_in(f"{tmp_path}/{name}", "corpus")] == ["d1"]
    assert len(sources.version(f"{tmp_path}/{name}")) == 2


def test_a_dataset_of_several_splits_is_refused_with_their_names(tmp_path: Path) -> None:
    write_arrow(tmp_path / "qrels" / "test" / "data-00000-of-00001.arrow", QRELS)
    write(tmp_path / "qrels" / "dataset_dict.json", '{"splits": ["test"]}')
    with pytest.raises(InputError, match="has splits of a dataset of Hugging Face; name one of its folders"):
        sources.expand(f"{tmp_path}/qrels")


@WRITERS
@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
def test_a_damaged_arrow_file_is_refused(tmp_path: Path, writer: Callable[..., Any], reader: Reader) -> None:
    rows = {"_id": ["a"] * 9000, "text": ["x"] * 9000, "query_id": ["q"] * 9000, "doc_id": ["d"] * 9000}
    path = write_arrow(tmp_path / "rows.arrow", {**rows, "grade": [1] * 9000, "score": [1] * 9000}, writer)
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])
    assert "is not a valid Arrow file" in str(refusal(reader, path))


def test_errors_name_the_row_and_the_columns(tmp_path: Path) -> None:
    rows = {**QRELS, "query-id": ["q1", None]}
    error = refusal(read_qrels, write_arrow(tmp_path / "qrels.arrow", rows, rows=1))
    assert (error.line, error.problem) == (2, "the query_id is null")
    error = refusal(read_run, write_arrow(tmp_path / "run.arrow", {"query_id": ["q1"], "text": ["x"]}))
    assert "no column for doc_id" in error.problem


def test_reference_answers_are_not_read_from_arrow(tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "answers.arrow", {"query_id": ["q1"], "answer": ["x"]})
    with pytest.raises(InputError, match=r"is not a file of reference answers.*; it is Arrow"):
        check([path], "answers")


OFFSETS = struct.pack("<4i", 0, 9, 18, 27)  # of three texts with nine bytes


@WRITERS
@pytest.mark.parametrize("offsets", [(0, 1 << 20, 18, 27), (-(1 << 20), 9, 18, 27), (0, 9, 18, 0x7FFFFFFF)])
@pytest.mark.parametrize("reader", [read_qrels, read_queries, rows_in])
def test_offsets_outside_the_file_are_refused(
    tmp_path: Path, writer: Callable[..., Any], offsets: tuple[int, ...], reader: Reader
) -> None:
    rows = {"query_id": ["q1"] * 3, "doc_id": ["a", "b", "c"], "grade": [1] * 3, "text": ["some text"] * 3}
    path = write_arrow(tmp_path / "rows.arrow", rows, writer)
    content = Path(path).read_bytes()
    assert content.count(OFFSETS) == 1
    Path(path).write_bytes(content.replace(OFFSETS, struct.pack("<4i", *offsets)))
    assert "is not a valid Arrow file" in str(refusal(reader, path))


@pytest.mark.parametrize("reader", [read_queries, rows_in])
def test_indexes_outside_a_dictionary_are_refused(tmp_path: Path, reader: Reader) -> None:
    path = write_arrow(tmp_path / "rows.arrow", {"_id": ["1", "2", "3"], "text": encoded([0, 1, 2], ["a", "b", "c"])})
    content = Path(path).read_bytes()
    assert content.count(struct.pack("<3q", 0, 1, 2)) == 1
    Path(path).write_bytes(content.replace(struct.pack("<3q", 0, 1, 2), struct.pack("<3q", 0, 1 << 40, 2)))
    assert "is not a valid Arrow file" in str(refusal(reader, path))


def encoded(indices: Sequence[int], values: Sequence[str | None]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(values, pa.string()))


def test_a_null_id_in_a_dictionary_is_refused(tmp_path: Path) -> None:
    rows = {"_id": encoded([0, 1], ["a", None]), "text": encoded([1, 0], ["x", None])}
    error = refusal(read_queries, write_arrow(tmp_path / "queries.arrow", rows))
    assert (error.line, error.problem) == (2, "the _id is null")


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_value_that_python_does_not_represent_is_refused_with_its_row(tmp_path: Path, form: str) -> None:
    days = pa.array([1, 2, 1 << 30], pa.int32()).cast(pa.date32())
    table = pa.table({"question": ["a", "b", "c"], "day": days})
    path = str(tmp_path / f"cases.{form}")
    if form == "parquet":
        pq.write_table(table, path)
    else:
        write_arrow(Path(path), dict(zip(table.column_names, table.columns, strict=True)))
    error = refusal(rows_in, path)
    assert (error.line, error.problem.partition(" (")[0]) == (3, "a column cannot be read")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["question", "question"])
    with pa.ipc.new_stream(str(tmp_path / "cases.arrow"), table.schema) as opened:
        opened.write_table(table)
    assert refusal(rows_in, f"{tmp_path}/cases.arrow").problem == "has two columns named 'question'; keep one"


@WRITERS
def test_validation_reads_the_columns_and_looks_for_rows(tmp_path: Path, writer: Callable[..., Any]) -> None:
    path = write_arrow(tmp_path / "run.arrow", {"query_id": ["q1"], "text": ["x"]}, writer)
    with pytest.raises(InputError, match="no column for doc_id"):
        check([path], "run")
    empty = [
        write_arrow(tmp_path / f"{part}.arrow", {name: pa.array([], pa.string()) for name in QRELS}, writer)
        for part in range(2)
    ]
    with pytest.raises(InputError, match="the file is empty, and so are the others; judgements were expected"):
        check(empty, "qrels")
    check([*empty, write_arrow(tmp_path / "qrels.arrow", QRELS, writer)], "qrels")


@WRITERS
@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus, grades])
def test_a_gzipped_table_is_refused_with_advice(tmp_path: Path, writer: Callable[..., Any], reader: Reader) -> None:
    arrow = write_arrow(tmp_path / "rows.arrow", {**QRELS, "_id": ["a", "b"], "text": ["x", "y"]}, writer)
    pq.write_table(pa.table({"_id": ["a"], "text": ["x"], "query_id": ["q"]}), tmp_path / "rows.parquet")
    for path, name in ((arrow, "Arrow"), (tmp_path / "rows.parquet", "Parquet")):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(Path(path).read_bytes()))
        assert f"is a compressed {name} file; decompress it" in str(refusal(reader, str(packed)))


MIB = 1 << 20


@WRITERS
@pytest.mark.parametrize("larger", [0, 1])
def test_a_value_of_more_than_64_mib_is_refused_with_its_row(
    tmp_path: Path, writer: Callable[..., Any], larger: int
) -> None:
    table = pa.table({"_id": ["a", "b"], "text": ["x", "y" * (64 * MIB + larger)]})
    with writer(str(tmp_path / "c.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as opened:
        opened.write_table(table)
    pq.write_table(table, tmp_path / "c.parquet")
    for name in ("c.arrow", "c.parquet"):
        path = str(tmp_path / name)
        if not larger:
            assert [len(entry.text) for entry in read_entries(path, "corpus")] == [1, 64 * MIB]
            continue
        error = refusal(read_corpus, path)
        assert (error.problem, error.line) == ("column text has a value of more than 64 MiB", 2)


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())])
def test_a_large_value_is_refused_whatever_the_type_of_its_column(tmp_path: Path, kind: pa.DataType) -> None:
    texts = pa.array(["x", None, "y" * (64 * MIB + 1)])
    values = texts.cast(pa.large_string()).dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    table = pa.table({"_id": ["a", "b", "c"], "text": ["x", "y", "z"], "more": values})
    with pa.ipc.new_file(str(tmp_path / "c.arrow"), table.schema) as opened:
        opened.write_table(table)
    error = refusal(read_corpus, str(tmp_path / "c.arrow"))
    assert (error.problem, error.line) == ("column more has a value of more than 64 MiB", 3)


@pytest.mark.parametrize("struct", [False, True])
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_a_large_value_in_a_list_is_refused(tmp_path: Path, struct: bool, kind: Callable[..., pa.DataType]) -> None:
    texts = [["x"], None, [], ["y", "z" * (64 * MIB + 1)]]
    entries = [values and [{"text": text, "rank": 1} for text in values] for values in texts] if struct else texts
    form = pa.struct({"text": pa.string(), "rank": pa.int64()}) if struct else pa.string()
    column = pa.array(entries, kind(form))
    table = pa.table({"_id": ["a", "b", "c", "d"], "text": ["x"] * 4, "contexts": column})
    pq.write_table(table, tmp_path / "c.parquet")
    error = refusal(read_corpus, str(tmp_path / "c.parquet"))
    assert (error.problem, error.line) == ("column contexts has a value of more than 64 MiB", 4)


def test_rows_of_more_than_64_mib_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pq.write_table(pa.table({"query_id": ["q" * 65 * MIB], "doc_id": ["d"], "score": [1.0]}), path)
    content = bytearray(path.read_bytes())
    content[4:1000] = bytes(996)  # reading the values would fail
    path.write_bytes(content)
    assert "rows have 65 MiB, and a value may have 64 MiB" in str(refusal(read_run, str(path)))


def test_rows_of_large_texts_are_read_a_few_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "c.parquet")
    pq.write_table(pa.table({"_id": ["a"] * 300, "text": [f"{row}" * 50_000 for row in range(100, 400)]}), path)
    assert max(batch.num_rows for batch in tables.batches(path)) < 120
