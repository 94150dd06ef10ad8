"""Plug-ins of other packages: their entry points, the objects that these name, and calls of these objects."""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from rankbeam.transforms.records.errors import CallError, InputError

ROUNDING = 1e-9  # the tolerance by which a plug-in's value may be out of its range


@cache
def entry_points_of(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; two packages may not register different objects under one name."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        existing = points.setdefault(point.name, point)
        if existing.value != point.value:
            both = " and ".join(f"{entry.value} of {_package(entry)}" for entry in (existing, point))
            problem = f"{both} are installed under one name; uninstall one of the packages"
            raise InputError(f"{group} {point.name!r}: {problem}")
    return points


def plug_in_label(group: str, name: str) -> str:
    """An entry point with its package, for messages."""
    return f"{group} {name!r} of {_package(entry_points_of(group)[name])}"


def load_plug_in(group: str, name: str) -> Any:
    """The object of an entry point."""
    point = entry_points_of(group)[name]
    if point.pattern.match(point.value) is None:
        raise InputError(f"{plug_in_label(group, name)}: {point.value!r} is not of the form MODULE:OBJECT")
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        is_older = isinstance(error, ModuleNotFoundError) and error.name == point.module
        hint = "; if the package was updated, install it again (pip install -e .)" if is_older else ""
        raise InputError(f"{plug_in_label(group, name)} cannot be imported: {_error_text(error)}{hint}") from error


@contextmanager
def blame_plug_in(what: str) -> Iterator[None]:
    """Name the plug-in that raises an exception other than rankbeam's own, and the line."""
    try:
        yield
    except (CallError, InputError):
        raise
    except Exception as error:
        raise InputError(f"{what} failed: {_error_text(error)}; correct it there") from error


@contextmanager
def blame_component(component: object, method: str) -> Iterator[None]:
    """Name a component of another package whose method raises an exception; a bug of rankbeam keeps its traceback."""
    if type(component).__module__.startswith("rankbeam."):
        yield
        return
    with blame_plug_in(f"{class_name(component)}.{method}"):
        yield


def class_name(component: object) -> str:
    """The class of a component with its module, for messages."""
    return f"{type(component).__module__}.{type(component).__qualname__}"


def read_only(value: Any) -> Any:
    """A view of an array that a plug-in cannot change for others; other values unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"the package {point.dist.name}"


def _error_text(error: BaseException) -> str:
    """The error and the line that raised it."""
    if isinstance(error, ImportError | AttributeError | SyntaxError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
