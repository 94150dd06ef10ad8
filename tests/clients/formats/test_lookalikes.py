"""Ids and columns that look right and are not: what would join with nothing, or with another, is refused."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.inputs import write, write_table
from support.readers import HEADER, Reader, queries, read_corpus, refusal, run

from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.texts import read_queries

BLANKS = [
    (read_qrels, HEADER + "q1\td1\t1\nq1\td2 \t1\n", 3),
    (read_qrels, HEADER + "q1\td1\t1\n q1\td2\t1\n", 3),
    (read_qrels, "query_id,doc_id,grade\nq1,d1 ,1\n", 2),
    (read_run, "q1\td1 \t1\n", 1),
    (read_run, "query_id,doc_id,score\nq1,d1,2\nq1, d2,1\n", 3),
    (read_run, '{"q1": {"d1": 2, "d2 ": 1}}', None),
    (read_queries, '{"_id": "q1 ", "text": "a"}\n', 1),
    (read_queries, "id,text\nq1\u0020,a\n", 2),
    (read_corpus, '{"_id": "d1", "text": "a"}\n{"_id": "\\td2", "text": "a"}\n', 2),
]


@pytest.mark.parametrize(("reader", "content", "line"), BLANKS)
def test_an_id_with_a_blank_at_an_end_is_refused(
    tmp_path: Path, reader: Reader, content: str, line: int | None
) -> None:
    error = refusal(reader, write(tmp_path / "file", content))
    assert (error.line, "begins or ends with white space" in str(error)) == (line, True)


def test_blanks_inside_an_id_and_around_fields_of_trec_are_read(tmp_path: Path) -> None:
    table = {"query_id": ["q 1"], "doc_id": ["d 1"], "score": [1.0]}
    assert run(write_table(tmp_path / "run", table)) == [("q 1", "d 1", 1.0, 1)]
    assert run(write(tmp_path / "trec", " q1  Q0\td1 1 0.5 tag \n")) == [("q1", "d1", 0.5, 1)]


def test_the_document_of_a_table_of_pyterrier_is_docno(tmp_path: Path) -> None:
    table = {"qid": ["1"], "docid": [4], "docno": ["7"], "rank": [0], "score": [2.5], "query": ["who"]}
    assert run(write_table(tmp_path / "run", table)) == [("1", "7", 2.5, 1)]


def test_two_columns_that_may_be_the_grade_are_refused(tmp_path: Path) -> None:
    table = {"qid": ["1"], "docno": ["7"], "score": [2.5], "label": [1]}
    assert "score and label may all be the grade" in str(refusal(read_qrels, write_table(tmp_path / "a", table)))
    assert "score and label may all be the grade" in str(
        refusal(read_qrels, write(tmp_path / "b", "qid,docno,score,label\n1,7,2.5,1\n"))
    )
    assert refusal_free(read_qrels, write_table(tmp_path / "c", table | {"grade": [3]})) == 3.0


def refusal_free(reader: Reader, path: str) -> float:
    """The number of a file's only row."""
    (batch,) = reader(path)
    return float(batch.column(2)[0].as_py())


def test_whole_numbers_are_ids_without_point_and_exponent(tmp_path: Path) -> None:
    numbers = [1.0, 1e10, float(2**53 - 1)]
    texts = "".join(json.dumps({"_id": number, "text": "a"}) + "\n" for number in numbers)
    table = {"_id": numbers, "text": ["a"] * 3}
    expected = ["1", "10000000000", "9007199254740991"]
    assert [name for name, _, _ in queries(write(tmp_path / "lines", texts))] == expected
    assert [name for name, _, _ in queries(write_table(tmp_path / "table", table))] == expected


def test_decimals_are_ids_without_zeros_at_their_end(tmp_path: Path) -> None:
    """NUMERIC columns of BigQuery have nine digits behind the point."""
    numbers = [Decimal(0), Decimal("1.50"), Decimal(10**28 + 1)]
    for chosen, expected in ((numbers, ["0", "1.5", str(10**28 + 1)]), (numbers[:1] * 3, ["0"] * 3)):
        column = pa.array(chosen, pa.decimal128(38, 9))
        path = write_table(tmp_path / "table", {"_id": column, "text": ["a"] * 3})
        assert [name for name, _, _ in queries(path)] == expected


def test_floats_that_stand_for_several_whole_numbers_are_no_ids(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table", {"_id": pa.array([1.0, 2.0**53]), "text": ["a", "b"]})
    lines = write(tmp_path / "lines", '{"_id": 1, "text": "a"}\n{"_id": 1e16, "text": "b"}\n')
    for path in (table, lines):
        assert (refusal(read_queries, path).line, "above 2^53" in str(refusal(read_queries, path))) == (2, True)


def test_a_rank_twice_in_a_run_of_three_columns_is_refused(tmp_path: Path) -> None:
    error = refusal(read_run, write(tmp_path / "run", "q1\td1\t1\nq2\td1\t1\nq1\td2\t3\nq1\td3\t1\n"))
    assert (error.line, "scores need TREC's six" in str(error)) == (4, True)
