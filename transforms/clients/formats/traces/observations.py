"""Rows of Langfuse, LangSmith and Opik, as attributes under OpenInference's names."""

from collections.abc import Mapping
from typing import Any

from rankbeam.transforms.clients.storage.json_paths import first_of, parse_literal


def observed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an observation under OpenInference's names."""
    kind = {"GENERATION": "LLM", "CHAT_MODEL": "LLM"}.get(name := str(row.get("type")).upper(), name)
    values = {"openinference.span.kind": kind, "input.value": row.get("input"), "output.value": row.get("output")}
    if kind == "RETRIEVER":
        results = parse_literal(row.get("output"))
        values["retrieval.documents"] = results.get("documents") if isinstance(results, Mapping) else results
    values |= {"llm.model_name": row["model"]} if row.get("model") else {}
    tokens = {"llm.token_count.prompt": _tokens(row, "input"), "llm.token_count.completion": _tokens(row, "output")}
    values |= {name: count for name, count in tokens.items() if count is not None}
    values |= {"session.id": row["sessionId"]} if row.get("sessionId") else {}
    values |= {"service.version": row["release"]} if row.get("release") else {}
    return {name: value for name, value in values.items() if value is not None}


def langfuse_export(row: Mapping[str, Any]) -> dict[str, Any]:
    """An observation in Langfuse's export to a bucket, under the names of its API; empty texts there mean none."""
    words = {name: name.split("_") for name, value in row.items() if value != ""}
    named = {"".join([first, *map(str.title, rest)]): row[name] for name, (first, *rest) in words.items()}
    usage = named.get("usageDetails")
    usage = dict(usage) if isinstance(usage, list) else usage  # a map of Parquet is a list of pairs
    return named | {"model": named.get("providedModelName"), "usageDetails": usage}


def langsmith_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A run of LangSmith as an observation of Langfuse."""
    extra = parse_literal(row.get("extra"))
    metadata = (extra.get("metadata") if isinstance(extra, Mapping) else None) or {}
    kind = str(row["run_type"])
    return {
        "id": str(row["id"]), "name": row.get("name"), "type": {"llm": "GENERATION"}.get(kind, kind),
        "startTime": row.get("start_time"), "endTime": row.get("end_time"),
        "level": "ERROR" if row.get("error") else "",
        "input": unwrapped(row.get("inputs"), "input"), "output": unwrapped(row.get("outputs"), "output"),
        "promptTokens": row.get("prompt_tokens"), "completionTokens": row.get("completion_tokens"),
        "model": metadata.get("ls_model_name"),
        "sessionId": first_of(metadata, "session_id", "thread_id", "conversation_id"),
    }  # fmt: skip


def opik_span(row: Mapping[str, Any]) -> dict[str, Any]:
    """A span of Opik as an observation of Langfuse."""
    usage = parse_literal(row.get("usage"))
    usage = usage if isinstance(usage, Mapping) else {}
    return {
        "id": str(row["id"]), "name": row.get("name"), "type": {"llm": "GENERATION"}.get(row["type"], row["type"]),
        "startTime": row.get("start_time"), "endTime": row.get("end_time"),
        "level": "ERROR" if row.get("error_info") else "",
        "input": unwrapped(row.get("input"), "input"), "output": unwrapped(row.get("output"), "output"),
        "promptTokens": usage.get("prompt_tokens"), "completionTokens": usage.get("completion_tokens"),
        "model": row.get("model"), "parentObservationId": row.get("parent_span_id"),
    }  # fmt: skip


def opik_trace(row: Mapping[str, Any]) -> dict[str, Any]:
    """A trace with its spans, as `opik export` writes it, as a trace of Langfuse."""
    trace = row["trace"]
    return {
        "id": str(trace["id"]), "name": trace.get("name"), "timestamp": trace.get("start_time"),
        "input": unwrapped(trace.get("input"), "input"), "output": unwrapped(trace.get("output"), "output"),
        "sessionId": trace.get("thread_id"), "observations": [opik_span(span) for span in row["spans"]],
    }  # fmt: skip


def unwrapped(value: Any, key: str) -> Any:
    """The value in an object such as `{"input": "Who?"}`, in which tracers of LangChain wrap a text."""
    inner = parse_literal(value)
    is_wrapped = isinstance(inner, Mapping) and key in inner and {*inner} <= {key, "tags", "metadata", "kwargs"}
    return inner[key] if is_wrapped else value


_COUNTS = {"input": "promptTokens", "output": "completionTokens"}


def _tokens(row: Mapping[str, Any], part: str) -> Any:
    """Input or output tokens of a generation, with all details, such as those from a cache; None if unknown."""
    details, usage = (parse_literal(row.get(name)) for name in ("usageDetails", "usage"))
    if isinstance(details, Mapping) and details:
        return sum(count or 0 for name, count in details.items() if name.startswith(part))
    name = _COUNTS[part]
    return first_of({name: row.get(name), **(usage if isinstance(usage, Mapping) else {})}, part, name)
