"""Plug-ins of other packages: their entry points, and the objects that these name."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rankbeam.transforms.records.errors import InputError


@cache
def registered(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; two packages may not register different objects under one name."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        existing = points.setdefault(point.name, point)
        if existing.value != point.value:
            problem = f"{existing.value} and {point.value} are installed under one name; uninstall one of the packages"
            raise InputError(f"{group} {point.name!r}: {problem}")
    return points


def loaded(group: str, name: str, kind: str) -> Any:
    """The object of an entry point; `kind` describes it in messages."""
    point = registered(group)[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        is_older = isinstance(error, ModuleNotFoundError) and error.name == point.module
        hint = "; if the package was updated, install it again (pip install -e .)" if is_older else ""
        raise InputError(f"{kind} {name!r} cannot be imported: {error}{hint}") from error
