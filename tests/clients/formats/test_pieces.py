"""Ranges of text files: together they have every line once, and each knows how many lines are before it."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankbeam.transforms.clients.formats import pieces

CONTENTS = st.lists(st.sampled_from([b"", b"a", b"bc\r", b"long line", "é".encode()]), max_size=12).map(b"\n".join)


@given(CONTENTS, st.booleans(), st.sets(st.integers(0, 90)), st.integers(1, 20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_is_in_one_range(tmp_path: Path, content: bytes, ends: bool, cuts: set[int], block: int) -> None:
    content += b"\n" if ends else b""
    path = tmp_path / "file"
    path.write_bytes(content)
    borders = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    read: list[bytes] = []
    for begin, end in pairwise(borders):
        assert pieces.lines_before(str(path), begin, block) == len(read)
        blocks = b"".join(pieces.read_blocks(str(path), begin, end, block))
        read += blocks.split(b"\n")[: blocks.count(b"\n")]
        read += [blocks.rpartition(b"\n")[2]] if blocks and not blocks.endswith(b"\n") else []
    assert read == lines_of(content)


def lines_of(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfab\ncd\n")
    blocks = [b"".join(pieces.read_blocks(str(path), begin, end)) for begin, end in ((0, cut), (cut, 9))]
    assert b"".join(blocks) == b"ab\ncd\n"
