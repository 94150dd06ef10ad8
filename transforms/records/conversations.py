"""Conversations: the messages before a query, and the attributes that name its conversation and its turn."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rankbeam.transforms.records.errors import shortened

HISTORY, TURN, CONVERSATION = "history", "turn", "conversation"  # the attributes of a query

Message = dict[str, str]  # a message with its `role` ("user" or "assistant") and its `text`

USER, ASSISTANT = "user", "assistant"
_MOST_SHOWN = 60


def is_history(value: Any) -> bool:
    """Return whether a value is a list of messages.

    >>> is_history([{"role": "user", "text": "Hi"}]), is_history([]), is_history("long ago")
    (True, True, False)
    """
    return isinstance(value, list) and all(
        isinstance(entry, Mapping) and {"role", "text"} <= entry.keys() for entry in value
    )


def history_of(attributes: Mapping[str, str]) -> list[Message]:
    """The messages before a query; empty if its history is missing or not a list of messages.

    >>> history_of({"history": '[{"role": "user", "text": "Hi"}]'}), history_of({"history": "long ago"})
    ([{'role': 'user', 'text': 'Hi'}], [])
    """
    text = attributes.get(HISTORY, "")
    if not text.startswith("["):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [{"role": entry["role"], "text": entry["text"]} for entry in value] if is_history(value) else []


def as_dialogue(history: Sequence[Message]) -> str:
    """Messages as a text, for a prompt.

    >>> as_dialogue([{"role": "user", "text": "Who pays?"}, {"role": "assistant", "text": "Owners."}])
    'user: Who pays?\\nassistant: Owners.'
    """
    return "\n".join(f"{message['role']}: {message['text']}" for message in history)


def with_history(query: str, attributes: Mapping[str, str]) -> str:
    """The texts of the messages before a query, and the query.

    >>> with_history("And when?", {"history": '[{"role": "user", "text": "Who pays?"}]'})
    'Who pays?\\nAnd when?'
    """
    return "\n".join([*(message["text"] for message in history_of(attributes)), query])


def problem_of(attributes: Mapping[str, Any]) -> str | None:
    """The defect of a query's history, if it has messages, or None.

    >>> problem_of({"history": [{"role": "user", "text": "Hi"}], "turn": 3})
    'is turn 3, and its history has 1 message of the user instead of 2: a turn is missing'
    """
    history = attributes.get(HISTORY)
    return _defect(history, attributes.get(TURN)) if history and is_history(history) else None


def problem_of_turn(attributes: Mapping[str, str]) -> str | None:
    """The defect of the history of a query that is a turn of a conversation, or None.

    >>> problem_of_turn({"turn": "2"})
    'is turn 2, and its history has 0 messages of the user instead of 1: a turn is missing'
    """
    history, turn = history_of(attributes), attributes.get(TURN) or None
    if not history and attributes.get(HISTORY, "") not in ("", "[]"):
        return f"history: expected a list of {{role, text}}, found {shortened(attributes[HISTORY], _MOST_SHOWN)}"
    return _defect(history, int(turn) if turn is not None and turn.isdecimal() else turn)


def _defect(history: Sequence[Mapping[str, Any]], turn: Any) -> str | None:
    for place, entry in enumerate(history):
        if entry["role"] not in (USER, ASSISTANT):
            return f"history.{place}: has the role {entry['role']!r}; write user or assistant"
        if not isinstance(entry["text"], str) or not entry["text"].strip():
            return f"history.{place}: has no text"
    users = sum(entry["role"] == USER for entry in history)
    if turn is None:
        return None
    if type(turn) is not int or turn < 1:
        return f"turn: expected a number from 1, found {turn!r}"
    if users != turn - 1:
        plural = "" if users == 1 else "s"
        return f"is turn {turn}, and its history has {users} message{plural} of the user instead of {turn - 1}: " + (
            "a turn is missing" if users < turn - 1 else "it has later turns"
        )
    return None
