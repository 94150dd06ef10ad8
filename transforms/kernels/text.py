"""Split blocks of text into columns, for all lines at once.

TREC files are separated by any mixture of blanks and tabs, may carry carriage returns, blank lines,
comments and trailing words; BEIR's judgements are separated by single tabs and may hold blanks and
quotes inside an id. No CSV reader takes both, and Python's `split` is an order of magnitude slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.kernels.arrays import BoolArray, ByteArray, IntArray, StringArray

_NEWLINE, _RETURN, _TAB, _HASH = (ord(character) for character in "\n\r\t#")
_IS_BLANK: BoolArray = np.isin(np.arange(256), [ord(character) for character in " \t\r\n\v\f"])


@dataclass(frozen=True)
class Fields:
    """The fields of the lines of one block; lines without any field are left out.

    Attributes:
        line: int64[m], number of each line inside the block, from 0.
        count: int64[m], how many fields each line has.
        columns: the wanted columns as Arrow strings of m values; a line that is too short has "".
        lines_seen: how many lines the block holds, empty ones included.
    """

    line: IntArray
    count: IntArray
    columns: tuple[StringArray, ...]
    lines_seen: int


def split_blanks(block: bytes, wanted: Sequence[int]) -> Fields:
    """Split lines at runs of blanks and tabs, as trec_eval does; a line that begins with # is a comment.

    Args:
        block: whole lines; only the last one may lack its newline.
        wanted: the positions, from 0, of the columns to return.

    Returns:
        The fields; a line may have more of them than wanted.

    >>> fields = split_blanks(b"q1 Q0\\td2  1 0.5 run\\r\\n\\n", wanted=[0, 2, 4])
    >>> [column.to_pylist() for column in fields.columns], fields.count.tolist()
    ([['q1'], ['d2'], ['0.5']], [6])
    """
    data = np.frombuffer(block, np.uint8)
    inside = ~_IS_BLANK[data]
    edge = np.diff(inside.view(np.int8), prepend=0, append=0)
    start, end = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    newline = np.flatnonzero(data == _NEWLINE)
    line_of_field = np.searchsorted(newline, start)
    if len(start):
        first_of_line = np.flatnonzero(np.diff(line_of_field, prepend=-1))
        comment_line = line_of_field[first_of_line[data[start[first_of_line]] == _HASH]]
        if len(comment_line):
            keep = ~np.isin(line_of_field, comment_line)
            start, end, line_of_field = start[keep], end[keep], line_of_field[keep]
    return _gather(data, start, end, line_of_field, wanted, _lines(data, newline))


def split_tabs(block: bytes, wanted: Sequence[int]) -> Fields:
    """Split lines at every tab; blanks and quotes belong to the field.

    Args:
        block: whole lines; only the last one may lack its newline.
        wanted: the positions, from 0, of the columns to return.

    Returns:
        The fields. Lines of white space alone are left out.

    >>> fields = split_tabs(b'q 1\\td"2\\t1\\n', wanted=[0, 1, 2])
    >>> [column.to_pylist() for column in fields.columns]
    [['q 1'], ['d"2'], ['1']]
    """
    if block and not block.endswith(b"\n"):
        block += b"\n"
    data = np.frombuffer(block, np.uint8)
    newline = np.flatnonzero(data == _NEWLINE)
    end = np.flatnonzero((data == _TAB) | (data == _NEWLINE))
    start = np.concatenate([[0], end[:-1] + 1]) if len(end) else end
    line_of_field = np.searchsorted(newline, start)
    returned = (data[end] == _NEWLINE) & (end > start) & (data[end - 1] == _RETURN)
    end = end - returned
    written = np.zeros(len(newline), bool)
    written[np.searchsorted(newline, np.flatnonzero(~_IS_BLANK[data]))] = True
    keep = written[line_of_field]
    return _gather(data, start[keep], end[keep], line_of_field[keep], wanted, len(newline))


def _lines(data: ByteArray, newline: IntArray) -> int:
    ends_open = len(data) > 0 and data[-1] != _NEWLINE
    return len(newline) + int(ends_open)


def _gather(
    data: ByteArray,
    start: IntArray,
    end: IntArray,
    line_of_field: IntArray,
    wanted: Sequence[int],
    lines_seen: int,
) -> Fields:
    line, first, count = np.unique(line_of_field, return_index=True, return_counts=True)
    columns = []
    for position in wanted:
        there = count > position
        field = first[there] + position
        from_, to = np.zeros(len(line), np.int64), np.zeros(len(line), np.int64)
        from_[there], to[there] = start[field], end[field]
        columns.append(_strings(data, from_, to))
    return Fields(line, count, tuple(columns), lines_seen)


def _strings(data: ByteArray, start: IntArray, end: IntArray) -> StringArray:
    """Copy the byte ranges, which ascend and do not overlap, into one Arrow string array."""
    offsets = np.zeros(len(start) + 1, np.int64)
    np.cumsum(end - start, out=offsets[1:])
    edge = np.zeros(len(data) + 1, np.int8)
    full = end > start
    # Neighbours may touch: "+=" on each side keeps an end and a start at the same byte apart.
    edge[start[full]] += 1
    edge[end[full]] -= 1
    inside = np.cumsum(edge[:-1], dtype=np.int8).view(bool)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[inside].tobytes())]
    return pa.StringArray.from_buffers(len(start), buffers[1], buffers[2])
