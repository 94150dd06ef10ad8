"""Splitting whole blocks, against Python's split on each line."""

from collections.abc import Callable

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transforms.kernels.text import Fields, split_blanks, split_tabs

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
WANTED = st.lists(st.integers(0, 7), max_size=4, unique=True)


def numbered_lines(block: bytes) -> list[tuple[int, bytes]]:
    """The lines of a block, without the empty one that follows the last newline."""
    lines = block.split(b"\n")
    return list(enumerate(lines[:-1] if lines[-1] == b"" else lines))


def assert_fields(fields: Fields, expected: list[tuple[int, list[bytes]]], block: bytes, wanted: list[int]) -> None:
    assert fields.line.tolist() == [number for number, _ in expected]
    assert fields.count.tolist() == [len(parts) for _, parts in expected]
    assert fields.lines_seen == len(numbered_lines(block))
    columns = [[parts[place].decode() if place < len(parts) else "" for _, parts in expected] for place in wanted]
    assert [column.to_pylist() for column in fields.columns] == columns
    for column in fields.columns:
        column.validate(full=True)


@settings(max_examples=300)
@given(block=BLOCKS | FILES, wanted=WANTED)
@example(block=b"q1\t0\td1\t1 trailing words\r\n \t\r\n# comment\n\xc3\xa9", wanted=[0, 2, 4])
def test_blanks_split_as_in_python(block: bytes, wanted: list[int]) -> None:
    expected = [(number, line.split()) for number, line in numbered_lines(block)]
    kept = [(number, parts) for number, parts in expected if parts and not parts[0].startswith(b"#")]
    assert_fields(split_blanks(block, wanted), kept, block, wanted)


@settings(max_examples=300)
@given(block=BLOCKS | FILES, wanted=WANTED)
@example(block=b'q 1\t"d\t1\r\n\t\t\r\n\tq\t\r\n# kept\t\r', wanted=[0, 1, 2])
def test_tabs_split_as_in_python(block: bytes, wanted: list[int]) -> None:
    expected = [(number, line.removesuffix(b"\r").split(b"\t")) for number, line in numbered_lines(block)]
    kept = [(number, parts) for number, parts in expected if b"".join(parts).strip()]
    assert_fields(split_tabs(block, wanted), kept, block, wanted)


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
