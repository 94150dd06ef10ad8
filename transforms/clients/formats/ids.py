"""The rules for ids, in every format."""

from collections.abc import Iterator

import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.text import BLANKS, LONGEST_ID, edge_blanks, lengths

_BLANKS = "begins or ends with a blank, so it matches no id without the blank; remove it"
LEAST_INEXACT = 2**53
INEXACT = "is a floating-point number above 2^53, where different ids become equal; write it as a text"
_LONG = f"is longer than {LONGEST_ID:,} bytes"


def faults(ids: pa.StringArray) -> Iterator[tuple[BoolArray, str]]:
    """For each fault that an id can have, the ids that have it, and its description.

    >>> [bad.tolist() for bad, _ in faults(pa.array(["a", "", "b "]))]
    [[False, True, False], [False, False, False], [False, False, True]]
    """
    sizes = lengths(ids)
    yield sizes == 0, "is empty"
    yield sizes > LONGEST_ID, _LONG
    yield edge_blanks(ids), _BLANKS


def fault(name: str) -> str | None:
    """The fault of one id; None for a valid id.

    >>> fault("d 1"), fault(""), fault("d1\\n") == fault(" d1") == _BLANKS
    (None, 'is empty', True)
    """
    if not name:
        return "is empty"
    if name[0] in BLANKS or name[-1] in BLANKS:
        return _BLANKS
    return _LONG if len(name) * 4 > LONGEST_ID and len(name.encode(errors="replace")) > LONGEST_ID else None
