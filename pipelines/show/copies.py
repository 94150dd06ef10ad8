"""Copies of evaluated files: the values of each row's query beside the row."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.cases.copy import Values, write_copy
from rankbeam.transforms.clients.formats.cases.read import Case
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

STATUS = "rankbeam_status"
"""The column that says which metrics of a row have no value, and why."""
_NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Copied:
    """A copy that was written."""

    rows: int
    unmatched: int  # rows that were not evaluated
    unit: str = "rows"


def written(results: Results, source: CaseSource, new: str, configuration: str | None) -> Copied:
    """Write a copy of a file with the results of its rows."""
    by_config = dict(config_ids(results, source.path, configuration))
    metrics = results.metrics
    names = [*metrics, STATUS]
    values = {(config_id, query_id): row for config_id, query_id, row in _values(results, {*by_config.values()})}
    missed, turns = 0, 0

    def values_of(case: Case) -> Values:
        nonlocal missed, turns
        turns += 1
        config_id = by_config.get(case.config, by_config.get(None))
        row = values.get((config_id or "", case.query_id))
        missed += row is None
        return dict.fromkeys(metrics) | {STATUS: _NOT_EVALUATED} if row is None else row

    rows = write_copy(source, new, names, values_of)
    return Copied(turns, missed, "rows" if turns == rows else "turns")


def config_ids(results: Results, path: str, target: str | None) -> Iterator[tuple[str | None, str]]:
    """By the `config` of a row, None for any, the configuration whose results it gets."""
    names = [row["name"] for row in results.configurations]
    if target is not None and target not in names:
        raise InputError(f"--configuration {target!r}: no configuration has this name; {did_you_mean(target, names)}")
    result: dict[str | None, str] = {}
    for row in results.configurations:
        answers = json.loads(row["parameters"]).get("answers", {})
        is_like = answers.get("type") == "replay" and _name(answers.get("path", "")) == _name(path)
        if (target is None and not is_like) or target not in (None, row["name"]):
            continue
        config = None if target is not None else answers.get("config")
        if config in result:
            raise InputError(f"several configurations have answered {path}; choose one: --configuration NAME")
        result[config] = row["config_id"]
    if not result:
        problem = f"no configuration replays a file of this name; choose one of {', '.join(names)} with --configuration"
        raise InputError(problem, path=path)
    yield from result.items()


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _values(results: Results, target: set[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for row in results.table("query_metrics").to_pylist():
        if row["config_id"] in target:
            yield row["config_id"], row["query_id"], _row(row["metrics"], row["status"])


def _row(metrics: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
    content = {entry["metric"]: (entry["value"], entry["status"] or status, entry["reason"]) for entry in metrics}
    lacking = [f"{name}: {reason or why}" for name, (value, why, reason) in content.items() if value is None]
    return {**{name: value for name, (value, _, _) in content.items()}, STATUS: "; ".join(lacking) or "ok"}
