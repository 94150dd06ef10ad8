"""Agents behind the API server of Google's Agent Development Kit (`adk api_server`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import JsonValue, model_validator

from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.records.conversations import HISTORY, USER, Message
from rankbeam.transforms.records.reply import Tokens
from rankbeam.transforms.records.trajectories import AgentSteps, parts_of, steps_of_parts

_TOKENS = {"input": "promptTokenCount", "cached": "cachedContentTokenCount", "output": "candidatesTokenCount"}


class AdkApplication(HttpApplication):
    """An agent, which gets every query in a new session that is deleted afterwards.

    `url` is the address of the API server, such as "http://localhost:8000".

    Attributes:
        app: name of the agent's application.
        user: user that the sessions belong to.
        agent: name of the root agent, the author of the answers in a history; by default the name of the application.
        contexts: JMESPath to the list of contexts in the response of a tool; without it, contexts are unknown.
    """

    app: str
    user: str = "rankbeam"
    agent: str | None = None
    contexts: str | None = None
    answer: str = "text"

    added: ClassVar[frozenset[str]] = HttpApplication.added | {"agent"}

    @model_validator(mode="before")
    @classmethod
    def _as_http(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        results = {"results": value["contexts"]} if "contexts" in value else {}
        url = {"url": f"{value['url'].rstrip('/')}/run"} if isinstance(value.get("url"), str) else {}
        return {"text": "text", **results, **value, **url}

    @property
    def template(self) -> JsonValue:
        """The body of the request that runs the agent."""
        message: JsonValue = {"role": "user", "parts": [{"text": "{query}"}]}
        return {"appName": self.app, "userId": self.user, "newMessage": message}

    @property
    def takes_history(self) -> bool:
        """The messages before the query are events of its session."""
        return True

    def with_history(self, body: Any, history: Sequence[Message]) -> Any:
        """The body of a request with the messages before the query, which the connection moves to the session."""
        return {**body, HISTORY: [self._event(message) for message in history]}

    def _event(self, message: Message) -> dict[str, JsonValue]:
        is_user = message["role"] == USER
        author, role = ("user", "user") if is_user else (self.agent or self.app, "model")
        return {"author": author, "content": {"role": role, "parts": [{"text": message["text"]}]}}

    def _text(self, reply: Any) -> Any:
        """The texts of the last event that has any: the agent's final answer."""
        events = [parts_of([event]) for event in _events(reply)]
        texts = [[part["text"] for part in parts if isinstance(part.get("text"), str)] for parts in events]
        return next(("".join(content) for content in reversed(texts) if content), None)

    def _tokens(self, reply: Any) -> Tokens:
        used = [event.get("usageMetadata") or {} for event in _events(reply)]
        tokens = Tokens(**{ours: sum(usage.get(theirs) or 0 for usage in used) for ours, theirs in _TOKENS.items()})
        return tokens if tokens.is_possible else Tokens()

    def _steps(self, reply: Any) -> AgentSteps | None:
        """The agent's calls of functions, in the events of its session; without ids if some context has none."""
        steps = steps_of_parts(parts_of(_events(reply)), self._retrieved)
        if all(name is not None for name, _ in self._contexts(reply) or ()):
            return steps
        return tuple(step if step.doc_ids is None else replace(step, doc_ids=()) for step in steps)

    def _retrieved(self, response: Any) -> tuple[str, ...] | None:
        """The ids of the documents in the response of a tool; None if it has no list of contexts."""
        if self.results is None or not isinstance(self._value(self.results, response), list):
            return None
        return tuple(name for name, _ in super()._contexts(response) or () if name is not None)

    def _contexts(self, reply: Any) -> tuple[tuple[str | None, str | None], ...] | None:
        if self.results is None:
            return None
        responses = [part.get("functionResponse") or {} for part in parts_of(_events(reply))]
        lists = [super(AdkApplication, self)._contexts(response.get("response")) or () for response in responses]
        return tuple(dict.fromkeys(context for contexts in lists for context in contexts))


def _events(reply: Any) -> list[dict[str, Any]]:
    return [event for event in reply if isinstance(event, dict)] if isinstance(reply, list) else []
