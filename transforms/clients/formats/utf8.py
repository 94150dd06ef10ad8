"""Refuse Arrow strings that are not UTF-8: neither Arrow's readers nor its casts check that."""

import numpy as np
import pyarrow as pa

from rankbeam.transforms.records.errors import InputError

CONVERT = "is not UTF-8; convert the file, for example with iconv"


def refuse_wrong(path: str, line: pa.Array, column: pa.StringArray, what: str = "") -> None:
    """Refuse a column of strings that is not UTF-8."""
    if _is_ascii(column):
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


def _is_ascii(column: pa.StringArray) -> bool:
    """Test the highest bit of every byte, which is ten times as fast as validation."""
    _, offsets, data = column.buffers()
    if data is None:
        return True
    ends = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    return not (np.frombuffer(data, np.int8)[ends[0] : ends[1]] < 0).any()
