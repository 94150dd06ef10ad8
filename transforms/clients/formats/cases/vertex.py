"""Datasets of Vertex AI's Gen AI evaluation service: rows whose values may be Contents, requests and responses.

    flat        prompt, response, reference: texts or Contents; conversation_history, intermediate_events, agent_data
    Gemini      request {contents}, response {candidates}
    OpenAI      request {messages}, response {choices}
    dumped      EvaluationDataset as JSON: prompt, responses [{response}], reference {response}

A row becomes one of texts, messages and steps; other parts of a Content than text are left out and noted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.clients.formats.cases.eval_sets import CaseTurn
from rankbeam.transforms.clients.formats.cases.paths import structured
from rankbeam.transforms.records.conversations import USER, Message
from rankbeam.transforms.records.trajectories import AgentSteps, as_json, parts_of, steps_of_parts

NAME = "Vertex AI evaluation"
_HISTORY = ("conversation_history", "conversationHistory", "history")
_EVENTS = ("intermediate_events", "intermediateEvents")
_AGENT = ("agent_data", "agentData")
_OBJECTS = (*_HISTORY, *_EVENTS, *_AGENT, "responses", "request")
_CONTENTS = ("prompt", "response", "reference")
_MARKS = ("parts", "candidates", "choices")


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of a system, with the contexts and steps that it rests on, where they are known."""

    text: str
    contexts: tuple[str, ...] | None = None
    steps: AgentSteps | None = None


def plain(tool: str, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The row of a tool, with texts in the place of this service's objects, and its notes."""
    return with_texts(row) if tool == NAME else (dict(row), [])


def with_texts(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The row with texts, a conversation as `prompt`, and steps; and what users should know, as keys of notes."""
    row = {key: _parsed(key, value) for key, value in row.items()}
    events = [*_of(row, _EVENTS)]
    talk = [entry for entry in _of(row, _HISTORY) if isinstance(entry, Mapping)]
    agent = _first(row, _AGENT)
    if isinstance(agent, Mapping) and not row.get("prompt"):
        turns = [list(turn.get("events") or ()) for turn in agent.get("turns") or () if isinstance(turn, Mapping)]
        talk = [event for turn in turns for event in turn]
        events = turns[-1] if turns else []
    elif isinstance(row.get("request"), Mapping):
        talk = [*(row["request"].get("contents") or row["request"].get("messages") or ())]
    elif row.get("prompt"):
        talk.append({"role": "user", "content": row["prompt"]})
    messages = [one for one in map(_message, talk) if one is not None]
    is_request = isinstance(row.get("request"), Mapping)
    last = messages.pop() if is_request and messages and messages[-1]["role"] != "user" else None
    texts: dict[str, Any] = {
        "prompt": messages[0]["text"] if len(messages) == 1 and messages[0]["role"] == "user" else _as_talk(messages),
        "response": _responses(row),
        "reference": _text(row.get("reference")) if last is None else last["text"],
    }
    calls = steps_of_parts(parts_of(events))
    steps = {"intermediate_events": as_json(calls)} if events else {}
    contents = [*talk, *events, row.get("response"), row.get("reference"), *(row.get("responses") or ())]
    notes = ["other parts"] * any(map(_has_other_parts, contents))
    notes += ["text history"] * any(isinstance(entry, str) for entry in (_first(row, _HISTORY), *_of(row, _HISTORY)))
    return {**row, **texts, **steps}, notes


def _parsed(key: str, value: Any) -> Any:
    """The value; CSV holds objects as text, and a text of the user's own may look like one."""
    if key in _OBJECTS:
        return structured(value)
    content = structured(value) if key in _CONTENTS else value
    is_object = isinstance(content, Mapping) and any(isinstance(content.get(mark), list) for mark in _MARKS)
    return content if is_object else value


def _as_talk(messages: Iterable[Message]) -> list[dict[str, str]] | None:
    return [{"role": message["role"], "content": message["text"]} for message in messages] or None


def _message(value: Any) -> Message | None:
    """A Content, or a message or event around one; None for what says nothing, such as calls of tools."""
    if not isinstance(value, Mapping):
        return None
    content = value.get("content", value)
    inner = content.get("role") if isinstance(content, Mapping) else None
    role = str(value.get("role") or inner or value.get("author") or "user")
    text = _text(content)
    if not text or role in ("system", "developer", "tool", "function"):
        return None
    return {"role": "user" if role == "user" else "assistant", "text": text}


def _responses(row: Mapping[str, Any]) -> Any:
    """The response, or all of several candidates."""
    response = row.get("response")
    if isinstance(response, Mapping):
        candidates = response.get("candidates") or response.get("choices")
        if isinstance(candidates, list):
            response = candidates
    elif response is None:
        response = row.get("responses")
    if not isinstance(response, list):
        return _text(response)
    texts = [text for text in map(_text, response) if text]
    return texts[0] if len(texts) == 1 else texts or None


def _text(value: Any) -> Any:
    """The text of a Content, also inside a candidate or message; other values unchanged."""
    for key in ("response", "message", "content"):
        if isinstance(value, Mapping) and isinstance(value.get(key), Mapping | str):
            value = value[key]
    if not isinstance(value, Mapping):
        return value
    if not isinstance(value.get("parts"), list):
        return None
    texts = [part.get("text") for part in value["parts"] if isinstance(part, Mapping) and not part.get("thought")]
    return "".join(text for text in texts if isinstance(text, str)) or None


_CALLS = ("function_call", "functionCall", "function_response", "functionResponse")


def _has_other_parts(value: Any) -> bool:
    """Return whether a Content, inside whatever it is, has an image, a file or code."""
    if isinstance(value, list):
        return any(map(_has_other_parts, value))
    if not isinstance(value, Mapping):
        return False
    parts = value.get("parts")
    if isinstance(parts, list):
        known = {"text", *_CALLS}
        return any(isinstance(part, Mapping) and all(part.get(key) is None for key in known) for part in parts)
    return any(_has_other_parts(value[key]) for key in ("content", "response", "candidates") if key in value)


def _of(row: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    value = _first(row, names)
    return value if isinstance(value, list) else []


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def row_of(
    query_id: str, turn: CaseTurn, history: Iterable[Message], answer: ModelAnswer | None = None
) -> dict[str, Any]:
    """A query as a flat row, with the answer of a system if one is known; read again, it is the same case."""
    talk = [
        {"role": "user" if message["role"] == USER else "model", "parts": [{"text": message["text"]}]}
        for message in history
    ]
    row = {
        "prompt": turn.question,
        "response": None if answer is None else answer.text,
        "reference": turn.answer,
        "conversation_history": talk or None,
        "context": None if answer is None or answer.contexts is None else "\n\n".join(answer.contexts),
        "contexts": None if answer is None or answer.contexts is None else list(answer.contexts),
        "predicted_trajectory": None if answer is None else _trajectory(answer.steps),
        "reference_trajectory": _trajectory(turn.steps),
        "query_id": query_id,
    }
    return {key: value for key, value in row.items() if value is not None}


def _trajectory(steps: AgentSteps | None) -> list[dict[str, Any]] | None:
    """Steps in the words of this service's trajectory metrics."""
    rows = None if steps is None else as_json(steps)
    return None if rows is None else [{"tool_name": row["tool"], "tool_input": row["args"]} for row in rows]
