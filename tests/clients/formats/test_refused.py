"""Refusals of readers name the file, the line and a remedy."""

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest
from support.inputs import (
    write,
)
from support.readers import BYTE_ORDER_MARK, HEADER, Reader, read_corpus, refusal

from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.syntax import lines
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

BAD_LINES = [
    (read_qrels, "q 0 d 1\n\nq 0 d\n", 3, "fewer than 4 columns"),
    (read_qrels, HEADER + "q\td\t1\nq\td\n", 3, "fewer than 3 columns"),
    (read_qrels, HEADER + "q\td\t1\td\n", 2, "more than 3 columns"),
    (read_qrels, HEADER + "q\td\t1\n\td\t1\n", 3, "query id is empty"),
    (read_qrels, HEADER + "q\t\t1\n", 2, "document id is empty"),
    (read_qrels, "q 0 d 1\r\nq 0 d high\n", 2, "'high' is not a number"),
    (read_qrels, HEADER + "q\td\tone\n", 2, "'one' is not a number"),
    (read_qrels, HEADER + "q\td\t\n", 2, "'' is not a number"),
    (read_qrels, "q 0 d 1\n# c\nq 0 d nan\n", 3, "finite"),
    (read_qrels, "q 0 d -inf\n", 1, "finite"),
    (read_run, "q Q0 d 1 1 t\nq Q0 d 1\n", 2, "fewer than 5 columns"),
    (read_run, "q Q0 d 1 1 t\nq Q0 d 1 best t\n", 2, "'best' is not a number"),
    (read_run, "q Q0 d 1 1 t\n" + "q Q0 d 1 1 t " * 17 + "\n", 2, "more than 100 columns"),
    (read_run, "q Q0 d 1 1 t\nq Q0 d 1 " + "x" * 9000 + " t\n", 2, "the score 'x{58}… is not a number"),
    (read_run, "q Q0 d 1 1 t\n\n\nq Q0 d 1 NaN t\n", 4, "finite"),
    (read_run, "q Q0 d 1 1 t\nq Q0 d 1 1e999 t\n", 2, "finite"),
    (read_queries, "q1\ttext\nq2 no tab\n", 2, "tab"),
    (read_queries, "q1\ttext\n\ttext\n", 2, "id"),
    (read_queries, '{"_id": "1", "text": "a"}\n{"_id": "2", "te\n', 2, "not valid JSON"),
    (read_queries, '{"_id": "1", "text": "a"}\n\n["1", "a"]\n', 3, "JSON object, found list"),
    (read_queries, '{"_id": "1", "text": "a"}\n{"text": "a", "url": "u"}\n', 2, "id.*it has: text, url"),
    (read_queries, '{"_id": "1", "words": "a"}\n', 1, "text.*it has: _id, words"),
    (read_queries, '{"_id": "1", "text": "a"}\n{"_id": "2", "text": "\\ud83d"}\n', 2, "."),
    (read_queries, '{"_id": "1", "text": "a"}\n{"_id": "", "text": "a"}\n', 2, "id"),
    (read_corpus, '{"_id": "1", "text": "a"}\n{"_id": null, "text": "b"}\n', 2, "id"),
    (read_corpus, '{"_id": "1", "title": "T", "body_": "a"}\n', 1, "text.*it has: _id, title, body_"),
    (read_corpus, "d1\ttext\nd2\n", 2, "tab"),
]


@pytest.mark.parametrize(("reader", "content", "line", "words"), BAD_LINES)
@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_bad_line_is_refused_by_its_number(
    tmp_path: Path, name: str, reader: Reader, content: str, line: int, words: str
) -> None:
    path = write(tmp_path / name, content)
    error = refusal(reader, path)
    assert error.line == line
    assert str(error).startswith(f"{path}:{line}: ")
    with pytest.raises(InputError, match=words):
        raise error


def test_how_many_more_lines_are_bad_is_told(tmp_path: Path) -> None:
    error = refusal(read_qrels, write(tmp_path / "qrels", "q 0 a 1\nq 0 b x\nq 0 c y\nq 0 d 2\nq 0 e z\n"))
    assert (error.line, "2 more such lines" in str(error)) == (2, True)


