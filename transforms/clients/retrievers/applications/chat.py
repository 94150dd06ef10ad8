"""Applications that speak OpenAI's protocol for chats, such as gateways and agents."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import JsonValue, model_validator

from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.storage.json_paths import finder
from rankbeam.transforms.records.conversations import Message
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.trajectories import AgentSteps, steps_in


class ChatApplication(HttpApplication):
    """An application behind an OpenAI-compatible endpoint, which gets the query as the user's message.

    The messages before the query come first.

    `url` is the address of the endpoint, such as "http://localhost:8000/v1/chat/completions".

    Attributes:
        model: name of the model or agent that the endpoint serves.
        contexts: JMESPath to the list of contexts in the reply, such as "choices[0].message.context.citations".
        steps: JMESPath to the list of the agent's tool calls; by default the message's `tool_calls`; if there are none,
            steps are unknown.
    """

    model: str | None = None
    contexts: str | None = None
    answer: str = "choices[0].message.content"

    @model_validator(mode="before")
    @classmethod
    def _as_http(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        usage = {"input": "usage.prompt_tokens", "output": "usage.completion_tokens"}
        results = {"results": value["contexts"]} if "results" not in value and "contexts" in value else {}
        answer = {"answer": "choices[0].delta.content"} if value.get("stream") is True else {}
        return {"usage": usage, "text": "content", **answer, **results, **value}

    @property
    def template(self) -> JsonValue:
        """The body that is sent, with placeholders."""
        if self.body is not None:
            return self.body
        model: dict[str, JsonValue] = {} if self.model is None else {"model": self.model}
        stream: dict[str, JsonValue] = (
            {"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}
        )
        return {**model, "messages": [{"role": "user", "content": "{query}"}], **stream}

    @property
    def takes_history(self) -> bool:
        """The messages before the query are sent before it, unless `body` says otherwise."""
        return self.body is None or super().takes_history

    def with_history(self, body: Any, history: Sequence[Message]) -> Any:
        """The body of a request with the messages before the query."""
        if self.body is not None:
            return body
        earlier = [{"role": entry["role"], "content": entry["text"]} for entry in history]
        return {**body, "messages": [*earlier, *body["messages"]]}

    def _steps(self, reply: Any) -> AgentSteps | None:
        if self.steps is not None:
            return super()._steps(reply)
        events = reply["events"] if self.stream else [reply]
        path = finder("choices[0].delta.tool_calls[]" if self.stream else "choices[0].message.tool_calls[]")
        calls = _joined(call for event in events for call in path(event) or ())
        try:
            return steps_in(calls) if calls else None
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"tool_calls: {error}") from error

    def has_ended(self, events: Sequence[Any], is_done: bool) -> bool:
        """A stream ends with [DONE], or with a reason in its last choice."""
        return is_done or any(finder("choices[0].finish_reason")(event) for event in events)


def _joined(calls: Iterable[Any]) -> list[Any]:
    """Calls of tools; a stream sends the arguments of the call with one `index` in pieces."""
    joined: dict[Any, Any] = {}
    for place, call in enumerate(calls):
        key = call.get("index", -place - 1) if isinstance(call, dict) else -place - 1
        piece = call.get("function") if isinstance(call, dict) else None
        if key in joined and isinstance(piece, dict):
            joined[key]["function"]["arguments"] += piece.get("arguments") or ""
        else:
            joined[key] = {**call, "function": {"arguments": "", **piece}} if isinstance(piece, dict) else call
    return list(joined.values())
