"""Splitting whole blocks, against Python's split on each line."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.text import Fields, LineLayout, parse_rows, split_blanks, split_tabs

# U+0085, U+00A0 and U+3000 are white space to str.split but not to trec_eval, and so belong to an id.
PIECES = [" ", "  ", "\t", "\n", "\n", "\r\n", "\r", "\v", "\f", "#", '"', "'", "q1", "Q0", "d 2", "0.5"]
PIECES += ["é", "日本", "😀", "\u0085", "\u00a0", "\u3000", "a field of more than eight bytes"]
BLOCKS = st.lists(st.sampled_from(PIECES), max_size=40).map(lambda pieces: "".join(pieces).encode())
LINES = st.lists(st.sampled_from(["q1 Q0 d1 1 0.5 run", "q1\tQ0\td2\t2\t0.25\trun", "q1 0 d1", "# q1", "\tq1 ", ""]))
FILES = st.builds(
    lambda lines, newline, last: (newline.join(lines) + last).encode(),
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r\n", " more junk at\n"]),
)
POSITIONS = st.lists(st.integers(0, 7), max_size=4, unique=True)


def numbered_lines(block: bytes) -> list[tuple[int, bytes]]:
    """The lines of a block, without the empty one that follows the last newline."""
    lines = block.split(b"\n")
    return list(enumerate(lines[:-1] if lines[-1] == b"" else lines))


def assert_fields(fields: Fields, expected: list[tuple[int, list[bytes]]], block: bytes, positions: list[int]) -> None:
    assert fields.line.tolist() == [number for number, _ in expected]
    assert fields.count.tolist() == [len(parts) for _, parts in expected]
    assert fields.lines_seen == len(numbered_lines(block))
    columns = [[parts[place].decode() if place < len(parts) else "" for _, parts in expected] for place in positions]
    assert [column.to_pylist() for column in fields.columns] == columns
    for column in fields.columns:
        column.validate(full=True)


@settings(max_examples=examples(300))
@given(block=BLOCKS | FILES, positions=POSITIONS)
@example(block=b"q1\t0\td1\t1 trailing words\r\n \t\r\n# comment\n\xc3\xa9", positions=[0, 2, 4])
def test_blanks_split_as_in_python(block: bytes, positions: list[int]) -> None:
    expected = [(number, line.split()) for number, line in numbered_lines(block)]
    rows = [(number, parts) for number, parts in expected if parts and not parts[0].startswith(b"#")]
    assert_fields(split_blanks(block, positions), rows, block, positions)


@settings(max_examples=examples(300))
@given(block=BLOCKS | FILES, positions=POSITIONS)
@example(block=b'q 1\t"d\t1\r\n\t\t\r\n\tq\t\r\n# kept\t\r', positions=[0, 1, 2])
def test_tabs_split_as_in_python(block: bytes, positions: list[int]) -> None:
    expected = [(number, line.removesuffix(b"\r").split(b"\t")) for number, line in numbered_lines(block)]
    rows = [(number, parts) for number, parts in expected if b"".join(parts).strip()]
    assert_fields(split_tabs(block, positions), rows, block, positions)


@given(block=BLOCKS | FILES, cut=st.integers(0, 200))
def test_a_block_cut_between_lines_has_the_same_fields(block: bytes, cut: int) -> None:
    place = block.find(b"\n", cut) + 1
    first, second = block[:place], block[place:]
    split: Callable[[bytes, list[int]], Fields]
    for split in (split_blanks, split_tabs):
        whole, parts = split(block, [0, 2]), [split(first, [0, 2]), split(second, [0, 2])]
        lines = np.concatenate([parts[0].line, parts[1].line + parts[0].lines_seen])
        assert lines.tolist() == whole.line.tolist()
        for column, name in enumerate(whole.columns):
            assert name.to_pylist() == [value for part in parts for value in part.columns[column].to_pylist()]


# --- The fast way ------------------------------------------------------------------------------------------------

RUN = LineLayout((0, 2, 4), at_least=5, at_most=8)
TREC_QRELS = LineLayout((0, 2, 3), at_least=4, at_most=4)
BEIR_QRELS = LineLayout((0, 1, 2), at_least=3, at_most=3, tabs=True)
RANKED_RUN = LineLayout((0, 2, 4), at_least=5, at_most=8, rank=3)
LAYOUTS = [RUN, RANKED_RUN, TREC_QRELS, BEIR_QRELS]

NUMBERS = ["1", "-2", "0.25", "1e3", "+5", ".5", "5.", "1e-999", "1E5", "123456789.123456789012345"]
ODD_NUMBERS = ["1_000", "nan", "inf", "-Infinity", "1e999", "0x10", "1\0", "0,5", "1f", "high", " 1 ", "\u00a01", ""]
IDS = ["q1", "NA", "null", "nan", "日本", "\u0085", "a\u00a0b", '"', '"a', "'", "\\", "d#1", "\0", ",", "\ufeff"]
ODD_IDS = ["#q", "#", "a b", "", " ", "x" * 70, "\udcff", "\ufeff"]
BLANKS = [" "] * 6 + ["  ", "\t", " \t", "\v", "\f", "\r", "   "]
ENDS = ["\n"] * 6 + ["\r\n", " \n", "\t\r\n", "\n\n", "\n ", "\n# c\n", " more\n", "\r\r\n", "\n\ufeff", "\n#"]


@st.composite
def rows_of_text(draw: st.DrawFn, layout: LineLayout) -> bytes:
    """Lines that are faultless, or have one fault or a few; lone surrogates become bytes that are not UTF-8."""
    odd = draw(st.booleans())
    ids = st.sampled_from(IDS + ODD_IDS if odd else IDS)
    numbers = st.sampled_from(NUMBERS + ODD_NUMBERS if odd and draw(st.booleans()) else NUMBERS)
    between = st.just("\t") if layout.tabs else st.sampled_from(BLANKS if draw(st.booleans()) else [" "])
    end = st.sampled_from(ENDS if draw(st.booleans()) else ["\n"])
    width = draw(st.integers(layout.at_least, layout.at_most))
    block = draw(st.sampled_from(["", "", "", " ", "\ufeff", "\n"]))
    for _ in range(draw(st.integers(0, 6))):
        words = [draw(numbers if place in (layout.positions[2], layout.rank) else ids) for place in range(width)]
        block += words[0] + "".join(draw(between) + word for word in words[1:]) + draw(end)
    last = draw(st.sampled_from(["", "\n", "q", "q1 0 d 1", "q\td\t1\r"]))
    return (block.removesuffix("\n") + last).encode(errors="surrogateescape")


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=examples(500))
@given(data=st.data())
def test_what_is_read_fast_is_what_the_lines_hold(layout: LineLayout, data: st.DataObject) -> None:
    block = data.draw(rows_of_text(layout))
    parsed, fields = parse_rows(block, layout), layout.split(block)
    if parsed is None:
        return
    query, doc, words, *ranks = (column.to_pylist() for column in fields.columns)
    assert [column.to_pylist() for column in parsed] == [query, doc, [float(word) for word in words]]
    assert all(column.null_count == 0 and column.validate(full=True) is None for column in parsed)
    # Nothing that should be refused is in it, and its rows are its lines; blanks at the very end make none.
    lines_seen = layout.split(block.rstrip(b" \t\r\v\f")).lines_seen
    assert fields.line.tolist() == list(range(lines_seen)) == list(range(len(query)))
    assert layout.at_least <= fields.count.min() <= fields.count.max() <= layout.at_most
    assert all(query)
    assert all(doc)
    assert all(math.isfinite(float(word)) and "_" not in word for column in (words, *ranks) for word in column)


@settings(max_examples=examples(300))
@given(data=st.data(), layout=st.sampled_from(LAYOUTS))
def test_every_faultless_block_is_read_fast(data: st.DataObject, layout: LineLayout) -> None:
    names = st.sampled_from([name for name in IDS if name != "\ufeff"])
    width = data.draw(st.integers(layout.at_least, layout.at_most))
    between = st.just("\t") if layout.tabs else st.sampled_from(BLANKS)
    ends = st.sampled_from(["\n", "\r\n"] if layout.tabs else ["\n", "\r\n", " \n", "\t\r\n", "\n \t"])
    rows, block = [], ""
    for _ in range(data.draw(st.integers(1, 5))):
        words = data.draw(st.lists(names, min_size=width, max_size=width))
        words[layout.positions[2]] = data.draw(st.sampled_from(NUMBERS))
        if layout.rank is not None:
            words[layout.rank] = data.draw(st.sampled_from(NUMBERS))
        block += words[0] + "".join(data.draw(between) + word for word in words[1:]) + data.draw(ends)
        rows.append([words[place] for place in layout.positions])
    parsed = parse_rows(block.rstrip("\r\n\t ").encode(), layout)
    assert parsed is not None
    expected = [(query, doc, float(number)) for query, doc, number in rows]
    assert list(zip(*(column.to_pylist() for column in parsed), strict=True)) == expected


def test_blanks_behind_the_last_newline_are_no_line() -> None:
    parsed = parse_rows(b"q Q0 d 1 0.5 t\n \t", RUN)
    assert parsed is not None
    assert [column.to_pylist() for column in parsed] == [["q"], ["d"], [0.5]]


@pytest.mark.parametrize("rank", [b"d", b"guide.md", b"", b"nan", b"1.5.1", b"0x1F"])
@pytest.mark.parametrize("first", [b"1", b"1.0"])
def test_a_rank_that_is_no_number_is_left_to_the_tokenizer(first: bytes, rank: bytes) -> None:
    block = b"q Q0 d %b 0.5 t\nq Q0 user %b 2 0.25\n" % (first, rank)
    assert parse_rows(block, RANKED_RUN) is None
    assert rank == b"" or parse_rows(block, RUN) is not None


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\n",
        b" ",
        b"q Q0 d 1 0.5 t\n\nq Q0 e 2 0.25 t\n",  # an empty line
        b"q Q0 d 1 0.5 t\n# a comment of 6 words\n",
        b"q Q0 d 1 0.5 t\n  # a 1 of 6 words\n",
        b"# Q0 d 1 0.5 t\n",
        b"q Q0 d 1 0.5 t\nq Q0 e 2 0.25\n",  # fewer columns, though enough
        b"q  d 1 0.5 t\n",  # four columns and a tag, though five blanks
        b"q Q0 d  1 t\n",
        b"q Q0 d 1 1_000 t\n",
        b"q Q0 d 1 nan t\n",
        b"q Q0 d 1 1e999 t\n",
        b"q Q0 caf\xe9 1 1 t\n",
        b"\xef\xbb\xbfq Q0 d 1 1 t\n",  # here the mark is part of an id
    ],
)
def test_what_is_left_to_the_tokenizer(block: bytes) -> None:
    assert parse_rows(block, RUN) is None
