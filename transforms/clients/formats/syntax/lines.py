"""Refuse lines with the line ends of other systems, or in another encoding.

Lines end with LF, or with CR and LF. A file with other line ends would be read as one long line, and ids in UTF-16
would match no other id.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.records.errors import InputError

_BYTE_ORDER_MARK = "\ufeff"
_MARKED = "contains a byte order mark, as files joined from several files do; remove it"
_IN_ASCII = [
    (b"\v", "holds a vertical tab; end lines with LF"),
    (b"\f", "holds a form feed; end lines with LF"),
]
_BEYOND_ASCII = [
    ("\u0085".encode(), "holds a next line character (U+0085); end lines with LF"),
    ("\u2028".encode(), "holds a line separator (U+2028); end lines with LF"),
    ("\u2029".encode(), "holds a paragraph separator (U+2029); end lines with LF"),
    (_BYTE_ORDER_MARK.encode(), _MARKED),
]
_LONE_RETURN = "holds a carriage return without a line feed; end lines with LF"
_OBJECTS_APART = re.compile(rb"\}[ \t]*\r[ \t\r]*\{")  # JSON has no such place, not even in a string
Place = tuple[str, int]  # a file and a line number, from 1
CONVERT = "is not UTF-8; convert the file, for example with iconv"
_ARROW = "is a compressed Arrow file; decompress it, for example with gunzip"
_OTHER_KINDS = {
    b"PK\x03\x04": "is a workbook of Excel or another ZIP archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook of Excel or another document of Office; save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it, or compress it with gzip",
    b"\x04\x22\x4d\x18": "is compressed with lz4, as ranx saves runs; save it as JSON, Parquet or TREC",
    b"\xfd7zXZ": "is compressed with xz; decompress it, or compress it with gzip",
    b"BZh91AY&SY": "is compressed with bzip2; decompress it, or compress it with gzip",
    b"SQLite format 3\0": "is a database of SQLite; export its table as CSV",
    b"PAR1": "is a compressed Parquet file; decompress it, for example with gunzip",
    b"ARROW1": _ARROW,
    b"\xff\xff\xff\xff": _ARROW,
    b"%PDF-": "is a PDF file, which only a folder of documents may hold",
}  # problems by a file's first bytes; without this check, the file would be taken for UTF-16
_DUCKDB = "is a database of DuckDB; export its table with COPY documents TO 'documents.parquet'"


def refuse_other_encoding(path: str, block: bytes, lines: int) -> None:
    """Refuse files that are not text, and bytes of value 0, which only occur in UTF-16 and UTF-32."""
    if lines == 0:
        for beginning, problem in _OTHER_KINDS.items():
            if block.startswith(beginning):
                raise InputError(problem, path=path)
    if (position := block.find(b"\0")) >= 0:
        if lines == 0 and block[8:12] == b"DUCK":  # after a checksum
            raise InputError(_DUCKDB, path=path)
        problem = "holds a NUL byte, as UTF-16 does; convert the file to UTF-8, for example with iconv"
        raise InputError(problem, path=path, line=lines + block.count(b"\n", 0, position) + 1)


def refuse_other_ends(path: str, block: bytes, lines: int) -> None:
    """Refuse rows that hold a line end of another system, or a byte order mark."""
    problems = [(block.find(end), problem) for end, problem in _IN_ASCII if end in block]
    if not block.isascii():  # searching for characters beyond ASCII takes longer
        problems += [(block.find(end), problem) for end, problem in _BEYOND_ASCII if end in block]
    if b"\r" in block:
        problems += [(position, _LONE_RETURN) for position in _first_lone_return(block)]
    if problems:
        position, problem = min(problems)
        raise InputError(problem, path=path, line=lines + block.count(b"\n", 0, position) + 1)


def refuse_joined_objects(path: str, block: bytes, first: str) -> None:
    """Refuse a file of JSON lines, which begins with a block, if CR alone ends the first line."""
    apart = _OBJECTS_APART.search(block) if first.lstrip().startswith("{") else None
    if apart is not None:
        raise InputError(_LONE_RETURN, path=path, line=block.count(b"\n", 0, apart.start()) + 1)


def refuse_joined(path: str, text: str, line: int) -> None:
    """Refuse a line of id, tab and text that is really several lines with other line ends than LF.

    A text may hold any character. A line counts as several if the part after another line end has as many tabs as the
    part before it.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise InputError(_MARKED, path=path, line=line)
    first, *others = text.splitlines() or [""]
    tabs = first.count("\t")
    if tabs and any(other.count("\t") == tabs for other in others):
        raise InputError("holds several lines, and LF ends none of them; end lines with LF", path=path, line=line)


def _first_lone_return(block: bytes) -> list[int]:
    """The position of the first CR that no LF, CR or end of the block follows; empty if there is no such CR."""
    data = np.frombuffer(block, np.uint8)
    returns = np.flatnonzero(data[:-1] == ord("\r"))
    following = data[returns + 1]
    lone = returns[(following != ord("\n")) & (following != ord("\r"))]
    return [int(position) for position in lone[:1]]


def repeated_at(problem: str, places: Sequence[Place], advice: str = "") -> InputError:
    """An error for a repeated row: it is located at the last place, and names the earlier ones."""
    *before, (path, line) = places
    earlier = ", ".join(f"line {row}" if name == path else f"{name}:{row}" for name, row in before)
    also = f" (also at {earlier})" if earlier else ""
    return InputError(f"{problem}{also}" + (f"; {advice}" if advice else ""), path=path, line=line)


def refuse_not_utf8(path: str, line: pa.Array, column: pa.StringArray, what: str = "") -> None:
    """Refuse strings that are not UTF-8, which neither Arrow's readers nor its casts check."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:  # ten times faster than validation
        return
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        for row, value in enumerate(column.cast(pa.binary()).to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                raise InputError(f"{what} {CONVERT}".lstrip(), path=path, line=line[row].as_py()) from error
        raise
