"""Slices: groups of queries by an attribute, by several at once, or by the rank at which a configuration has a hit.

A slice such as `rank(ContextRR)` groups the queries of each configuration by the rank of the first hit, whose
reciprocal is the metric.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.grouping import grouped

ALL = "all"  # the slice of all queries

MISSING = "(none)"  # the value of an attribute that a query does not have

CROSS = "×"  # joins crossed attributes; experiments may also write `*`


UNKNOWN = "(unknown)"  # the rank of a query without a value

RANKED_BY = ("RR", "ContextRR")  # the metrics whose values are reciprocal ranks

_RANK = re.compile(r"rank\((.+)\)")
_ALONE = 10
_GROUPS = ((11, "11 to 20"), (21, "21 to 50"), (51, "51 and more"))


def canonical(name: str) -> str:
    """The form that the tables use for a slice named in an experiment.

    >>> canonical("intent * difficulty")
    'intent×difficulty'
    """
    return CROSS.join(part.strip() for part in name.replace("*", CROSS).split(CROSS))


def attributes_of(name: str) -> list[str]:
    """The attributes that queries are sliced by; none for slices by rank.

    >>> attributes_of("intent×difficulty"), attributes_of("rank(RR@10)")
    (['intent', 'difficulty'], [])
    """
    return [] if ranked_by(name) else name.split(CROSS)


def ranked_by(name: str) -> str | None:
    """The metric of slices by rank; None for slices by attributes.

    >>> ranked_by("rank(RR@10)"), ranked_by("rank(ContextRR)=01"), ranked_by("rank")
    ('RR@10', 'ContextRR', None)
    """
    match = _RANK.fullmatch(name.partition("=")[0])
    return None if match is None else match[1]


def rank_labels(values: FloatArray) -> list[str]:
    """A label for the rank that each reciprocal rank means; labels sort as the ranks do, and high ranks share one.

    >>> rank_labels(np.array([1.0, 1 / 7, 1 / 20, 1 / 1000, 0.0, np.nan]))
    ['01', '07', '11 to 20', '51 and more', '(none)', '(unknown)']
    """
    return [_rank_label(value) for value in values.tolist()]


def first_rank(label: str) -> int | None:
    """The first rank of a label; None if it has no rank.

    >>> first_rank("07"), first_rank("11 to 20"), first_rank("(none)")
    (7, 11, None)
    """
    digits = label[:2]
    return int(digits) if digits.isdecimal() else None


def _rank_label(value: float) -> str:
    if value != value:
        return UNKNOWN
    if value <= 0.0:
        return MISSING
    rank = round(1.0 / value)
    return f"{rank:02}" if rank <= _ALONE else next(label for first, label in reversed(_GROUPS) if rank >= first)


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
    """The value of one attribute of every query; `MISSING` if a query has none."""
    values = []
    for attributes in queries.column("attributes").to_pylist():
        value = next((item["value"] for item in attributes or () if item["name"] == name), None)
        values.append(MISSING if value is None else value)
    return values


def in_order(names: Iterable[str]) -> list[str]:
    """Slices of a run, those of each attribute by the number that their values begin with.

    >>> in_order(["all", "turn=(none)", "turn=1", "turn=10", "turn=2", "kind=b", "kind=a"])
    ['all', 'turn=(none)', 'turn=1', 'turn=2', 'turn=10', 'kind=b', 'kind=a']
    """
    by_attribute = grouped((grouping_of(name), name) for name in names)
    return [name for group in by_attribute.values() for name in sorted(group, key=_first_number)]


def _first_number(name: str) -> int:
    match = re.match("[0-9]+", value_of(name))
    return -1 if match is None else int(match[0])


def slices_of(queries: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str, BoolArray]]:
    """The slices of n queries, each bool[n]: all queries, then one for each value of each attribute or crossing."""
    yield ALL, np.ones(queries.num_rows, bool)
    values = {attribute: slice_values(queries, attribute) for name in names for attribute in attributes_of(name)}
    for name in names:
        attributes = attributes_of(name)
        if not attributes:
            continue
        labels = [np.array([f"{attribute}={value}" for value in values[attribute]], object) for attribute in attributes]
        crossed = reduce(lambda left, right: left + CROSS + right, labels)
        yield from _members(crossed)


def slices_by_rank(name: str, values: FloatArray) -> Iterator[tuple[str, BoolArray]]:
    """The slices by rank, each bool[k, n], by values float64[k, n] of k configurations and n queries."""
    labels = np.array([[f"{name}={label}" for label in rank_labels(row)] for row in values], object)
    for label, members in _members(labels.ravel()):
        yield label, members.reshape(values.shape)


def _members(labels: np.ndarray) -> Iterator[tuple[str, BoolArray]]:
    """Every distinct label, ascending, and its rows."""
    names, numbers = np.unique(labels, return_inverse=True)
    for number, name in enumerate(names.tolist()):
        yield name, numbers == number
