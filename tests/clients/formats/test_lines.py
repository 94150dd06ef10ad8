"""Rows and texts whose lines are not what they seem: other line ends, other encodings, blanks in ids, very long ids."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import beir_qrels, json_texts, tab_texts, trec_qrels, trec_run, write, write_table
from support.readers import BYTE_ORDER_MARK, Reader, queries, read_corpus, refusal, run

from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.formats.rows import read_qrels, read_run, run_tag
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.text import LONGEST_ID
from rankbeam.transforms.records.errors import InputError

FAR = files.BLOCK_BYTES // (1 << 20) + 2
ROWS = [("q1", "d1", 1.0), ("q1", "d2", 2.0), ("q2", "d1", 1.0)]
TEXTS = [("q1", "a text"), ("q2", "another"), ("q3", "a third")]
FILES: list[tuple[Reader, str]] = [
    (read_qrels, trec_qrels(ROWS)),
    (read_qrels, beir_qrels(ROWS)),
    (read_run, trec_run(ROWS)),
    (read_queries, tab_texts(TEXTS)),
    (read_queries, json_texts(TEXTS)),
    (read_corpus, tab_texts(TEXTS)),
]


@pytest.mark.parametrize(("reader", "content"), FILES)
@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\u0085", "\u2028", "\u2029"])
def test_lines_that_end_otherwise_are_refused(tmp_path: Path, reader: Reader, content: str, end: str) -> None:
    for name in ("file", "file.gz"):
        error = refusal(reader, write(tmp_path / name, content.replace("\n", end)))
        assert (error.line, "LF" in str(error)) == (1, True)


@pytest.mark.parametrize("role", ["queries", "corpus", "evidence", "answers"])
def test_json_lines_that_a_return_alone_ends_are_refused_before_they_are_read(tmp_path: Path, role: str) -> None:
    rows = json_texts(TEXTS)
    with pytest.raises(InputError, match=":1: holds a carriage return without a line feed; end lines with LF"):
        recognise(write(tmp_path / "file", rows.replace("\n", "\r")), role)
    assert recognise(write(tmp_path / "other", rows.replace("\n", "\r\n")), role) is Format.JSON_LINES


@pytest.mark.parametrize(("reader", "content"), FILES)
@pytest.mark.parametrize("end", ["\r\n", "\r\r\n"])
def test_a_return_before_the_line_feed_is_part_of_the_end(
    tmp_path: Path, reader: Reader, content: str, end: str
) -> None:
    plain, returned = (write(tmp_path / name, content.replace("\n", end)) for name, end in (("a", "\n"), ("b", end)))
    assert list(map(repr, reader(plain))) == list(map(repr, reader(returned)))


@pytest.mark.long
@pytest.mark.parametrize(("reader", "content"), FILES)
@pytest.mark.parametrize("end", ["\r", "\u2028"])
def test_one_line_that_ends_otherwise_is_refused_past_the_first_block(
    tmp_path: Path, reader: Reader, content: str, end: str
) -> None:
    first, second, third = content.splitlines()[-3:]
    filler = (" " * (1 << 20) + "\n") * FAR
    error = refusal(reader, write(tmp_path / "file", f"{first}\n{filler}{second}{end}{third}\n"))
    assert (error.line, "LF" in str(error)) == (FAR + 2, True)


@pytest.mark.parametrize(("reader", "content"), FILES)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le"])
def test_other_encodings_are_refused(tmp_path: Path, reader: Reader, content: str, encoding: str) -> None:
    error = refusal(reader, write(tmp_path / "file", content.encode(encoding)))
    assert (error.line, "UTF-8" in str(error)) == (1, True)


@pytest.mark.parametrize(("reader", "content"), FILES)
def test_a_byte_order_mark_inside_a_file_is_refused(tmp_path: Path, reader: Reader, content: str) -> None:
    rows = content.encode().splitlines(keepends=True)
    path = write(tmp_path / "joined", BYTE_ORDER_MARK + b"".join(rows[:2]) + BYTE_ORDER_MARK + b"".join(rows[2:]))
    assert refusal(reader, path).line == 3


def test_a_text_may_hold_any_character(tmp_path: Path) -> None:
    texts = ["one\rtwo", "one\u2028two\tthree\tfour", "with\ufeffin", "\v\fthe\u0085end"]
    path = write(tmp_path / "queries", tab_texts((f"q{place}", text) for place, text in enumerate(texts)))
    assert [text for _, text, _ in queries(path)] == [text.strip() for text in texts]
    path = write(tmp_path / "queries", json_texts((f"q{place}", text) for place, text in enumerate(texts)))
    assert [text for _, text, _ in queries(path)] == texts


@given(
    texts=st.lists(st.text(st.sampled_from("ab \t"), max_size=5), min_size=2, max_size=4),
    ends=st.lists(st.sampled_from("\r\v\f\x1c\u0085\u2028"), min_size=3, max_size=3),
)
def test_lines_of_one_tab_that_something_else_joins_are_never_one_text(
    texts: list[str], ends: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f"d{place}\t{text.replace(chr(9), ' ')}" for place, text in enumerate(texts)]
    joined = "".join(line + end for line, end in zip(lines, [*ends, ""], strict=False))
    refusal(read_corpus, write(tmp_path_factory.getbasetemp() / "joined", joined))


# --- Blanks in the ids of TREC runs ------------------------------------------------------------------------------

GOOD = "q Q0 d 1 0.9 tag\n"
SHIFTED = [
    ("q Q0 user guide.md 2 0.8\n", "guide.md"),  # as many words as a good line has
    ("q Q0 user guide.md 2 0.8 tag\n", "guide.md"),
    ("q\tQ0\tuser guide\t2\t0.8\ttag\n", "guide"),
    ("q Q0 a b c 2 0.8 tag\n", "b"),
    ("q Q0 big inf 2 0.8 tag\n", "inf"),
    ("q Q0 not nan 2 0.8\n", "nan"),
    ("q one Q0 d 2 0.8\n", "d"),
]


@pytest.mark.parametrize(("line", "word"), SHIFTED)
@pytest.mark.parametrize("good", [GOOD, "q Q0 d 1.0 0.9 tag\n", GOOD.replace(" tag", ""), GOOD.replace(" ", "\t")])
def test_a_rank_that_is_no_number_is_refused(tmp_path: Path, good: str, line: str, word: str) -> None:
    for rows in (good * 2 + line + good, good * 2 + line * 3 + good):
        error = refusal(read_run, write(tmp_path / "run", rows))
        problem = "the rank is not a finite number" if word in ("inf", "nan") else f"the rank '{word}' is not a number"
        assert (error.line, problem in str(error)) == (3, True)


@pytest.mark.parametrize("ranks", [["0", "0", "0"], ["1", "2.0", "-3"], ["+1", "1e3", ".5"], ["9" * 30, "1", "2"]])
def test_any_number_may_be_a_rank(tmp_path: Path, ranks: list[str]) -> None:
    lines = [f"q Q0 d{place} {rank} {-place} t\n" for place, rank in enumerate(ranks)]
    table = run(write(tmp_path / "run", "".join(lines)))
    assert table == [("q", f"d{place}", -place, place + 1) for place in range(len(ranks))]


def test_a_tag_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "run", b"# c\nq Q0 d 1 0.9 caf\xe9\nq Q0 e 2 0.8 \xff\n")
    with pytest.raises(InputError, match=":2: is not UTF-8"):
        run_tag(path)
    assert run_tag(write(tmp_path / "run", b"q Q0 d 1 0.9 t\nq Q0 e 2 0.8 \xff\n")) == "t"


# --- Very long ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "line"),
    [
        (read_qrels, "q 0 {} 1\n"),
        (read_qrels, "{}\td\t1\n"),
        (read_run, "q Q0 {} 1 1 t\n"),
        (read_run, "{} Q0 d 1 1 t\n"),
        (read_queries, "{}\ttext\n"),
        (read_queries, '{{"_id": "{}", "text": "a"}}\n'),
    ],
)
def test_an_id_has_a_longest_length(tmp_path: Path, reader: Reader, line: str) -> None:
    longest, more = "é" * (LONGEST_ID // 2), "é" * (LONGEST_ID // 2) + "x"
    list(reader(write(tmp_path / "file", line.format("a") + line.format(longest))))
    error = refusal(reader, write(tmp_path / "file", line.format("a") + line.format(more) + line.format("b")))
    assert (error.line, "longer than 8,192 bytes" in str(error)) == (2, True)


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
def test_an_id_in_parquet_has_a_longest_length(tmp_path: Path, reader: Reader) -> None:
    names = ["a", "x" * LONGEST_ID, "x" * (LONGEST_ID + 1)]
    columns = {"query_id": names, "doc_id": ["d"] * 3, "score": [1.0] * 3, "text": ["t"] * 3}
    error = refusal(reader, write_table(tmp_path / "file", columns))
    assert (error.line, "longer than 8,192 bytes" in str(error)) == (3, True)


@pytest.mark.parametrize("reader", [read_qrels, read_run, read_queries, read_corpus])
def test_a_line_without_an_end_is_refused(tmp_path: Path, reader: Reader) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(files.LONGEST_LINE + (1 << 20))  # it takes no room on the disk
    assert "has a line of more than 64 MiB; end lines with LF" in str(refusal(reader, str(path)))


def test_columns_of_strings_are_utf8(tmp_path: Path) -> None:
    wrong = pa.array([b"a", b"caf\xe9"]).view(pa.string())
    good = pa.array(["a", "b"])
    for reader, column in (
        (read_run, "query_id"),
        (read_qrels, "doc_id"),
        (read_queries, "text"),
        (read_corpus, "more"),
    ):
        columns = {"query_id": good, "doc_id": good, "score": [1.0, 2.0], "text": good, "more": good, column: wrong}
        error = refusal(reader, write_table(tmp_path / "file", columns))
        assert (error.line, "is not UTF-8" in str(error)) == (2, True)