@pytest.mark.parametrize(
    ("reader", "before", "bad"),
    [
        (read_qrels, b"q 0 d 1\n", b"q 0 caf\xe9 1\n"),
        (read_qrels, HEADER.encode(), b"q\xe9\td\t1\n"),
        (read_run, b"q Q0 d 1 1 t\n", b"q\xff Q0 d 1 1 t\n"),
        (read_queries, b"q\ttext\n", b"q\tcaf\xe9\n"),
        (read_corpus, b'{"_id": "1", "text": "a"}\n', b'{"_id": "2", "text": "caf\xe9"}\n'),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_by_line(tmp_path: Path, reader: Reader, before: bytes, bad: bytes) -> None:
    error = refusal(reader, write(tmp_path / "file", before + b"\n" + bad))
    assert (error.line, "UTF-8" in str(error)) == (3, True)


FAR = files.BLOCK_BYTES // (1 << 20) + 2


@pytest.mark.parametrize(
    ("reader", "good", "bad", "words"),
    [
        (read_qrels, b"q %s d 1\n", b"q 0 d x\n", "not a number"),
        (read_qrels, b"q\td\t%s\n", b"q\td\n", "fewer than 3"),
        (read_run, b"q Q0 d 1 1 %s\n", b"q Q0 d 1 nan t\n", "finite"),
        (read_queries, b"q\t%s\n", b"q\n", "tab"),
        (read_corpus, b'{"_id": "1", "text": "%s"}\n', b'{"_id": "2"}\n', "text"),
    ],
)
def test_lines_are_counted_past_the_first_block(
    tmp_path: Path, reader: Reader, good: bytes, bad: bytes, words: str
) -> None:
    content = (good.replace(b"%s", b"0" * (1 << 20)) + b"\n") * FAR + bad + good
    error = refusal(reader, write(tmp_path / "file", content))
    assert (error.line, words in str(error)) == (2 * FAR + 1, True)


def test_a_header_is_skipped_in_the_first_block_only(tmp_path: Path) -> None:
    filler = b"q\td\t" + b"0" * (1 << 20) + b"\n"
    error = refusal(read_qrels, write(tmp_path / "qrels.tsv", HEADER.encode() + filler * FAR + HEADER.encode()))
    assert (error.line, "'score' is not a number" in str(error)) == (FAR + 2, True)


QUERIES, CORPUS = '{"_id": "1", "text": "a b c"}\n', '{"_id": "1", "title": "", "text": "a"}\n'
QRELS, RUN, TOPICS = "q 0 d 1\n", "q Q0 d 1 0.5 tag\n", "<top>\n<num> Number: 301\n<title> crime\n</top>\n"


@pytest.mark.parametrize(
    ("reader", "content", "expected", "actual"),
    [
        (read_qrels, QUERIES, "judgements", "JSON lines"),
        (read_qrels, "1\twho is there\n", "judgements", r"'1\\twho is there'"),
        (read_qrels, RUN, "judgements", "TREC run"),
        (read_qrels, TOPICS, "judgements", "SGML"),
        (read_run, QRELS, "run", "TREC judgements"),
        (read_run, HEADER + "q\td\t1\n", "run", "BEIR judgements"),
        (read_run, CORPUS, "run", "JSON lines"),
        (read_queries, QRELS, "queries", "TREC judgements"),
        (read_queries, "q\t0\td\t1\n", "queries", "TREC judgements"),
        (read_queries, HEADER + "q\td\t1\n", "queries", "BEIR judgements"),
        (read_queries, RUN, "queries", "TREC run"),
        (read_queries, TOPICS, "queries", "SGML.*id, tab, text"),
        (read_queries, "only words here\n", "queries", "'only words here'"),
        (read_corpus, RUN, "corpus", "TREC run"),
        (read_corpus, "<DOC>\n<DOCNO>1</DOCNO>\n</DOC>\n", "corpus", "SGML"),
    ],
)
def test_a_wrong_format_is_named(tmp_path: Path, reader: Reader, content: str, expected: str, actual: str) -> None:
    error = refusal(reader, write(tmp_path / "file", content))
    with pytest.raises(InputError, match=f"is not .*{expected}.*; it looks like .*{actual}"):
        raise error


def test_queries_with_attributes_need_a_header(tmp_path: Path) -> None:
    """The attributes were sent to the retrievers as part of the texts."""
    error = refusal(read_queries, write(tmp_path / "queries.tsv", "q1\twho pays\tmobile\n"))
    assert "has 3 columns and no header; write the names of the columns in the first line: query_id, text" in str(error)
    assert read_queries(write(tmp_path / "empty.tsv", "q1\twho pays\t\n"))


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pa.compress(b"q1 0 d1 1\n", codec="zstd", asbytes=True), "is compressed with zstd; decompress it"),
        (b"\x04\x22\x4d\x18d@\xa7\0", "is compressed with lz4, as ranx saves runs; save it as JSON, Parquet or TREC"),
        (bz2.compress(b"q1 0 d1 1\n"), "is compressed with bzip2; decompress it"),
        (lzma.compress(b"q1 0 d1 1\n"), "is compressed with xz; decompress it"),
        (b"12345678DUCK\x40\0", "is a database of DuckDB; export its table"),
        (b"SQLite format 3\0", "is a database of SQLite; export its table"),
        (b"%PDF-1.7\n", "is a PDF file, which only a folder of documents may hold"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a workbook of Excel or another document of Office; save the sheet as CSV"),
    ],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, reader: Reader, content: bytes, words: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=f"file: {words}"):
        list(reader(str(tmp_path / "file")))


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
@pytest.mark.parametrize("content", [b"", b"\n \r\n\t\n", BYTE_ORDER_MARK])
@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_an_empty_file_is_refused(tmp_path: Path, reader: Reader, content: bytes, name: str) -> None:
    assert "empty" in str(refusal(reader, write(tmp_path / name, content)))


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (read_qrels, "judgements were expected"),
        (read_run, "a run was expected"),
        (read_queries, "queries were expected"),
        (read_corpus, "a corpus was expected"),
    ],
)
def test_an_empty_file_is_told_what_it_should_be(tmp_path: Path, reader: Reader, words: str) -> None:
    assert str(refusal(reader, write(tmp_path / "file", b""))).endswith(f"the file is empty; {words}")


@pytest.mark.parametrize(
    ("reader", "line"), [(read_qrels, "q 0 d%d 1\n"), (read_run, "q Q0 d%d 1 1 t\n"), (read_queries, "q%d\ttext\n")]
)
def test_a_gzip_file_cut_short_is_refused(tmp_path: Path, reader: Reader, line: str) -> None:
    packed = gzip.compress("".join(line % number for number in range(100_000)).encode())
    error = refusal(reader, write(tmp_path / "file", packed[: len(packed) - 100]))
    assert "cut short" in str(error)
    assert error.line is not None


def test_text_that_begins_as_the_magic_number_of_bzip2_is_text(tmp_path: Path) -> None:
    lines.refuse_other_encoding(str(tmp_path / "qrels"), b"BZhang 0 d1 1\n", 0)
