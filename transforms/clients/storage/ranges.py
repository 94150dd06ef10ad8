"""Read a range of a text file: several workers read one large file at once."""

from collections.abc import Iterator
from typing import BinaryIO

from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.records.errors import InputError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_blocks(path: str, begin: int, end: int, block_bytes: int = files.BLOCK_BYTES) -> Iterator[bytes]:
    """Read the lines whose first byte lies in a range of an uncompressed file, in blocks of whole lines.

    The ranges [0, a), [a, b), [b, size) have every line once, whatever their borders.
    """
    try:
        with files.open_raw(path) as handle:
            yield from _lines_from(path, handle, begin, end, block_bytes)
    except gcs.errors(path) as error:
        raise InputError(f"cannot be read on: {gcs.explained(error, path)}", path=path) from error


def lines_before(path: str, position: int, block_bytes: int = files.BLOCK_BYTES) -> int:
    """Number of lines of an uncompressed file that begin before a position, without the one that begins there."""
    lines, left = 0, position
    with files.open_raw(path) as handle:
        while left > 0 and (block := handle.read(min(left, block_bytes))):
            lines, left, last = lines + block.count(b"\n"), left - len(block), block[-1:]
    return lines + (position > 0 and last != b"\n")


def _lines_from(path: str, handle: BinaryIO, begin: int, end: int, block_bytes: int) -> Iterator[bytes]:
    at = max(0, begin - 1)  # a line begins at `begin` where the byte before it ends another
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
        start = at - len(rest)  # of `rest`, where a line begins
        if start >= end:
            return
        last = rest.find(b"\n", end - 1 - start) if at >= end else -1
        if last >= 0:
            yield _unmarked(rest[: last + 1], start)
            return
        if whole := rest.rfind(b"\n") + 1:
            yield _unmarked(rest[:whole], start)
            rest = rest[whole:]
        files.refuse_endless(path, [rest])
    if rest and is_inside and at - len(rest) < end:
        yield _unmarked(rest, at - len(rest))


def _unmarked(block: bytes, start: int) -> bytes:
    return block.removeprefix(_BYTE_ORDER_MARK) if start == 0 else block
