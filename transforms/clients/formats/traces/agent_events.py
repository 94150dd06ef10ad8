"""Turn rows of ADK's BigQuery table `agent_events`, or its export as JSON lines, into spans.

An invocation is a trace: the user's message is its root; tool calls and model replies are children of the root.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rankbeam.transforms.clients.storage.json_paths import parse_literal

COLUMNS = (
    "timestamp", "event_type", "agent", "session_id", "invocation_id", "span_id", "content", "attributes", "status",
    "error_message", "is_truncated",
)  # fmt: skip
"""The columns that are read."""
SCHEMA = "rankbeam.schema"  # attribute of a span whose conventions have an unknown version
HAS_STEPS = "rankbeam.has_steps"  # attribute of a root whose trace has every tool call
TRUNCATED, RESULT = "rankbeam.is_truncated", "gen_ai.tool.call.result"
_TEXTS = ("response_text", "response", "text_summary", "text")
_QUOTED = re.compile(r"text: (?P<quote>['\"])(?P<text>.*)(?P=quote)\s*", re.DOTALL)
_CALL = "call: "

Event = tuple[str, str | None, bool, dict[str, Any]]
"""A span's id, parent, failure and attributes; if the parent is None, the attributes extend the span of that id."""


def event_of(row: Mapping[str, Any]) -> Iterator[Event]:
    """A row's span; yields nothing for events without a question, steps or an answer."""
    kind = str(row["event_type"])
    make = _EVENTS.get(kind)
    if make is None and kind not in _OTHERS and row["invocation_id"]:
        yield str(row.get("span_id") or _row_hash(row)), None, False, {SCHEMA: f"event type {kind} of agent_events"}
    if make is None or not row["invocation_id"]:
        return
    content = parse_literal(row.get("content"))
    content = content if isinstance(content, Mapping) else {"text": content}
    name = str(row.get("span_id") or _row_hash(row))
    span_id, parent_id, values = make(name, content)
    common = {"gen_ai.conversation.id": row.get("session_id"), "agent": row.get("agent")}
    failed = str(row.get("status") or "").upper() == "ERROR" or bool(row.get("error_message"))
    common |= {"error.type": "error"} if failed else {}
    common |= {TRUNCATED: True} if row.get("is_truncated") in (True, "true") else {}
    yield span_id, parent_id, failed, {**{key: value for key, value in common.items() if value is not None}, **values}


def _tool_call(name: str, content: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    args = json.dumps(content.get("args") or {})
    tool = {"gen_ai.tool.name": content.get("tool"), "gen_ai.tool.call.arguments": args}
    return f"{name}:tool", "user", {"gen_ai.operation.name": "execute_tool", **tool}


def _model_reply(name: str, content: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """A model's reply, which the plugin writes as "text: '…'" or as a tool call."""
    usage = content.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    tokens = {"gen_ai.usage.input_tokens": usage.get("prompt"), "gen_ai.usage.output_tokens": usage.get("completion")}
    text = _text(content)
    quoted = _QUOTED.fullmatch(text)
    text = quoted["text"] if quoted else "" if text.startswith(_CALL) else text
    known = {key: value for key, value in tokens.items() if value is not None}
    return f"{name}:model", "user", {"gen_ai.operation.name": "chat", **known, **_output(text)}


def _agent_answer(name: str, content: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    return f"{name}:answer", "user", {"gen_ai.operation.name": "chat", **_output(_text(content))}


_EVENTS: Mapping[str, Callable[[str, Mapping[str, Any]], tuple[str, str | None, dict[str, Any]]]] = {
    "USER_MESSAGE_RECEIVED": lambda name, content: (
        name,
        "",
        {"gen_ai.input.messages": _message("user", _text(content)), HAS_STEPS: True},
    ),
    "TOOL_STARTING": _tool_call,
    "TOOL_COMPLETED": lambda name, content: (f"{name}:tool", None, {RESULT: json.dumps(content.get("result"))}),
    "TOOL_ERROR": lambda name, _: (f"{name}:tool", None, {}),
    "LLM_RESPONSE": _model_reply,
    "AGENT_RESPONSE": _agent_answer,
}


_OTHERS = frozenset(
    {"INVOCATION_STARTING", "INVOCATION_COMPLETED", "INVOCATION_ERROR", "AGENT_STARTING", "AGENT_COMPLETED",
     "AGENT_ERROR", "LLM_REQUEST", "LLM_ERROR", "STATE_DELTA", "A2A_INTERACTION", "HITL_CREDENTIAL_REQUEST",
     "HITL_CONFIRMATION_REQUEST", "HITL_INPUT_REQUEST", "HITL_CREDENTIAL_REQUEST_COMPLETED",
     "HITL_CONFIRMATION_REQUEST_COMPLETED", "HITL_INPUT_REQUEST_COMPLETED"}
)  # fmt: skip
"""Types of the plugin's events that are ignored."""


def _text(content: Mapping[str, Any]) -> str:
    return next((value for name in _TEXTS if isinstance(value := content.get(name), str)), "")


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _output(text: str) -> dict[str, Any]:
    return {"gen_ai.output.messages": _message("assistant", text)} if text.strip() else {}


def _row_hash(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:16]
