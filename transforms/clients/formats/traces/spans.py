"""Read spans: OTLP JSON, flattened spans (Phoenix), Langfuse, LangSmith, MLflow, Opik, and ADK's `agent_events`.

OTLP JSON: `resourceSpans` → `scopeSpans` → `spans`, and `resourceLogs` → `scopeLogs` → `logRecords`, one such object
in each line or in the file; attributes are lists of `{key, value: {stringValue: …}}`.
"""

import json
import math
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.bigquery.read import batches
from rankbeam.transforms.clients.formats.cases.objects import Shape, rows_in, shape_of, whole_text
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.formats.traces import observations
from rankbeam.transforms.clients.formats.traces.agent_events import COLUMNS, SCHEMA, event_of
from rankbeam.transforms.clients.storage.json_paths import first_of, parse_literal
from rankbeam.transforms.records.errors import InputError, shortened

DETAILS = "gen_ai.client.inference.operation.details"
"""The log event that holds an inference's messages if its span does not."""
_KNOWN = re.compile(r".*/(1\.(3[7-9]|4\d)\.\d+|(semconv-)?gen-?ai/0\.1\.\d+)")
_OLD = re.compile(r"gen_ai\.(prompt|completion)(\..*)?|gen_ai\.usage\.(prompt|completion)_tokens")
"""Attributes from conventions before 1.37."""
_OLD_MESSAGE = re.compile(r"gen_ai\.(prompt|completion)(\.\d+\..*)?")
_OLD_EVENT = re.compile(r"gen_ai\.(content\.(prompt|completion)|(user|system|assistant|tool)\.message|choice)")
"""Events in spans and logs that held messages before 1.37."""
_ERROR = ("ERROR", "STATUS_CODE_ERROR", 2, "2")
_EPOCH = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (math.inf, 1e9))
"""Units of times since 1970: numbers below the first are seconds, then milliseconds (pandas), microseconds and
nanoseconds (OTLP)."""
_PREFIX = "attributes."
_WHOLE = ({"resourceSpans"}, {"resourceLogs"}, {"trace", "spans"})
"""Keys of an export that is one object over several lines: of OTLP, or of a trace of Opik."""


@dataclass(frozen=True)
class Span:
    """One span, or a log event that belongs to one."""

    trace_id: str  # id of the trace
    span_id: str  # id of the span
    parent_id: str | None  # empty for a root; None for a log event, whose attributes are added to the span
    name: str
    start_s: float  # seconds since 1970
    end_s: float
    has_failed: bool  # whether the status is an error
    attributes: Mapping[str, Any]  # with dotted names; nested objects are flattened, lists stay


def read_spans(path: str) -> Iterator[Span]:
    for line, row in _objects(path):
        try:
            for span in spans_of(row):
                if not all(isinstance(name, str) for name in (span.trace_id, span.span_id, span.parent_id or "")):
                    raise TypeError("the id of a trace or span is not a text")
                yield span
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            keys = shortened(", ".join(map(str, row)), 200)
            problem = f"is not a span: {type(error).__name__} {error}; write OTLP JSON, spans of Phoenix or Opik,"
            problem += f" traces of Langfuse or MLflow, runs of LangSmith or events of ADK; its keys: {keys}"
            raise InputError(problem, path=path, line=line) from error


