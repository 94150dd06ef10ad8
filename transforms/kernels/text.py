"""Split blocks of text into columns, for all lines at once.

Fields of TREC files are separated by any mixture of blanks and tabs, and the files may hold carriage returns, blank
lines, comments and trailing words. Fields of BEIR's judgements are separated by single tabs, and ids may hold blanks
and quotes. No CSV reader reads both formats, and Python's `split` is an order of magnitude slower.

In most blocks all lines have the same number of fields. `parse_rows` gives those blocks to Arrow's CSV reader, which
is ten times as fast as `split_blanks` and `split_tabs`, and returns None for all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from rankbeam.transforms.kernels.arrays import BoolArray, ByteArray, IntArray, StringArray

_NEWLINE, _RETURN, _TAB, _HASH, _BLANK = (ord(character) for character in "\n\r\t# ")
BLANKS = " \t\r\n\v\f"
_IS_BLANK: BoolArray = np.isin(np.arange(256), [ord(character) for character in BLANKS])
_OTHER_BLANKS = b"\t\r\v\f"
_TO_BLANK = bytes.maketrans(_OTHER_BLANKS, b" " * len(_OTHER_BLANKS))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_ID = 8192
"""The longest id, in bytes: the longest URL that servers accept. Hashing takes one step for every eight bytes."""


@dataclass(frozen=True)
class Fields:
    """The fields of the lines of one block; lines without any field are left out.

    Attributes:
        line: int64[m], number of each line inside the block, from 0.
        count: int64[m], the number of fields of each line.
        columns: the requested columns as Arrow strings of m values; a line that is too short has "".
        lines_seen: the number of lines of the block, empty ones included.
    """

    line: IntArray
    count: IntArray
    columns: tuple[StringArray, ...]
    lines_seen: int


def split_blanks(block: bytes, positions: Sequence[int]) -> Fields:
    """Split lines at runs of blanks and tabs, as trec_eval does; a line that begins with # is a comment.

    Args:
        block: whole lines; only the last one may lack its newline.
        positions: the positions, from 0, of the columns to return.

    Returns:
        The fields; a line may have more fields than those.

    >>> fields = split_blanks(b"q1 Q0\\td2  1 0.5 run\\r\\n\\n", positions=[0, 2, 4])
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
    ends_open = len(data) > 0 and data[-1] != _NEWLINE
    return _gather(data, start, end, line_of_field, positions, len(newline) + int(ends_open))


def split_tabs(block: bytes, positions: Sequence[int]) -> Fields:
    """Split lines at every tab; blanks and quotes belong to the field.

    Args:
        block: whole lines; only the last one may lack its newline.
        positions: the positions, from 0, of the columns to return.

    Returns:
        The fields. Lines of white space alone are left out.

    >>> fields = split_tabs(b'q 1\\td"2\\t1\\n', positions=[0, 1, 2])
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
    has_return = (data[end] == _NEWLINE) & (end > start) & (data[end - 1] == _RETURN)
    end = end - has_return
    has_text = np.zeros(len(newline), bool)
    has_text[np.searchsorted(newline, np.flatnonzero(~_IS_BLANK[data]))] = True
    keep = has_text[line_of_field]
    return _gather(data, start[keep], end[keep], line_of_field[keep], positions, len(newline))


@dataclass(frozen=True)
class LineLayout:
    """The layout of the lines of a file of judgements or of a run."""

    positions: tuple[int, int, int]  # the positions, from 0, of the query id, the document id and the number
    at_least: int  # the least number of fields of a line
    at_most: int  # the largest number of fields of a line
    tabs: bool = False  # True if single tabs separate the fields, False if runs of blanks and tabs do
    # The position of a further column that holds a number in every valid row; None if no column does. It is parsed only
    # as a check: an additional word earlier on the line puts something else there.
    rank: int | None = None
    # The position of a further column that is kept as text, which `parse_rows` cannot do; None for none.
    subtopic: int | None = None

    def split(self, block: bytes) -> Fields:
        """The fields at `positions` of all lines, valid or not, followed by the rank or subtopic of the layout."""
        further = [position for position in (self.rank, self.subtopic) if position is not None]
        return (split_tabs if self.tabs else split_blanks)(block, [*self.positions, *further])


def parse_rows(block: bytes, layout: LineLayout) -> tuple[StringArray, StringArray, pa.DoubleArray] | None:
    """Read a block in which every line is a valid row, fast.

    Args:
        block: whole lines; only the last one may lack its newline.
        layout: the layout of the lines.

    Returns:
        Query ids, document ids and finite numbers of all lines, the same as from `layout.split`. None if the block
        is empty, if the lines have different numbers of fields, if a line is empty, a comment or not valid, or
        if an id is longer than `LONGEST_ID`, or begins or ends with a blank.
        Row and line have the same number; blanks after the last newline are not a line.

    >>> run = LineLayout(positions=(0, 2, 4), at_least=5, at_most=100)
    >>> [column.to_pylist() for column in parse_rows(b"q1 Q0 d2 1 0.5 run\\nq1\\tQ0  d1 2 0.25 run", run)]
    [['q1', 'q1'], ['d2', 'd1'], [0.5, 0.25]]
    >>> parse_rows(b"q1 Q0 d2 1 0.5 run\\n\\n", run)
    """
    if layout.subtopic is not None:
        return None
    if layout.tabs:
        block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        return None if b"\r" in block else _parse_csv(block, layout, "\t")
    if not _has_uneven_blanks(block) and (rows := _parse_csv(block, layout, " ")):
        return rows
    even = _even_blanks(block)
    return _parse_csv(even, layout, " ") if even != block else None


def edge_blanks(strings: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Return whether a string begins or ends with an ASCII blank, from the bytes; no string may be null.

    >>> edge_blanks(pa.array(["a b", "a ", "\\ta", "", " "])).tolist()
    [False, True, True, False, True]
    """
    sizes: npt.NDArray[np.int32] = pc.binary_length(strings).to_numpy()
    if not sizes.any():
        return np.zeros(len(strings), bool)
    _, offsets, data = strings.buffers()
    start = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings)]
    letters = np.frombuffer(data, np.uint8)
    if letters[start[0] : start[-1] + sizes[-1]].min() > _BLANK:  # true of nearly all ids: no byte can be a blank
        return np.zeros(len(strings), bool)
    first, last = start.clip(max=len(letters) - 1), (start + sizes - 1).clip(min=0)
    is_blank: npt.NDArray[np.bool_] = _IS_BLANK[letters[first]] | _IS_BLANK[letters[last]]
    return is_blank & (sizes > 0)


