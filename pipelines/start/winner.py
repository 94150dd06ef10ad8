"""The experiment of a finished run with one of its configurations, which `init --winner` writes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.start.first_experiment import write_files
from rankbeam.transforms.records.errors import InputError, did_you_mean


def write_winner(path: Path, results: Results, name: str | None) -> str:
    """Write the experiment of a configuration, by default of the best by the first metric; return its name."""
    rows = {row["name"]: row for row in results.leaderboard()}
    if name is not None and name not in rows:
        raise InputError(f"--configuration {name}: the run has none of this name; {did_you_mean(name, rows)}")
    row = next(iter(rows.values())) if name is None else rows[name]
    source = f"# {row['name']}, of {results.named}\n"
    value = {**_narrowed(results.experiment_file.value, row["name"]), "name": path.stem}
    text = source + yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    with write_files({path: text.encode()}):
        configurations = load_experiment(str(path)).evaluation.configurations
        if row["config_id"] not in {configuration.config_id for configuration in configurations}:
            problem = f"would not be {row['name']} as the run evaluated it: a file that it names has changed since then"
            raise InputError(problem, path=str(path))
    return str(row["name"])


def _narrowed(experiment: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An experiment with one configuration, a fusion's parts, and a grid of the values in its name."""
    item, _, swept = name.partition(":")
    items = {entry["name"]: entry for entry in experiment["configurations"]}
    parts = items[item].get("retriever", {}).get("parts", ())
    if parts and experiment.get("grid"):
        raise InputError(
            f"{name} fuses configurations of a grid; copy the experiment, and delete what it does not need"
        )
    gates = [gate for gate in experiment.get("gates") or () if _holds_alone(gate, {item, name})]
    grid = {key: _values(key, values, swept) for key, values in (experiment.get("grid") or {}).items()}
    changed = {
        "configurations": [entry for key, entry in items.items() if key in {item, *parts}],
        "grid": {key: values for key, values in grid.items() if values},
        "dialects": _values("dialect", experiment.get("dialects") or [], swept),
        "gates": gates,
    }
    merged = {**experiment, **changed}
    return {key: value for key, value in merged.items() if key not in {"baseline", "race"} and changed.get(key, True)}


def _holds_alone(gate: Mapping[str, Any], names: set[str]) -> bool:
    """Return whether a gate needs no other configuration."""
    return gate.get("configuration") in {None, *names} and not str(gate.get("value")).startswith("difference")


def _values(key: str, values: Mapping[Any, Any] | list[Any], swept: str) -> Any:
    """The value of a key in a configuration's name, in the form of the grid; empty if the name lacks the key."""
    labels = [label for label in values if f",{key}={label}," in f",{swept},"]
    longest = sorted(labels, key=lambda label: len(str(label)))[-1:]
    return {label: values[label] for label in longest} if isinstance(values, Mapping) else longest
