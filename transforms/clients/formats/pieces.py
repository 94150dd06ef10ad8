"""Pieces of large files for several workers to read at once: byte ranges of text, row groups of Parquet."""

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.cases.source import is_cases
from rankbeam.transforms.clients.formats.recognise import WHOLE, recognise
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.clients.storage.parquet import MAGIC, open_file
from rankbeam.transforms.records.errors import InputError

PIECE_BYTES = 64 << 20
_DIVIDED = ("qrels", "run")  # roles whose large files are read in pieces
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"

Reader = Callable[..., Iterator[pa.RecordBatch]]
"""Reads a file's rows by its path; for divided roles, a second argument is the part to read."""


class Piece(NamedTuple):
    """A file, a table, a stream of a table, or a part of a file."""

    path: str
    part: range | None = None  # bytes of text, or row groups of Parquet; None for all
    version: matching.Version | None = None  # of the file that was divided

    def lines_before(self) -> int:
        """The number of lines or rows before this piece; only counted for error messages."""
        if not self.part:
            return 0
        if files.read_raw(self.path, len(MAGIC)) != MAGIC:
            return lines_before(self.path, self.part.start)
        with open_file(self.path) as file:
            return sum(file.metadata.row_group(group).num_rows for group in range(self.part.start))


def pieces_of(pattern: str, role: str) -> list[Piece]:
    """The pieces of a pattern's files, or a table, in order. Only uncompressed text and Parquet are divided."""
    if role not in _DIVIDED or is_table(pattern) or is_cases(pattern):
        return [Piece(path) for path in sources.expand(pattern)]
    return [
        Piece(version[0], part, version)
        for version in matching.version(pattern)
        for part in _parts_of_file(*version[:2], role)
    ]


def rows_of(piece: Piece, reader: Reader) -> Iterator[pa.RecordBatch]:
    """Read a piece; an error names the line in the whole file. A file that changes between two pieces is refused."""
    if piece.part is None:
        yield from reader(piece.path)
        return
    try:
        yield from reader(piece.path, piece.part)
        if matching.version(piece.path) != (piece.version,):
            raise InputError("was replaced or changed while it was read; run again", path=piece.path)
    except InputError as error:
        if error.line is None:
            raise
        raise InputError(error.problem, path=error.path, line=error.line + piece.lines_before()) from error


def _parts_of_file(path: str, size: int, role: str) -> Iterator[range | None]:
    if size <= PIECE_BYTES:
        yield None
        return
    head = files.read_raw(path, len(MAGIC))
    if head == MAGIC:
        yield from _groups(path)
    elif head.startswith(_GZIP) or recognise(path, role) in WHOLE:
        yield None
    else:
        yield from (range(begin, min(begin + PIECE_BYTES, size)) for begin in range(0, size, PIECE_BYTES))


def _groups(path: str) -> Iterator[range]:
    with open_file(path) as file:
        sizes = [file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups)]
    begin = total = 0
    for group, size in enumerate(sizes):
        if total and total + size > PIECE_BYTES:
            yield range(begin, group)
            begin, total = group, 0
        total += size
    yield range(begin, len(sizes))


def read_blocks(path: str, begin: int, end: int, block_bytes: int = files.BLOCK_BYTES) -> Iterator[bytes]:
    """Read the lines whose first byte is in a range of an uncompressed file, in blocks of whole lines.

    Together, the ranges [0, a), [a, b), [b, size) yield every line exactly once, for any a and b.
    """
    with files.translate_errors(path, "reading failed"), files.open_raw(path) as handle:
        yield from _lines_from(path, handle, begin, end, block_bytes)


def lines_before(path: str, position: int, block_bytes: int = files.BLOCK_BYTES) -> int:
    """The number of lines of an uncompressed file that begin before a position."""
    lines, remaining = 0, position
    with files.open_raw(path) as handle:
        while remaining > 0 and (block := handle.read(min(remaining, block_bytes))):
            lines, remaining, last = lines + block.count(b"\n"), remaining - len(block), block[-1:]
    return lines + (position > 0 and last != b"\n")


def _lines_from(path: str, handle: BinaryIO, begin: int, end: int, block_bytes: int) -> Iterator[bytes]:
    at = max(0, begin - 1)  # a line begins at `begin` if the byte before it ends another
    handle.seek(at)
    is_inside, rest = begin == 0, b""
    while block := handle.read(block_bytes):
        at += len(block)
        rest += block
        if not is_inside:
            if not (first := rest.find(b"\n") + 1):
                rest = b""
                continue
            is_inside, rest = True, rest[first:]
        start = at - len(rest)  # position of `rest`, which begins a line
        if start >= end:
            return
        last = rest.find(b"\n", end - 1 - start) if at >= end else -1
        if last >= 0:
            yield _strip_bom(rest[: last + 1], start)
            return
        if whole := rest.rfind(b"\n") + 1:
            yield _strip_bom(rest[:whole], start)
            rest = rest[whole:]
        files.refuse_endless(path, [rest])
    if rest and is_inside and at - len(rest) < end:
        yield _strip_bom(rest, at - len(rest))


def _strip_bom(block: bytes, start: int) -> bytes:
    return block.removeprefix(_BYTE_ORDER_MARK) if start == 0 else block
