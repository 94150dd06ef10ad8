"""Slices: groups of queries by an attribute, or by several at once."""

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray

ALL = "all"
"""The slice of all queries."""

MISSING = "(none)"
"""The value of an attribute that a query does not have."""

CROSS = "×"
"""Joins crossed attributes; experiments may also write `*`."""


def canonical(name: str) -> str:
    """The form that the tables use for a slice named in an experiment.

    >>> canonical("intent * difficulty")
    'intent×difficulty'
    """
    return CROSS.join(part.strip() for part in name.replace("*", CROSS).split(CROSS))


def attributes_of(name: str) -> list[str]:
    """The attributes that queries are sliced by.

    >>> attributes_of("intent×difficulty")
    ['intent', 'difficulty']
    """
    return name.split(CROSS)


def grouping_of(name: str) -> str:
    """The attributes that one slice of a run groups by.

    >>> grouping_of("intent=how_to×difficulty=easy"), grouping_of("intent=a×b")
    ('intent×difficulty', 'intent')
    """
    return CROSS.join(part.partition("=")[0] for part in name.split(CROSS) if "=" in part)


def value_of(name: str) -> str:
    """The values of the attributes in one slice of a run.

    >>> value_of("intent=how_to×difficulty=easy"), value_of("intent=a×b")
    ('how_to × easy', 'a×b')
    """
    if CROSS not in grouping_of(name):
        return name.partition("=")[2]
    return f" {CROSS} ".join(part.partition("=")[2] if "=" in part else part for part in name.split(CROSS))


def slice_values(queries: pa.RecordBatch, name: str) -> list[str]:
    """The value of one attribute of every query, `MISSING` where a query has none."""
    values = []
    for attributes in queries.column("attributes").to_pylist():
        value = next((item["value"] for item in attributes or () if item["name"] == name), None)
        values.append(MISSING if value is None else value)
    return values


def slices_of(queries: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str, BoolArray]]:
    """The slices of some queries: all queries, then one slice for each value of each named attribute or crossing.

    Args:
        queries: n rows of `columns.QUERIES`.
        names: attributes, or crossings of them, in their canonical form.

    Yields:
        The name of a slice, and bool[n]: which of the queries belong to it.
    """
    yield ALL, np.ones(queries.num_rows, bool)
    values = {attribute: slice_values(queries, attribute) for name in names for attribute in attributes_of(name)}
    for name in names:
        attributes = attributes_of(name)
        labels = [np.array([f"{attribute}={value}" for value in values[attribute]], object) for attribute in attributes]
        crossed = reduce(lambda left, right: left + CROSS + right, labels)
        yield from _members(crossed)


def _members(labels: np.ndarray) -> Iterator[tuple[str, BoolArray]]:
    """Every distinct label, ascending, and its rows."""
    names, numbers = np.unique(labels, return_inverse=True)
    for number, name in enumerate(names.tolist()):
        yield name, numbers == number
