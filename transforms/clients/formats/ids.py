"""The rules for ids, in every format."""

from collections.abc import Iterator

import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.text import LONGEST_ID, lengths

_LONG = f"is longer than {LONGEST_ID:,} bytes"


def faults(ids: pa.StringArray) -> Iterator[tuple[BoolArray, str]]:
    """For each fault that an id can have, the ids that have it, and its description.

    Args:
        ids: without nulls.

    >>> [bad.tolist() for bad, _ in faults(pa.array(["a", ""]))]
    [[False, True], [False, False]]
    """
    sizes = lengths(ids)
    yield sizes == 0, "is empty"
    yield sizes > LONGEST_ID, _LONG


def fault(name: str) -> str | None:
    """The fault of one id; None for a valid id.

    >>> fault("d1"), fault("")
    (None, 'is empty')
    """
    if not name:
        return "is empty"
    return _LONG if len(name) * 4 > LONGEST_ID and len(name.encode(errors="replace")) > LONGEST_ID else None