def _has_uneven_blanks(block: bytes) -> bool:
    if any(blank in block for blank in _OTHER_BLANKS):
        return True
    # Look for two blanks by comparing 16-bit numbers, at even and at odd bytes: ten times as fast as `in`.
    pairs = (np.frombuffer(block, np.uint16, (len(block) - at) // 2, at) for at in (0, 1) if len(block) > at)
    return any(bool((pair == (_BLANK << 8 | _BLANK)).any()) for pair in pairs)


def _even_blanks(block: bytes) -> bytes:
    """The block with one blank between the words of a line, and none around them.

    >>> _even_blanks(b" q1\\t\\tQ0 d1 \\r\\n")
    b'q1 Q0 d1\\n'
    """
    data = np.frombuffer(block.translate(_TO_BLANK), np.uint8)
    blank = data == _BLANK
    white = blank | (data == _NEWLINE)
    keep = ~blank
    keep[:-1] |= ~white[1:]
    even: ByteArray = data[keep]
    leading = even == _BLANK
    leading[1:] &= even[:-1] == _NEWLINE
    return (even[~leading] if leading.any() else even).tobytes()


def _parse_csv(
    block: bytes, layout: LineLayout, separator: str
) -> tuple[StringArray, StringArray, pa.DoubleArray] | None:
    first_end = block.find(b"\n")
    width = block.count(separator.encode(), 0, first_end if first_end >= 0 else len(block)) + 1
    fits = layout.at_least <= width <= layout.at_most
    if not fits or block.startswith(_BYTE_ORDER_MARK):  # Arrow would drop the mark; inside a file it is part of an id
        return None
    try:
        query, doc, *numbers = _read_csv(block, layout, width, separator)
    except pa.ArrowInvalid:
        return None
    comment = not layout.tabs and b"#" in block and pc.any(pc.starts_with(query, "#")).as_py()
    sizes = [pc.binary_length(column).to_numpy() for column in (query, doc)]
    named = all(size.min() > 0 and size.max() <= LONGEST_ID for size in sizes)
    even = not layout.tabs or not any(edge_blanks(column).any() for column in (query, doc))
    finite = all(np.isfinite(column.to_numpy()).all() for column in numbers)
    return (query, doc, numbers[0]) if named and even and finite and not comment else None


def _read_csv(block: bytes, layout: LineLayout, width: int, separator: str) -> list[pa.Array]:
    names = [str(position) for position in range(width)]
    query, doc, number = (names[position] for position in layout.positions)
    types = {query: pa.string(), doc: pa.string(), number: pa.float64()}
    if layout.rank is not None:
        types[names[layout.rank]] = pa.float64()  # integers would parse faster, but then 0x1F is accepted
    table = csv.read_csv(
        pa.py_buffer(block),
        # One chunk, in this thread: the caller, which reads many blocks, decides how to use the other cores.
        csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
        # An empty line becomes a row of empty fields, which the check of the ids refuses.
        csv.ParseOptions(delimiter=separator, quote_char=False, escape_char=False, ignore_empty_lines=False),
        # "NA" and "null" are ids like any other.
        csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False),
    )
    return [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in table.columns]


def _gather(
    data: ByteArray, start: IntArray, end: IntArray, line_of_field: IntArray, positions: Sequence[int], lines_seen: int
) -> Fields:
    line, first, count = np.unique(line_of_field, return_index=True, return_counts=True)
    columns = []
    for position in positions:
        present = count > position
        field = first[present] + position
        field_start, field_end = np.zeros(len(line), np.int64), np.zeros(len(line), np.int64)
        field_start[present], field_end[present] = start[field], end[field]
        columns.append(substrings(data, field_start, field_end))
    return Fields(line, count, tuple(columns), lines_seen)


def substrings(data: ByteArray, start: IntArray, end: IntArray) -> StringArray:
    """Copy the byte ranges, which ascend and do not overlap, into one Arrow string array.

    >>> substrings(np.frombuffer(b"one two", np.uint8), np.array([0, 4]), np.array([3, 7])).to_pylist()
    ['one', 'two']
    """
    offsets = np.concatenate([[0], np.cumsum(end - start)])
    edge = np.zeros(len(data) + 1, np.int8)
    full = end > start
    # Two ranges may touch: "+=" and "-=" cancel out where one ends and the next begins.
    edge[start[full]] += 1
    edge[end[full]] -= 1
    inside = np.cumsum(edge[:-1], dtype=np.int8).view(bool)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[inside].tobytes())]
    return pa.StringArray.from_buffers(len(start), buffers[1], buffers[2])
