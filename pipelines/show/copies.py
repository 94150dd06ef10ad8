"""Copies of evaluated files, with the values for each row's query added to the row."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.results.leaderboard import configuration_named
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.cases.copy import Values, write_copy
from rankbeam.transforms.clients.formats.cases.read import Case, read_rows
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

STATUS = "rankbeam_status"  # the column that lists a row's metrics without a value, with reasons
_COLUMNS = ("config_id", "query_id", "status", "metrics")
_NOT_EVALUATED = "not evaluated"
EVENT = "gen_ai.evaluation.result"
_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class CopyResult:
    """A copy that was written."""

    rows: int
    unmatched: int  # rows that were not evaluated
    unit: str = "rows"


def write_rows(results: Results, source: CaseSource, new: str, configuration: str | None) -> CopyResult:
    by_config = config_ids(results, source.path, configuration)
    metrics = results.metrics
    names = [*metrics, STATUS]
    values = {
        (row["config_id"], row["query_id"]): _row(row["metrics"], row["status"])
        for row in results.stream("query_metrics", _COLUMNS, {*by_config.values()}, "config_id")
    }
    missed, turns = 0, 0

    def values_of(case: Case) -> Values:
        nonlocal missed, turns
        turns += 1
        config_id = by_config.get(case.config, by_config.get(None))
        row = values.get((config_id or "", case.query_id))
        missed += row is None
        return dict.fromkeys(metrics) | {STATUS: _NOT_EVALUATED} if row is None else row

    rows = write_copy(source, new, names, values_of)
    return CopyResult(turns, missed, "rows" if turns == rows else "turns")


def config_ids(results: Results, path: str, target: str | None) -> dict[str | None, str]:
    """The configuration whose results a row gets, by the row's `config`, or None for any."""
    if target is not None:
        return {None: configuration_named(results, target)["config_id"]}
    result: dict[str | None, str] = {}
    for row in results.configurations:
        answers = json.loads(row["parameters"]).get("answers", {})
        if answers.get("type") != "replay" or _name(answers.get("path", "")) != _name(path):
            continue
        if (config := answers.get("config")) in result:
            raise InputError(f"several configurations have answered {path}; choose one: --configuration NAME")
        result[config] = row["config_id"]
    if not result:
        names = ", ".join(row["name"] for row in results.configurations)
        problem = f"no configuration replays a file of this name; choose one of {names} with --configuration"
        raise InputError(problem, path=path)
    return result


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _row(metrics: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
    content = {entry["metric"]: (entry["value"], entry["status"] or status, entry["reason"]) for entry in metrics}
    lacking = [f"{name}: {reason or why}" for name, (value, why, reason) in content.items() if value is None]
    return {**{name: value for name, (value, _, _) in content.items()}, STATUS: "; ".join(lacking) or "ok"}


def write_events(results: Results, source: CaseSource, new: str, configuration: str | None) -> CopyResult:
    """Write the scores of a file's rows as events; a row's query id is the id of its trace."""
    files.refuse_existing(new)
    by_config = config_ids(results, source.path, configuration)
    rows = results.stream("query_metrics", _COLUMNS, set(by_config.values()), "config_id")
    scored = {(row["config_id"], row["query_id"]): row for row in rows}
    names = {row["config_id"]: row["name"] for row in results.configurations}
    exports, missed = [], 0
    for row, case in read_rows(source):
        config_id = by_config.get(case.config, by_config.get(None)) or ""
        if (result := scored.get((config_id, case.query_id))) is None:
            missed += 1
            continue
        entries = ({**entry, "status": entry["status"] or result["status"]} for entry in result["metrics"])
        records = [_record(results, row, case, names[config_id], entry) for entry in entries]
        exports.append(json.dumps(_export(records), ensure_ascii=False))
    files.write(new, "".join(f"{line}\n" for line in exports).encode())
    return CopyResult(len(exports) + missed, missed)


def _record(
    results: Results, row: Mapping[str, Any], case: Case, configuration: str, entry: Mapping[str, Any]
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "gen_ai.evaluation.name": entry["metric"],
        "gen_ai.evaluation.score.label": entry["status"],
    }
    if entry["value"] is not None:
        values["gen_ai.evaluation.score.value"] = float(entry["value"])
    elif entry["reason"]:
        values["gen_ai.evaluation.explanation"] = entry["reason"]
    values |= {"rankbeam.run_id": results.run_id, "rankbeam.configuration": configuration}
    values["rankbeam.query_id"] = case.query_id
    ids = {"traceId": case.query_id} if _TRACE.fullmatch(case.query_id) else {}
    span_id = str(row.get("span_id") or "")
    ids |= {"spanId": span_id} if ids and _SPAN.fullmatch(span_id) else {}
    nanoseconds = str(int(results.execution[1].timestamp() * 1_000_000_000))
    return {"timeUnixNano": nanoseconds, "eventName": EVENT, **ids, "attributes": _attributes(values)}


def _export(records: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": _attributes({"service.name": "rankbeam"})}
    return {
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {"name": "rankbeam"}, "logRecords": records}]}]
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    typed = lambda value: {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}  # noqa: E731
    return [{"key": name, "value": typed(value)} for name, value in values.items()]
