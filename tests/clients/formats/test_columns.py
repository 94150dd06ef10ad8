"""Columns of Parquet files: bytes as text, names that stand twice, ids that are none, and files without rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inputs import write, write_table
from support.readers import Reader, attributes, queries, read_corpus, refusal

from rankbeam.pipelines.experiment.dataset_checks import check
from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.texts import read_entries, read_queries
from rankbeam.transforms.records.errors import InputError

BYTES = [
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.binary()),
    pa.list_(pa.binary()),
    pa.struct([("de", pa.binary())]),
]


def values(kind: pa.DataType, text: bytes) -> pa.Array:
    inside: object = [text] if pa.types.is_list(kind) else {"de": text} if pa.types.is_struct(kind) else text
    return pa.array([inside], pa.binary()).cast(kind) if pa.types.is_dictionary(kind) else pa.array([inside], kind)


@pytest.mark.parametrize("kind", BYTES, ids=str)
def test_bytes_are_text(tmp_path: Path, kind: pa.DataType) -> None:
    good = values(kind, "Café 日本".encode())
    path = write_table(tmp_path / "corpus", {"_id": ["d1"], "title": good, "text": ["a"], "place": good})
    (entry,) = read_entries(path, "corpus")
    shown = (
        '["Café 日本"]'
        if pa.types.is_list(kind)
        else '{"de": "Café 日本"}'
        if pa.types.is_struct(kind)
        else "Café 日本"
    )
    assert (entry.title, entry.attributes["place"]) == (shown, shown)
    assert attributes(path) == [{"place": shown}]


@pytest.mark.parametrize("kind", BYTES, ids=str)
@pytest.mark.parametrize("name", ["title", "place"])
def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path, kind: pa.DataType, name: str) -> None:
    columns = {"_id": ["d1", "d2"], "text": ["a", "b"]}
    column = pa.concat_arrays([values(kind, b"good"), values(kind, b"caf\xe9")])
    path = write_table(tmp_path / "corpus", {**columns, name: column})
    assert str(refusal(read_corpus, path)) == f"{path}:2: the column {name} is not UTF-8: leave it out, or make it text"


@pytest.mark.parametrize(
    ("reader", "names", "twice"),
    [
        (read_qrels, ["query_id", "doc_id", "grade", "grade"], "grade"),
        (read_run, ["query_id", "query_id", "doc_id", "score"], "query_id"),
        (read_queries, ["_id", "text", "text"], "text"),
        (read_queries, ["_id", "text", "language", "language"], "language"),
        (read_corpus, ["_id", "_id", "text"], "_id"),
        (read_corpus, ["_id", "title", "title", "text"], "title"),
    ],
)
def test_a_column_that_stands_twice_is_refused(tmp_path: Path, reader: Reader, names: list[str], twice: str) -> None:
    path = tmp_path / "file"
    pq.write_table(pa.table([pa.array(["1"])] * len(names), names=names), path)
    assert str(refusal(reader, str(path))) == f"{path}: has two columns named '{twice}'; keep one"


def test_a_column_that_is_not_read_may_stand_twice(tmp_path: Path) -> None:
    table = pa.table([pa.array(["1"])] * 5, names=["query_id", "doc_id", "score", "text", "text"])
    pq.write_table(table, tmp_path / "file")
    assert len(list(read_run(str(tmp_path / "file")))) == 1


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1.0, float("nan")]), "is not a finite number"),
        (pa.array([1.0, float("inf")], pa.float32()), "is not a finite number"),
        (pa.array([True, False]), "is a Boolean"),
    ],
)
def test_an_id_is_a_text_or_a_number(tmp_path: Path, reader: Reader, column: pa.Array, problem: str) -> None:
    rest = {"doc_id": ["d1", "d2"], "score": [1.0, 2.0], "text": ["a", "b"]}
    error = refusal(reader, write_table(tmp_path / "file", {"query_id": column, **rest}))
    assert problem in str(error)
    assert error.line == (1 if "Boolean" in problem else 2)


@pytest.mark.parametrize("reader", [read_qrels, read_run])
def test_a_boolean_is_no_number(tmp_path: Path, reader: Reader) -> None:
    number = {"grade" if reader is read_qrels else "score": pa.array([True])}
    error = refusal(reader, write_table(tmp_path / "file", {"query_id": ["q"], "doc_id": ["d"], **number}))
    assert (error.line, "is a Boolean; write a number" in str(error)) == (1, True)


def test_an_attribute_that_python_does_not_have_is_refused(tmp_path: Path) -> None:
    far = pa.array([0, 1 << 60], pa.timestamp("ms"))
    path = write_table(tmp_path / "queries", {"_id": ["q1", "q2"], "text": ["a", "b"], "asked": far})
    assert str(refusal(read_queries, path)).startswith(f"{path}:2: a column cannot be read")
    assert queries(write_table(tmp_path / "queries", {"_id": ["q1"], "text": ["a"], "asked": far[:1]}))


NOTHING = {name: pa.array([], pa.string()) for name in ("query_id", "doc_id", "score", "text")}


@pytest.mark.parametrize(
    ("role", "expected"),
    [("run", "a run was"), ("qrels", "judgements were"), ("queries", "queries were"), ("corpus", "a corpus was")],
)
def test_a_table_without_rows_is_as_empty_as_a_file_of_text(tmp_path: Path, role: str, expected: str) -> None:
    for path in (write(tmp_path / "text", b""), write_table(tmp_path / "table", NOTHING)):
        with pytest.raises(InputError) as caught:
            check([path], role)
        assert str(caught.value) == f"{path}: the file is empty; {expected} expected"


def test_one_of_several_tables_may_be_empty(tmp_path: Path) -> None:
    empty = [write_table(tmp_path / name, NOTHING) for name in ("a", "b")]
    full = write_table(tmp_path / "c", {name: ["1"] for name in NOTHING})
    check([*empty, full], "run")
    with pytest.raises(InputError, match="the file is empty, and so are the others; a run was expected"):
        check(empty, "run")
