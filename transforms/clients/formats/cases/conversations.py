"""Conversations in rows: lists of messages, and ADK's eval cases and results, which become a row for each turn."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankbeam.transforms.clients.formats.cases.paths import structured, value_at
from rankbeam.transforms.records.conversations import ASSISTANT, CONVERSATION, TURN, USER, Message

_TALK = "conversation"
_RESULTS = ("eval_metric_result_per_invocation", "evalMetricResultPerInvocation")
_INVOCATIONS = ("expected_invocation", "expectedInvocation", "actual_invocation", "actualInvocation")
_IDS = ("eval_id", "evalId")
_SPEAKERS = {"human": USER, "user": USER, "ai": ASSISTANT, "assistant": ASSISTANT, "model": ASSISTANT}


def turns_of(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The row as it was at each turn of its conversation, which ends with that turn.

    The first turn has the id of the case, the third that id and `:3`, so that results with fewer turns match. Rows of
    one turn are unchanged.

    >>> talk = [{"user_content": {}}, {"user_content": {}}]
    >>> [turn["eval_id"] for turn in turns_of({"eval_id": "refund", "conversation": talk})]
    ['refund', 'refund:2']
    """
    key = next((name for name in (_TALK, *_RESULTS) if isinstance(structured(row.get(name)), list)), None)
    turns = [] if key is None else structured(row[key])
    if len(turns) < 2:
        yield row
        return
    for number in range(1, len(turns) + 1):
        named = {name: f"{row[name]}:{number}" for name in _IDS if name in row and number > 1}
        place = {CONVERSATION: str(next((row[name] for name in _IDS if name in row), "")), TURN: number}
        yield {**row, **named, str(key): turns[:number], "metadata": {**(row.get("metadata") or {}), **place}}


def messages_in(talk: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages of a conversation as LangChain and OpenAI write it, without those of tools."""
    turns = [
        (_SPEAKERS.get(str(entry.get("type") or entry.get("role")).lower()), entry.get("content")) for entry in talk
    ]
    return [{"role": role, "text": text} for role, text in turns if role is not None and isinstance(text, str)]


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
    """The invocations of a row: those of an eval case, or in results those that were expected, else the actual ones."""
    talk = structured(row.get(_TALK))
    if isinstance(talk, list):
        return [entry for entry in talk if isinstance(entry, dict)]
    results = next((structured(row[name]) for name in _RESULTS if name in row), None)
    entries = [entry for entry in results if isinstance(entry, dict)] if isinstance(results, list) else []
    return [
        next((entry[name] for name in _INVOCATIONS if isinstance(entry.get(name), dict)), entry) for entry in entries
    ]
