"""Read values below a header with names in common use, separated by commas or tabs, as pandas writes them."""

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from rankbeam.transforms.clients.formats.syntax import lines, named_columns
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.arrays import BoolArray, HashArray
from rankbeam.transforms.records.errors import InputError

HEADER_LINES = 1
_QUOTE, _LINE_END, _RETURN = b'"\n\r'
_ONE, _BLOCK = np.uint64(1), 1 << 20
_AT_ONCE = 1 << 17  # twice as fast as larger arrays, which the system would map and unmap at each step
_ADVICE = "put the cell in quotes, and double those inside"
_INSIDE = f"has a quote inside a cell; {_ADVICE}"
_BEHIND = f"has text behind a quote that ends a cell; {_ADVICE}"
_IN_TWO_LINES = "begins a quoted cell that does not end in its line; a quote is missing"
_ROW = re.compile(r"Row #(\d+)")


def header(line: str, role: str) -> list[str] | None:
    """The names of a header that has all columns of a role; None for any other line."""
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=_separator(line)), [])]
    except csv.Error:  # a long text, or an unexpected line end
        return None
    return names if named_columns.has_columns(names, role) else None


def _separator(line: str) -> str:
    return "\t" if "\t" in line else ","


def batches(path: str, role: str) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The file's names of the required columns, by our names, and its rows as texts."""
    first = files.read_head(path).decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r")
    columns = header(first, "qrels" if role == "subtopic_qrels" else role)
    if columns is None:
        raise InputError(f"has no header with the columns of {role}", path=path, line=1)
    names = named_columns.find_columns(path, columns, role)
    is_text = named_columns.COLUMN_NAMES[role] is named_columns.TEXTS
    chosen = columns if is_text else list(names.values())
    separator = _separator(first)
    with _translate_errors(path), files.open_text(path) as stream:
        reader = arrow_csv.open_csv(
            pa.PythonFile(_StrictQuotes(stream, path, separator, is_text=is_text), mode="r"),
            arrow_csv.ReadOptions(use_threads=False, column_names=columns, skip_rows=1),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=is_text),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), include_columns=chosen),
        )
        yield names, _non_empty(path, reader)


def read(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read judgements or a run, as `named_columns.map_columns` does; the header counts as line 1."""
    for names, rows in batches(path, role):
        yield from named_columns.map_columns(path, rows, names, schema, HEADER_LINES)


def _non_empty(path: str, reader: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        yield batch
    if not rows:
        raise InputError("the file has a header and no row below it", path=path)


class _StrictQuotes:
    """A stream that checks quotes strictly: Arrow's reader accepts cells that are not closed, or closed too early.

    Quotes open and close in turn; a doubled quote closes a cell and opens it again. So it is enough to check the byte
    before each opening quote, the byte after each closing quote, and the end of the file. All checks work on bits,
    64 bytes at a time, since text may have as many quotes as letters.
    """

    closed = False

    def __init__(self, stream: IO[bytes], path: str, separator: str = ",", *, is_text: bool) -> None:
        self._stream, self._path, self._separator, self._is_text = stream, path, ord(separator), is_text
        self._read = self._opened_at = 0  # in bytes: lines are only counted for error messages
        self._is_inside, self._last = False, b"\n"

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        if not block:
            if self._is_inside and size:
                raise self._error_at("begins a quoted cell that does not end; is the file cut short?", self._opened_at)
            return block
        has_quotes = self._is_inside or self._last == b'"' or b'"' in block
        step = _AT_ONCE if has_quotes else len(block)
        for begin in range(0, len(block), step):
            part = block[begin : begin + step]
            if has_quotes:
                self._check(np.frombuffer(self._last + part, np.uint8))
            self._read += len(part)
            self._last = part[-1:]
        return block

    def _check(self, data: npt.NDArray[np.uint8]) -> None:
        """Check the quotes of a block; `data` begins with the last byte before the block."""
        is_quote, ends = data == _QUOTE, data == _LINE_END
        neighbours = _bits(is_quote | ends | (data == self._separator) | (data == _RETURN))
        quotes = _bits(is_quote)
        quotes[0] &= ~_ONE  # that byte was checked with the previous block
        inside = _running_parity(quotes, is_odd=self._is_inside)
        opens, closes = quotes & inside, quotes & ~inside
        if self._last == b'"' and not self._is_inside:
            closes[0] |= _ONE
        place, bit = divmod(len(data) - 1, 64)
        closes[place] &= ~(_ONE << np.uint64(bit))  # the byte after the last one is in the next block
        before, after = neighbours << _ONE, neighbours >> _ONE
        before[1:] |= neighbours[:-1] >> np.uint64(63)
        after[:-1] |= neighbours[1:] << np.uint64(63)
        early, late = opens & ~before, closes & ~after
        over = np.zeros_like(quotes) if self._is_text else _bits(ends) & inside
        if (wrong := early | late | over).any():
            word = int(np.flatnonzero(wrong)[0])
            lowest = wrong[word] & (~wrong[word] + _ONE)
            raise self._error_at(
                _IN_TWO_LINES if lowest & over[word] else _INSIDE if lowest & early[word] else _BEHIND,
                self._read + 64 * word + int(lowest).bit_length() - 2,
            )
        self._is_inside = bool(inside[place] >> np.uint64(bit) & _ONE)
        if self._is_inside and opens.any():
            word = int(np.flatnonzero(opens)[-1])
            self._opened_at = self._read + 64 * word + int(opens[word]).bit_length() - 2

    def _error_at(self, problem: str, place: int) -> InputError:
        with files.open_text(self._path) as stream:
            sizes = (min(_BLOCK, place - begin) for begin in range(0, place, _BLOCK))
            line = 1 + sum(stream.read(size).count(b"\n") for size in sizes)
        return InputError(problem, path=self._path, line=line)

    def close(self) -> None:
        """Leave the stream open: its owner closes it."""


def _bits(mask: BoolArray) -> HashArray:
    """Pack a mask into whole words, with the first value in the lowest bit."""
    packed = np.packbits(mask, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), "<u8")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def _running_parity(bits: HashArray, *, is_odd: bool) -> HashArray:
    """Set each bit up to which an odd number of bits are set; `is_odd` if an odd number were set before the first bit.

    >>> [f"{word:b}" for word in _running_parity(np.array([0b1001, 1 << 62], np.uint64), is_odd=False).tolist()]
    ['111', '1100000000000000000000000000000000000000000000000000000000000000']
    """
    parity = bits.copy()
    for step in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(step)
    odd = np.bitwise_xor.accumulate(parity >> np.uint64(63))
    before = np.concatenate([[np.uint64(is_odd)], odd[:-1] ^ np.uint64(is_odd)])
    return parity ^ (np.uint64(0) - before)


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        text = str(error)
        row = _ROW.search(text)
        if "UTF8" in text:
            raise InputError(lines.CONVERT, path=path) from error
        problem = text.removeprefix("CSV parse error: ").split(": ", 1)[-1]
        raise InputError(f"cannot be read: {problem}", path=path, line=int(row[1]) if row else None) from error
