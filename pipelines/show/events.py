"""Scores as events of OpenTelemetry, `gen_ai.evaluation.result`, for the traces that were evaluated.

The form is OTLP JSON of logs, one export for each row, with the attributes of the GenAI conventions:
`gen_ai.evaluation.name`, `.score.value`, `.score.label` and `.explanation`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.copies import Copied, config_ids
from rankbeam.transforms.clients.formats.cases.read import Case, read_rows
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

EVENT = "gen_ai.evaluation.result"
_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")


def write_events(results: Results, source: CaseSource, new: str, configuration: str | None) -> Copied:
    """Write the scores of a file's rows as events; the id of a row's query is that of its trace."""
    if files.exists(new):
        raise InputError("exists already, and is never overwritten; choose another path", path=new)
    by_config = dict(config_ids(results, source.path, configuration))
    rows = results.table("query_metrics").to_pylist()
    scored = {(row["config_id"], row["query_id"]): row for row in rows}
    names = {row["config_id"]: row["name"] for row in results.configurations}
    exports, missed = [], 0
    for row, case in read_rows(source):
        config_id = by_config.get(case.config, by_config.get(None)) or ""
        if (result := scored.get((config_id, case.query_id))) is None:
            missed += 1
            continue
        records = [_record(results, row, case, names[config_id], entry) for entry in _entries(result)]
        exports.append(json.dumps(_export(records), ensure_ascii=False))
    files.write(new, "".join(f"{line}\n" for line in exports).encode())
    return Copied(len(exports) + missed, missed)


def _entries(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in row["metrics"]:
        yield {**entry, "status": entry["status"] or row["status"]}


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
    at = str(int(results.execution[1].timestamp() * 1_000_000_000))
    return {"timeUnixNano": at, "eventName": EVENT, **ids, "attributes": _attributes(values)}


def _export(records: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": _attributes({"service.name": "rankbeam"})}
    return {
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {"name": "rankbeam"}, "logRecords": records}]}]
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    typed = lambda value: {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}  # noqa: E731
    return [{"key": name, "value": typed(value)} for name, value in values.items()]