def spans_of(row: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of one object: an export of OTLP, a flattened span, or a trace of Langfuse or MLflow."""
    if "resourceSpans" in row or "resourceLogs" in row:
        yield from _otlp_spans(row)
    elif isinstance(row.get("observations"), list):
        yield from _langfuse_spans(row)
    elif isinstance(row.get("trace"), Mapping) and isinstance(row.get("spans"), list):
        yield from _langfuse_spans(observations.opik_trace(row))
    elif isinstance(row.get("data"), Mapping) and isinstance(row["data"].get("spans"), list):
        yield from _mlflow_spans(row)
    elif "traceId" in row and ("parentObservationId" in row or {"type", "id"} <= row.keys()):
        yield _observation(row["traceId"], row.get("parentObservationId") or "", row)
    elif "run_type" in row and "trace_id" in row:
        yield _observation(str(row["trace_id"]), str(row.get("parent_run_id") or ""), observations.langsmith_run(row))
    elif {"trace_id", "id", "type", "input"} <= row.keys():
        is_of_langfuse = "parent_observation_id" in row
        entry = observations.langfuse_export(row) if is_of_langfuse else observations.opik_span(row)
        yield _observation(str(row["trace_id"]), str(entry.get("parentObservationId") or ""), entry)
    elif "event_type" in row and "invocation_id" in row:
        for span_id, parent_id, failed, values in event_of(row):
            written = row["timestamp"]  # BigQuery exports write `2026-11-25 03:00:00.5 UTC`
            is_time = isinstance(written, datetime)
            at = seconds_of(written if is_time else datetime.fromisoformat(str(written).removesuffix(" UTC")))
            yield Span(str(row["invocation_id"]), span_id, parent_id, str(row["event_type"]), at, at, failed, values)
    else:
        yield _flat(row)


def attribute_values(attributes: Any) -> dict[str, Any]:
    """Attributes from OTLP or from a mapping, by dotted name."""
    if isinstance(attributes, Mapping):
        return dict(_flattened("", attributes))
    return dict(_flattened("", {entry["key"]: _unwrap_value(entry.get("value")) for entry in attributes or ()}))


def seconds_of(value: Any) -> float:
    """A time in seconds: a number since 1970, whose size tells its unit, or ISO 8601."""
    if value is None or value == "":
        return 0.0
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) or re.fullmatch(r"\d+", str(value)):
        number = value if isinstance(value, float) else int(value)
        return number / next(unit for limit, unit in _EPOCH if number < limit)
    return seconds_of(datetime.fromisoformat(str(value)))


def _objects(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a file or table; an OTLP export may be one object over several lines."""
    if is_table(path):
        rows = (row for batch in batches(TableSource.parse(path), COLUMNS) for row in batch.to_pylist())
        yield from enumerate(rows, start=1)
        return
    if shape_of(path) is Shape.DOCUMENT:
        value = json_lines.parse_document(path, whole_text(path))
        if isinstance(value, dict) and any(names <= value.keys() for names in _WHOLE):
            yield 1, value
            return
    yield from rows_in(path)


def _otlp_spans(row: Mapping[str, Any]) -> Iterator[Span]:
    for resource, scope, schema in _scopes(row, "resourceSpans", "scopeSpans"):
        shared = attribute_values((resource.get("resource") or {}).get("attributes"))
        yield from (_otlp_span(span, schema, shared) for span in scope.get("spans") or ())
    for _, scope, schema in _scopes(row, "resourceLogs", "scopeLogs"):
        for place, record in enumerate(scope.get("logRecords") or ()):
            yield from _logged_message(record, place, schema)


def _scopes(row: Mapping[str, Any], resources: str, scopes: str) -> Iterator[tuple[Any, Any, str]]:
    """Each scope of an export, with its resource and the URL of its schema."""
    for resource in row.get(resources) or ():
        for scope in resource.get(scopes) or ():
            yield resource, scope, str(scope.get("schemaUrl") or resource.get("schemaUrl") or "")


def _otlp_span(span: Mapping[str, Any], schema: str, shared: Mapping[str, Any]) -> Span:
    events = span.get("events") or ()
    values = _with_schema(schema, _renamed(attribute_values(span.get("attributes"))), events)
    if not any(map(_OLD_MESSAGE.fullmatch, values)):
        values |= _messages_in(events)
    return Span(
        span["traceId"],
        span["spanId"],
        span.get("parentSpanId") or "",
        span.get("name") or "",
        seconds_of(span.get("startTimeUnixNano")),
        seconds_of(span.get("endTimeUnixNano")),
        (span.get("status") or {}).get("code") in _ERROR or "error.type" in values,
        {**shared, **values},
    )


def _logged_message(record: Mapping[str, Any], place: int, schema: str) -> Iterator[Span]:
    """The log event of an inference, as part of its span; yields nothing for other records."""
    values = attribute_values(record.get("attributes"))
    name = str(record.get("eventName") or values.get("event.name"))
    is_old = _OLD_EVENT.fullmatch(name) is not None
    if not ((name == DETAILS or is_old) and record.get("traceId") and record.get("spanId")):
        return
    time = int(record.get("timeUnixNano") or 0) or int(record.get("observedTimeUnixNano") or 0)
    if is_old:
        body = _unwrap_value(record.get("body"))
        values |= body if isinstance(body, Mapping) else {}
        number = time * _MOST_RECORDS + place  # records of one span may have the same time
        values = _old_message(name, number, values) or {SCHEMA: schema or _BEFORE}
    else:
        values = _with_schema(schema, values)
    at = seconds_of(time)
    yield Span(record["traceId"], record["spanId"], None, name, at, at, False, values)


def _messages_in(events: Iterable[Any]) -> dict[str, Any]:
    messages: dict[str, Any] = {}
    for place, event in enumerate(events):
        if isinstance(event, Mapping):
            messages |= _old_message(str(event.get("name")), place, attribute_values(event.get("attributes")))
    return messages


def _old_message(name: str, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The message in an event of a version before 1.37 as attributes of even older versions; none without a text."""
    if not _OLD_EVENT.fullmatch(name):
        return {}
    if name.startswith("gen_ai.content."):
        return {key: value for key, value in values.items() if key in ("gen_ai.prompt", "gen_ai.completion")}
    content = parse_literal(values.get("gen_ai.event.content", values))
    event = content if isinstance(content, Mapping) else values
    inner = parse_literal(event.get("message", event))
    message = inner if isinstance(inner, Mapping) else {"content": inner}
    text = parse_literal(message.get("content"))
    if text in (None, "", []):
        return {}
    key = f"gen_ai.completion.{number}" if name == "gen_ai.choice" else f"gen_ai.prompt.{number}"
    role = "assistant" if name == "gen_ai.choice" else name.split(".")[1]
    return {f"{key}.role": role, f"{key}.parts" if isinstance(text, list) else f"{key}.content": text}


_MOST_RECORDS = 1_000_000
_BEFORE = "before 1.37, without a schemaUrl"


def _with_schema(schema: str, attributes: Mapping[str, Any], events: Iterable[Any] = ()) -> dict[str, Any]:
    """A span's attributes, plus its version of the GenAI conventions if that version is unknown."""
    is_old = any(map(_OLD.fullmatch, attributes))
    is_old |= any(_OLD_EVENT.fullmatch(str(event.get("name"))) for event in events if isinstance(event, Mapping))
    is_other = bool(schema) and not _KNOWN.fullmatch(schema) and any(name.startswith("gen_ai.") for name in attributes)
    return {**attributes, **({SCHEMA: schema or _BEFORE} if is_other or is_old else {})}


def _flat(row: Mapping[str, Any]) -> Span:
    flat = dict(_flattened("", row))
    first = partial(first_of, flat)
    trace_id = first("context.trace_id", "trace_id", "traceId")
    span_id = first("context.span_id", "span_id", "spanId", "id")
    if trace_id is None or span_id is None:
        raise KeyError("trace_id" if trace_id is None else "span_id")
    listed = row.get("attributes")
    values = attribute_values(listed) if isinstance(listed, list) else {}
    values |= {name.removeprefix(_PREFIX): value for name, value in flat.items() if name.startswith(_PREFIX)}
    schema = str(first("schema_url", "schemaUrl", "scope.schema_url", "scope.schemaUrl") or "")
    values = _with_schema(schema, _renamed(values))
    kind = first("span_kind")
    values |= {"openinference.span.kind": kind} if kind is not None and "openinference.span.kind" not in values else {}
    return Span(
        str(trace_id).removeprefix("0x"),  # as OpenTelemetry's SDK for Python prints ids
        str(span_id).removeprefix("0x"),
        str(first("parent_id", "parentSpanId", "parent_span_id") or "").removeprefix("0x"),
        str(first("name") or ""),
        seconds_of(first("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano")),
        seconds_of(first("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano")),
        first("status_code", "status.code", "status.status_code") in _ERROR or "error.type" in values,
        values,
    )


def _langfuse_spans(row: Mapping[str, Any]) -> Iterator[Span]:
    start = seconds_of(row.get("timestamp") or row.get("createdAt"))
    root = {"input.value": row.get("input"), "output.value": row.get("output"), "session.id": row.get("sessionId")}
    root |= {"service.version": row.get("release") or row.get("version")}
    attributes = {name: value for name, value in root.items() if value is not None}
    if any(isinstance(entry, str) for entry in row["observations"]):
        raise ValueError("its observations are only ids; export traces with their observations, or these as rows")
    spans = [
        _observation(row["id"], entry.get("parentObservationId") or row["id"], entry) for entry in row["observations"]
    ]
    yield from spans
    last = max((span for span in spans if span.parent_id == row["id"]), key=lambda span: span.start_s, default=None)
    has_failed = last is not None and last.has_failed and "output.value" not in attributes  # traces have no level
    end = max([start, *(span.end_s for span in spans)])
    yield Span(row["id"], row["id"], "", row.get("name") or "", start, end, has_failed, attributes)


def _mlflow_spans(row: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of a trace of MLflow, whose ids are base64."""
    session = ((row.get("info") or {}).get("trace_metadata") or {}).get("mlflow.trace.session")
    for span in row["data"]["spans"]:
        ids = {key: b64decode(span[key]).hex() for key in ("trace_id", "span_id", "parent_span_id") if span.get(key)}
        yield _flat({**span, **ids, "attributes": {"session.id": session, **(span.get("attributes") or {})}})


def _observation(trace_id: str, parent_id: str, row: Mapping[str, Any]) -> Span:
    times = seconds_of(row.get("startTime")), seconds_of(row.get("endTime"))
    failed = row.get("level") == "ERROR"
    return Span(trace_id, row["id"], parent_id, row.get("name") or "", *times, failed, observations.observed(row))


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes, with those that Langfuse, Traceloop and MLflow name in their own way also as OpenInference does."""
    name = "langfuse.observation."
    if f"{name}type" in values or f"{name}input" in values:
        row = {part: values.get(f"{name}{part}") for part in ("type", "input", "output")}
        row |= {"model": values.get(f"{name}model.name"), "usageDetails": values.get(f"{name}usage_details")}
    elif "traceloop.entity.input" in values or "traceloop.entity.output" in values:
        is_retrieval = values.get("gen_ai.operation.name") == "vector_db_retrieve"
        row = {"type": "RETRIEVER" if is_retrieval else values.get("traceloop.span.kind")}
        row |= {
            part: observations.unwrapped(values.get(f"traceloop.entity.{part}"), f"{part}s")
            for part in ("input", "output")
        }
    elif "mlflow.spanType" in values:  # these attributes are JSON
        names = {"type": "spanType", "input": "spanInputs", "output": "spanOutputs"}
        names |= {"model": "llm.model", "usageDetails": "chat.tokenUsage"}
        row = {part: json.loads(values.get(f"mlflow.{name}") or "null") for part, name in names.items()}
    else:
        return dict(values)
    return {**observations.observed(row), **values}


def _unwrap_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    kinds = {name.replace("_v", "V"): inner for name, inner in value.items() if inner is not None}  # as Phoenix has it
    if "arrayValue" in kinds:
        return [_unwrap_value(entry) for entry in kinds["arrayValue"].get("values") or ()]
    if "kvlistValue" in kinds:
        return {
            str(entry["key"]): _unwrap_value(entry.get("value")) for entry in kinds["kvlistValue"].get("values") or ()
        }
    if "intValue" in kinds:
        return int(kinds["intValue"])
    return next(iter(kinds.values()), None)


def _flattened(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flattened(f"{prefix}{name}.", inner)
        elif inner is not None and not (isinstance(inner, float) and math.isnan(inner)):
            # tables of spans have a column for each attribute of any span; in pandas, empty cells are NaN
            yield f"{prefix}{name}", inner


def is_cut(attributes: Mapping[str, Any], name: str) -> bool:
    """Return whether a list lost its end or an entry in the export."""
    value = parse_literal(attributes.get(name))
    if value is not None:
        return not isinstance(value, list)
    numbers = {key.removeprefix(f"{name}.").partition(".")[0] for key in attributes if key.startswith(f"{name}.")}
    places = {int(number) for number in numbers if number.isdecimal()}
    return bool(places) and len(places) <= max(places)


def attribute_list(attributes: Mapping[str, Any], name: str) -> Sequence[Any]:
    """A list of objects, from a list, JSON, a Python literal, or OpenInference's attributes `NAME.0.KEY`."""
    value = parse_literal(attributes.get(name))
    if isinstance(value, list):
        return [dict(_flattened("", entry)) if isinstance(entry, Mapping) else entry for entry in value]
    entries: dict[int, dict[str, Any]] = {}
    for key, inner in attributes.items():
        if key.startswith(f"{name}."):
            number, _, rest = key.removeprefix(f"{name}.").partition(".")
            if number.isdecimal() and rest:
                entries.setdefault(int(number), {})[rest] = inner
    return [entries[number] for number in sorted(entries)]
