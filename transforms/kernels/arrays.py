"""Array types that kernels take and return, and array operations that several kernels share."""

import functools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

FloatArray: TypeAlias = npt.NDArray[np.float64]
SingleArray: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
HashArray: TypeAlias = npt.NDArray[np.uint64]
StringArray: TypeAlias = pa.StringArray | pa.LargeStringArray


def one_thread() -> AbstractContextManager[object]:
    """Multiply matrices in one thread, so that the last bits of products are the same on every machine.

    Runs have threads of their own. Next to these, BLAS threads wait for each other, and take up to five times the CPU.
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limited


@functools.cache
def _libraries() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController  # most commands multiply nothing

    return ThreadpoolController()


def offsets_of(groups: IntArray, count: int) -> IntArray:
    """Return the first row of each group, in rows sorted by group.

    Args:
        groups: int64[n], group of each row, ascending, from 0 to count - 1.
        count: number of groups, empty ones included.

    Returns:
        int64[count + 1]; group g holds the rows from offsets[g] to offsets[g + 1].

    >>> offsets_of(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=count), out=offsets[1:])
    return offsets


def position_in_group(groups: IntArray, count: int) -> IntArray:
    """The position, from 0, of each row inside its group, for rows that are sorted by group.

    >>> position_in_group(np.array([0, 0, 2]), 3).tolist()
    [0, 1, 0]
    """
    return np.arange(len(groups)) - offsets_of(groups, count)[groups]


def runs_of(group: IntArray, value: npt.NDArray[Any]) -> IntArray:
    """Number the runs of neighbours with the same group and the same value, from 0.

    >>> runs_of(np.array([0, 0, 0, 1]), np.array([2.0, 1.0, 1.0, 1.0])).tolist()
    [0, 1, 1, 2]
    """
    begins = np.ones(len(group), bool)
    begins[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
    return np.cumsum(begins) - 1


def concatenated_ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The numbers of several ranges, one range after the other.

    >>> concatenated_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    first = np.cumsum(counts) - counts
    return np.repeat(starts - first, counts) + np.arange(int(counts.sum()))


def stable_order(groups: IntArray, count: int) -> IntArray:
    """Sort rows by group; inside each group they keep their order.

    Args:
        groups: int64[n], group of each row, from 0 to count - 1.
        count: number of groups.

    Returns:
        int64[n].

    >>> stable_order(np.array([1, 0, 1]), 2).tolist()
    [1, 0, 2]
    """
    if (groups[1:] >= groups[:-1]).all():
        return np.arange(len(groups))
    # NumPy sorts 16-bit numbers by radix, ten times as fast; two passes of it sort any number of groups.
    order = np.argsort((groups & 0xFFFF).astype(np.uint16), kind="stable")
    if count > 1 << 16:
        order = order[
            np.argsort((groups[order] >> 16).astype(np.uint16 if count <= 1 << 32 else np.int64), kind="stable")
        ]
    return order
