"""Traces as the tools write them, from one plain description of a turn."""

import json
from typing import Any

START = 1_764_000_000


def typed(value: Any) -> dict[str, Any]:
    """A value of OTLP."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(entry) for entry in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": typed(entry)} for key, entry in value.items()]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes of OTLP."""
    return [{"key": key, "value": typed(value)} for key, value in values.items() if value is not None]


def message(role: str, text: str) -> str:
    """A list of one message, as JSON."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def span(trace: str, number: int, second: int, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span of OTLP, the first of a trace is its root."""
    parent = {"parentSpanId": f"{trace}-0"} if number else {}
    at = (START + second) * 1_000_000_000 + number
    times = {"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 1_000_000_000)}
    return {
        "traceId": trace,
        "spanId": f"{trace}-{number}",
        **parent,
        **times,
        "attributes": attributes(values),
        **more,
    }


def otlp(*spans: dict[str, Any], **resource: str) -> dict[str, Any]:
    """An export of OTLP."""
    return {
        "resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"spans": list(spans)}]}]
    }


def phoenix(row: dict[str, Any]) -> dict[str, Any]:
    """A span of OTLP as a row of Phoenix."""
    values = {entry["key"]: untyped(entry["value"]) for entry in row["attributes"]}
    return {
        "context": {"trace_id": row["traceId"], "span_id": row["spanId"]},
        "parent_id": row.get("parentSpanId"),
        "name": row.get("name"),
        "start_time": row["startTimeUnixNano"],
        "end_time": row["endTimeUnixNano"],
        "status_code": "ERROR" if row.get("status", {}).get("code") == 2 else "OK",
        "attributes": values,
    }


def untyped(value: dict[str, Any]) -> Any:
    """The value of a typed one."""
    if "arrayValue" in value:
        return [untyped(entry) for entry in value["arrayValue"]["values"]]
    if "kvlistValue" in value:
        return {entry["key"]: untyped(entry["value"]) for entry in value["kvlistValue"]["values"]}
    return int(value["intValue"]) if "intValue" in value else next(iter(value.values()))
