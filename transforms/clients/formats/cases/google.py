"""Google's formats of cases: datasets of Vertex AI's evaluation service, and ADK's EvalSets and results.

Values in Vertex AI's rows may be Contents, requests and responses:

    flat        prompt, response, reference: texts or Contents; conversation_history, intermediate_events, agent_data
    Gemini      request {contents}, response {candidates}
    OpenAI      request {messages}, response {choices}
    dumped      EvaluationDataset as JSON: prompt, responses [{response}], reference {response}

A row is rewritten with texts, messages and steps; parts of a Content other than text are left out and noted.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.clients.storage.json_paths import parse_literal, value_at
from rankbeam.transforms.records.conversations import ASSISTANT, CONVERSATION, TURN, USER, Message
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.trajectories import AgentSteps, as_json, parts_of, steps_of_parts

NAME = "Vertex AI evaluation"
_HISTORY = ("conversation_history", "conversationHistory", "history")
_EVENTS = ("intermediate_events", "intermediateEvents")
_AGENT = ("agent_data", "agentData")
_OBJECTS = (*_HISTORY, *_EVENTS, *_AGENT, "responses", "request")
_CONTENTS = ("prompt", "response", "reference")
_MARKS = ("parts", "candidates", "choices")
SUFFIX = ".evalset.json"
_NAME = re.compile(r"[a-zA-Z0-9_]+")
NO_TIME = 0.0  # so that equal sets have equal bytes
_TALK = "conversation"
_METRIC_RESULTS = ("eval_metric_result_per_invocation", "evalMetricResultPerInvocation")
_INVOCATION_NAMES = ("expected_invocation", "expectedInvocation", "actual_invocation", "actualInvocation")
_IDS = ("eval_id", "evalId")
_SPEAKERS = {"human": USER, "user": USER, "ai": ASSISTANT, "assistant": ASSISTANT, "model": ASSISTANT}


@dataclass(frozen=True)
class ModelAnswer:
    """A system's answer, with the contexts and steps behind it if they are known."""

    text: str
    contexts: tuple[str, ...] | None = None
    steps: AgentSteps | None = None


@dataclass(frozen=True)
class CaseTurn:
    """A question, with the answer and steps expected of an agent."""

    question: str
    answer: str | None = None  # the reference answer; None if it is not known
    steps: AgentSteps | None = None  # the expected steps; None if they are not known


