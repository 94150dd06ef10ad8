"""Usage of a run's services: in total, and for each configuration."""

from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.columns import COMMON
from rankbeam.transforms.records.errors import InputError

Row = dict[str, Any]
_COMMON = {field.name for field in COMMON}
_SERVICE = ("stage", "pool", "model")


def usage_rows(results: Results) -> list[Row]:
    """The rows of `usage`, without the common columns; none of a run that is older than the table."""
    try:
        rows: list[Row] = results.table("usage").to_pylist()
    except InputError:
        return []
    return [{name: value for name, value in row.items() if name not in _COMMON} for row in rows]


def usage_of(rows: list[Row], config_id: str | None) -> list[Row]:
    """The usage of one configuration, by stage, quota pool and model; empty for a run of an earlier version."""
    return [
        {name: row[name] for name in _SERVICE} | {name: value for name, value in of.items() if name != "config_id"}
        for row in rows
        for of in row["configurations"] or ()
        if of["config_id"] == config_id
    ]


def seconds(number: float | None) -> str:
    """A duration, as people read it.

    >>> seconds(0.0304), seconds(1.5), seconds(None)
    ('30 ms', '1.50 s', '–')
    """
    if number is None:
        return "–"
    return f"{number:.2f} s" if number >= 1 else f"{number * 1000:.0f} ms"
