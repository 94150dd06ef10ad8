"""Lists of an Arrow array in another order, copied list by list instead of value by value."""

import numpy as np
import pyarrow as pa

from transforms.kernels.arrays import IntArray

_LONG = 16  # values a list, on average, from where on a copy of each list is faster than Arrow's take


def take_lists(lists: pa.ListArray, order: IntArray) -> pa.ListArray:
    """What `lists.take` gives; several times as fast for long lists.

    Args:
        lists: Arrow lists [n], without nulls, of strings, numbers, or structs of these.
        order: int64[m], which list stands at each place.

    Returns:
        Arrow lists [m].

    >>> take_lists(pa.array([["a"], ["b", "c"]]), np.array([1, 0])).to_pylist()
    [['b', 'c'], ['a']]
    """
    offsets = lists.offsets.to_numpy()
    begin, end = offsets[:-1][order], offsets[1:][order]
    total = int((end - begin).sum(dtype=np.int64))
    if total < _LONG * len(order) or total == 0 or not _is_plain(lists.values):
        return lists.take(pa.array(order))
    runs = [slice(*run) for run in zip(begin.tolist(), end.tolist(), strict=True)]
    return pa.ListArray.from_arrays(_offsets(end - begin), _taken(lists.values, runs), type=lists.type)


def _is_plain(values: pa.Array) -> bool:
    """Whether there are no nulls, and strings have offsets of 32 bits."""
    if pa.types.is_struct(values.type):
        return not values.null_count and all(_is_plain(values.field(i)) for i in range(values.type.num_fields))
    return not values.null_count and (pa.types.is_string(values.type) or pa.types.is_floating(values.type))


def _taken(values: pa.Array, runs: list[slice]) -> pa.Array:
    if pa.types.is_struct(values.type):
        children = [_taken(values.field(i), runs) for i in range(values.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(values.type))
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy()
        return pa.array(np.concatenate([numbers[run] for run in runs]))
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    taken = np.concatenate([lengths[run] for run in runs])
    text = np.concatenate([data[offsets[run.start] : offsets[run.stop]] for run in runs])
    return pa.StringArray.from_buffers(len(taken), _offsets(taken).buffers()[1], pa.py_buffer(text))


def _offsets(lengths: IntArray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)