def plain(tool: str, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A tool's row with this service's objects replaced by texts, and the row's notes."""
    return with_texts(row) if tool == NAME else (dict(row), [])


def with_texts(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The row with texts, a conversation as `prompt`, and steps; and the keys of the notes that users should read."""
    row = {key: _parse_value(key, value) for key, value in row.items()}
    events = [*_list(row, _EVENTS)]
    talk = [entry for entry in _list(row, _HISTORY) if isinstance(entry, Mapping)]
    agent = _first(row, _AGENT)
    if isinstance(agent, Mapping) and not row.get("prompt"):
        turns = [list(turn.get("events") or ()) for turn in agent.get("turns") or () if isinstance(turn, Mapping)]
        talk = [event for turn in turns for event in turn]
        events = turns[-1] if turns else []
    elif isinstance(row.get("request"), Mapping):
        talk = [*(row["request"].get("contents") or row["request"].get("messages") or ())]
    elif row.get("prompt"):
        talk.append({"role": "user", "content": row["prompt"]})
    messages = [message for message in map(_message, talk) if message is not None]
    is_request = isinstance(row.get("request"), Mapping)
    last = messages.pop() if is_request and messages and messages[-1]["role"] != "user" else None
    chat = [{"role": message["role"], "content": message["text"]} for message in messages]
    texts: dict[str, Any] = {
        "prompt": messages[0]["text"] if len(messages) == 1 and messages[0]["role"] == "user" else chat or None,
        "response": _responses(row),
        "reference": _text(row.get("reference")) if last is None else last["text"],
    }
    calls = steps_of_parts(parts_of(events))
    steps = {"intermediate_events": as_json(calls)} if events else {}
    contents = [*talk, *events, row.get("response"), row.get("reference"), *(row.get("responses") or ())]
    notes = ["other parts"] * any(map(_has_other_parts, contents))
    notes += ["text history"] * any(isinstance(entry, str) for entry in (_first(row, _HISTORY), *_list(row, _HISTORY)))
    return {**row, **texts, **steps}, notes


def _parse_value(key: str, value: Any) -> Any:
    """The value, parsed if it is an object: CSV stores objects as text, but a user's text may look like one."""
    if key in _OBJECTS:
        return parse_literal(value)
    content = parse_literal(value) if key in _CONTENTS else value
    is_object = isinstance(content, Mapping) and any(isinstance(content.get(mark), list) for mark in _MARKS)
    return content if is_object else value


def _message(value: Any) -> Message | None:
    """The message in a Content, or in a message or event around one; None without text, as for tool calls."""
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
    """Return whether a Content, however nested, has an image, a file or code."""
    if isinstance(value, list):
        return any(map(_has_other_parts, value))
    if not isinstance(value, Mapping):
        return False
    parts = value.get("parts")
    if isinstance(parts, list):
        known = {"text", *_CALLS}
        return any(isinstance(part, Mapping) and all(part.get(key) is None for key in known) for part in parts)
    return any(_has_other_parts(value[key]) for key in ("content", "response", "candidates") if key in value)


def _list(row: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    value = _first(row, names)
    return value if isinstance(value, list) else []


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def row_of(
    query_id: str, turn: CaseTurn, history: Iterable[Message], answer: ModelAnswer | None = None
) -> dict[str, Any]:
    """A query as a flat row, with a system's answer if one is known; reading the row gives the same case again."""
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
    """Steps under the keys of this service's trajectory metrics."""
    rows = None if steps is None else as_json(steps)
    return None if rows is None else [{"tool_name": row["tool"], "tool_input": row["args"]} for row in rows]


def turns_in(history: Sequence[Message]) -> list[CaseTurn]:
    """The turns before a query; the actual answers count as the expected ones."""
    turns: list[CaseTurn] = []
    for message in history:
        if message["role"] == USER:
            turns.append(CaseTurn(message["text"]))
        elif turns:
            turns[-1] = CaseTurn(turns[-1].question, "\n".join(filter(None, (turns[-1].answer, message["text"]))))
    return turns


def invocation(name: str, turn: CaseTurn) -> dict[str, Any]:
    answer = {} if turn.answer is None else {"finalResponse": {"role": "model", "parts": [{"text": turn.answer}]}}
    uses = [{"name": step.tool, "args": _arguments(step.args)} for step in turn.steps or ()]
    data = {"toolUses": uses, "toolResponses": [], "intermediateResponses": []}
    return {
        "invocationId": name,
        "userContent": {"role": "user", "parts": [{"text": turn.question}]},
        **answer,
        **({} if turn.steps is None else {"intermediateData": data}),
        "creationTimestamp": NO_TIME,
    }


def case_of(name: str, turns: Iterable[CaseTurn], **more: Any) -> dict[str, Any]:
    talk = [invocation(f"{name}-{number}", turn) for number, turn in enumerate(turns, start=1)]
    return {"evalId": name, "conversation": talk, **more, "creationTimestamp": NO_TIME}


def eval_set(path: str, title: str, cases: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The path and text of an EvalSet; its id is the name of its file."""
    name = path.rpartition("/")[2].removesuffix(SUFFIX).removesuffix(".json")
    if not _NAME.fullmatch(name):
        better = re.sub(r"\W", "_", name)
        problem = f"ADK takes letters, digits and _ in the name of an EvalSet, not {name!r}; write {better}{SUFFIX}"
        raise InputError(problem, path=path)
    full = path if path.endswith(SUFFIX) else f"{path.removesuffix('.json')}{SUFFIX}"
    value = {"eval_set_id": name, "name": title, "eval_cases": list(cases), "creation_timestamp": NO_TIME}
    return full, json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, which ADK wants as an object."""
    value = json.loads(text)
    return value if isinstance(value, dict) else {"value": value}


def turns_of(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The row at each turn of its conversation, cut after that turn.

    The first turn has the case's id, the third that id and `:3`, so that results with fewer turns match. Rows with one
    turn are unchanged.
    """
    key = next((name for name in (_TALK, *_METRIC_RESULTS) if isinstance(parse_literal(row.get(name)), list)), None)
    turns = [] if key is None else parse_literal(row[key])
    if len(turns) < 2:
        yield row
        return
    for number in range(1, len(turns) + 1):
        named = {name: f"{row[name]}:{number}" for name in _IDS if name in row and number > 1}
        place = {CONVERSATION: str(next((row[name] for name in _IDS if name in row), "")), TURN: number}
        yield {**row, **named, str(key): turns[:number], "metadata": {**(row.get("metadata") or {}), **place}}


def messages_in(talk: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages of a conversation in the format of LangChain and OpenAI, without tool messages."""
    turns = [
        (_SPEAKERS.get(str(entry.get("type") or entry.get("role")).lower()), entry.get("content")) for entry in talk
    ]
    return [{"role": role, "text": text} for role, text in turns if role is not None and isinstance(text, str)]


def calls_in(talk: Sequence[Any] | None, expected: Any) -> list[Any] | None:
    """The tool calls in a conversation; None without messages, or without calls if no expected steps are stated.

    >>> calls_in([{"type": "ai", "tool_calls": [{"name": "find"}]}], None), calls_in([{"type": "ai"}], [])
    ([{'name': 'find'}], [])
    """
    messages = [entry for entry in talk or () if isinstance(entry, Mapping)]
    calls = [call for entry in messages for call in entry.get("tool_calls") or ()]
    return calls if calls or (messages and expected is not None) else None


def messages_before(row: Mapping[str, Any]) -> list[Message]:
    """The messages of an ADK conversation before its last turn, which is the question."""
    names = ((USER, "user_content", "userContent"), (ASSISTANT, "final_response", "finalResponse"))
    spoken = [
        (role, value_at(turn, f"({snake} || {camel}).parts[].text"))
        for turn in spoken_turns(row)[:-1]
        for role, snake, camel in names
    ]
    return [{"role": role, "text": "".join(texts)} for role, texts in spoken if texts]


def spoken_turns(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A row's invocations: those of an eval case; in results, the expected ones if known, else the actual ones."""
    talk = parse_literal(row.get(_TALK))
    if isinstance(talk, list):
        return [entry for entry in talk if isinstance(entry, dict)]
    results = next((parse_literal(row[name]) for name in _METRIC_RESULTS if name in row), None)
    entries = [entry for entry in results if isinstance(entry, dict)] if isinstance(results, list) else []
    return [
        next((entry[name] for name in _INVOCATION_NAMES if isinstance(entry.get(name), dict)), entry)
        for entry in entries
    ]
