"""Experiments from a dict, or from a file with some keys replaced."""

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import yaml

from rankbeam.pipelines.api.inputs import of_python, reword_errors
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import load_experiment, parse_experiment
from rankbeam.transforms.clients.retrievers.applications.callables import CALLABLE
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError, shortened

_DICT = "experiment"  # name of an experiment without a file in messages; its paths are relative to the current folder


def names_output(experiment: Any, replaced: Mapping[str, Any]) -> bool:
    """Return whether an experiment names a folder for results, as every file must unless `output` is passed.

    >>> names_output({"name": "a"}, {}), names_output({"output": {"path": "out"}}, {}), names_output("a.yaml", {})
    (False, True, True)
    """
    if not isinstance(experiment, Mapping):
        return True
    output = {**experiment, **replaced}.get("output") or {}
    return not isinstance(output, Mapping) or "path" in output


def read_experiment(experiment: Any, replaced: Mapping[str, Any], output: str | None) -> Experiment:
    if not isinstance(experiment, str | os.PathLike | Mapping):
        raise InputError(f"an experiment is {type(experiment).__name__}; give the path of a YAML file, or a dict")
    path = name_of(experiment)
    if not isinstance(experiment, Mapping) and not replaced:
        return load_experiment(path, output)
    return parse_experiment(_text(_with_overrides(experiment, replaced)), path, output)


def with_systems(
    experiment: Any, replaced: Mapping[str, Any], systems: Iterable[str], version: str | None
) -> list[dict[str, Any]]:
    """An experiment's configurations, and one for each function that is evaluated with it."""
    named = version or f"run {secrets.token_hex(8)}"
    added = [{"name": name, "answers": {"type": CALLABLE, "system": name, "version": named}} for name in systems]
    return [*(_with_overrides(experiment, replaced).get("configurations") or []), *added]


def _with_overrides(experiment: Any, replaced: Mapping[str, Any]) -> dict[str, Any]:
    return {**(experiment if isinstance(experiment, Mapping) else _content(name_of(experiment))), **replaced}


def name_of(experiment: Any) -> str:
    """An experiment's name in messages."""
    return _DICT if isinstance(experiment, Mapping) else str(os.fspath(experiment))


def hide_line_numbers(experiment: Any, replaced: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Leave line numbers out of messages about an experiment that is not exactly a file."""
    path = name_of(experiment) if isinstance(experiment, Mapping) or replaced else None

    def without_line(error: InputError) -> InputError:
        return InputError(error.problem, path=path) if path is not None and error.path == path else error

    return reword_errors(without_line)


def _content(path: str) -> Mapping[str, Any]:
    (first, *_) = matching.expand(path)
    value = load(files.read_text(first, "an experiment is a YAML file", path), path).value
    if not isinstance(value, Mapping):
        load_experiment(path)  # refuses the file and names the line
        raise InputError("an experiment is a mapping", path=path)
    return value


def _text(value: Mapping[str, Any]) -> str:
    """An experiment as YAML, as runs store it."""
    try:
        return yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True)
    except yaml.representer.RepresenterError as error:
        what = error.args[-1]
        named = f"{shortened(' '.join(repr(what).split()))} is {type(what).__name__}"
        problem = f"{named}; an experiment contains dicts, lists, strings, numbers and Booleans"
        advice = "; write the table to a file, and name the file" if hasattr(what, "__arrow_c_stream__") else ""
        advice = "; a metric of your own is a plug-in (docs/extend.md)" if callable(what) else advice
        raise InputError(problem + advice, path=_DICT) from error
    except RecursionError as error:
        raise InputError("is nested too deeply, or contains itself", path=_DICT) from error


def _plain(value: Any) -> Any:
    """A value with paths as texts, mappings as dicts, tuples as lists, and NumPy's numbers as Python's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return of_python(value)
