"""What no line of text may hold: a character that others end lines with, or what another encoding leaves.

Lines end with LF, or with CR and LF. A file whose lines end otherwise would be read as one long line, and a file in
UTF-16 as ids that nothing else has.
"""

import numpy as np

from rankbeam.transforms.records.errors import InputError

_BYTE_ORDER_MARK = "\ufeff"
_MARKED = "holds a byte order mark inside, as where files were joined; take it out"
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


def refuse_other_encoding(path: str, block: bytes, lines: int) -> None:
    """Refuse bytes of value 0, which text has in UTF-16 and UTF-32 only.

    Args:
        path: the file, for the message.
        block: lines of it.
        lines: how many lines came before.

    Raises:
        InputError: there is one.
    """
    if (place := block.find(b"\0")) >= 0:
        problem = "holds a NUL byte, as UTF-16 does; convert the file to UTF-8, for example with iconv"
        raise InputError(problem, path=path, line=lines + block.count(b"\n", 0, place) + 1)


def refuse_other_ends(path: str, block: bytes, lines: int) -> None:
    """Refuse rows with a character in a line that others end lines with, or with a byte order mark.

    Args:
        path: the file, for the message.
        block: whole lines of judgements or of a run.
        lines: how many lines came before.

    Raises:
        InputError: there is one.
    """
    found = [(block.find(end), what) for end, what in _IN_ASCII if end in block]
    if not block.isascii():  # what is beyond ASCII takes longer to look for
        found += [(block.find(end), what) for end, what in _BEYOND_ASCII if end in block]
    if b"\r" in block:
        found += [(place, "holds a carriage return without a line feed; end lines with LF") for place in _lone(block)]
    if found:
        place, problem = min(found)
        raise InputError(problem, path=path, line=lines + block.count(b"\n", 0, place) + 1)


def refuse_joined(path: str, text: str, line: int) -> None:
    """Refuse a line of id, tab and text that holds several of them, ended otherwise than with LF.

    A text may hold any character. It is taken for several lines where, behind a line end of another kind, there are as
    many tabs as before it.

    Args:
        path: the file, for the message.
        text: the line.
        line: its number.

    Raises:
        InputError: it seems to be several lines, or begins with a byte order mark.

    >>> refuse_joined("corpus", "d1\\ta text\\rwith a return", 1)
    >>> refuse_joined("corpus", "d1\\ta text\\rd2\\tanother", 1)
    Traceback (most recent call last):
    rankbeam.transforms.records.errors.InputError: corpus:1: holds several lines, and LF ends none of them; ...
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise InputError(_MARKED, path=path, line=line)
    first, *others = text.splitlines() or [""]
    tabs = first.count("\t")
    if tabs and any(other.count("\t") == tabs for other in others):
        raise InputError("holds several lines, and LF ends none of them; end lines with LF", path=path, line=line)


def _lone(block: bytes) -> list[int]:
    """Where the first CR is that stands neither before LF, or another CR, nor at the end; nothing where there is none.

    >>> _lone(b"a\\r\\nb\\r\\r\\nc\\r"), _lone(b"a\\rb\\n")
    ([], [1])
    """
    data = np.frombuffer(block, np.uint8)
    returns = np.flatnonzero(data[:-1] == ord("\r"))
    following = data[returns + 1]
    lone = returns[(following != ord("\n")) & (following != ord("\r"))]
    return [int(place) for place in lone[:1]]
