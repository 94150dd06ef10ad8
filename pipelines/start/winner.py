"""The experiment of a finished run with one of its configurations, which `init --winner` writes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.leaderboard import configuration_named, deciding_metric
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.start.first_experiment import write_files
from rankbeam.transforms.records.errors import InputError, InputErrors

_BESIDE = (
    "relative paths are those of the run's experiment; name a file in its folder, or, for a run without an experiment "
    "file, in the folder where it was started"
)


def write_winner(path: Path, results: Results, name: str | None) -> str:
    """Write the experiment of a configuration, by default of the best by the deciding metric; return its name."""
    row = _best(results) if name is None else configuration_named(results, name)
    source = f"# {row['name']}, of {results.named}\n"
    value = {**_narrowed(results.experiment_file.value, row["name"]), "name": path.stem}
    text = source + yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    with write_files({path: text.encode()}):
        try:
            configurations = load_experiment(str(path)).evaluation.configurations
        except InputErrors as errors:
            raise InputErrors([*errors.errors, InputError(_BESIDE, path=str(path))]) from errors
        if row["config_id"] not in {configuration.config_id for configuration in configurations}:
            problem = f"would not be {row['name']} as the run evaluated it: a file that it names has changed since then"
            raise InputError(problem, path=str(path))
    return str(row["name"])


def _best(results: Results) -> dict[str, Any]:
    """The best configuration by the rules of the first dialect; none that a race dropped after fewer queries."""
    ids = (row["config_id"] for row in results.configurations)
    dialects = dict(zip(ids, results.dialects, strict=True))

    def is_excluded(row: dict[str, Any]) -> bool:
        return row.get("dropped_at") is not None or dialects[row["config_id"]] != results.dialects[0]

    return min(results.leaderboard(deciding_metric(results)), key=is_excluded)


def _narrowed(experiment: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An experiment with one configuration, a fusion's parts, and a grid of the values in their names."""
    item, _, swept = name.partition(":")
    items = {entry["name"]: entry for entry in experiment["configurations"]}
    fused = [part.partition(":") for part in items[item].get("retriever", {}).get("parts", ())]
    parts = {part for part, _, _ in fused}
    labels = [swept, *(values for _, _, values in fused)]
    comparing = _comparing(experiment.get("judge"))
    gates = [gate for gate in experiment.get("gates") or () if _holds_alone(gate, {item, name}, comparing)]
    grid = {key: _values(key, values, labels) for key, values in (experiment.get("grid") or {}).items()}
    changed = {
        "configurations": [entry for key, entry in items.items() if key in {item, *parts}],
        "grid": {key: values for key, values in grid.items() if values},
        "dialects": _values("dialect", experiment.get("dialects") or [], [swept]),
        "gates": gates,
    }
    merged = {**experiment, **changed}
    if comparing:
        merged["metrics"] = [metric for metric in experiment["metrics"] if metric not in comparing]
    dropped = {"baseline", "race", *(["decide_by"] if experiment.get("decide_by") in comparing else ())}
    return {key: value for key, value in merged.items() if key not in dropped and changed.get(key, True)}


def _comparing(judge: object) -> set[str]:
    """The names of criteria that compare answers of two configurations, as metrics."""
    criteria = (judge.get("criteria") or {}) if isinstance(judge, dict) else {}
    pairs = [name for name, value in criteria.items() if isinstance(value, dict) and "pairs" in value]
    return {*pairs, *(f"Criterion({name})" for name in pairs)}


def _holds_alone(gate: Mapping[str, Any], names: set[str], comparing: set[str]) -> bool:
    """Return whether a gate needs no other configuration."""
    is_alone = gate.get("metric") not in comparing and not str(gate.get("value")).startswith("difference")
    return is_alone and gate.get("configuration") in {None, *names}


def _values(key: str, values: Mapping[Any, Any] | list[Any], names: Sequence[str]) -> Any:
    """The values of a key in configurations' names, in the form of the grid; empty if no name has the key."""
    chosen = []
    for swept in names:
        labels = [label for label in values if f",{key}={label}," in f",{swept},"]
        chosen += sorted(labels, key=lambda label: len(str(label)))[-1:]
    chosen = [label for label in values if label in chosen]
    return {label: values[label] for label in chosen} if isinstance(values, Mapping) else chosen
