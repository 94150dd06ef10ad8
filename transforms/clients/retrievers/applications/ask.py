"""Query an application: remote work with one call per query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import JsonValue, model_validator

from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.base import Question, Retrieve
from rankbeam.transforms.clients.storage.json_paths import finder
from rankbeam.transforms.records.calls.steps import Call, Steps, results_or_raise
from rankbeam.transforms.records.conversations import HISTORY, USER, Message
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens
from rankbeam.transforms.records.trajectories import AgentSteps, ApplicationAnswer, parts_of, steps_in, steps_of_parts

_FINISH = "choices[0].finish_reason"
_CACHED = "usage.prompt_tokens_details.cached_tokens || usage.prompt_cache_hit_tokens"  # of OpenAI, or DeepSeek
_TOKENS = {
    "input": ("promptTokenCount", "toolUsePromptTokenCount"),
    "cached": ("cachedContentTokenCount",),
    "output": ("candidatesTokenCount", "thoughtsTokenCount"),
}


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
    unused: ClassVar[frozenset[str]] = HttpApplication.unused | {
        "method", "body", "answer", "usage", "steps", "stream", "end"
    }  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _as_http(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        results = {"results": value["contexts"]} if "contexts" in value else {}
        address, mark, query = str(value.get("url")).partition("?")
        url = {"url": f"{address.rstrip('/')}/run{mark}{query}"} if isinstance(value.get("url"), str) else {}
        return {"text": "text", **results, **value, **url}

    @property
    def template(self) -> JsonValue:
        message: JsonValue = {"role": "user", "parts": [{"text": "{query}"}]}
        return {"appName": self.app, "userId": self.user, "newMessage": message}

    @property
    def reports_tokens(self) -> bool:
        return True

    @property
    def takes_history(self) -> bool:
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
        counts = {ours: [usage.get(name) or 0 for usage in used for name in theirs] for ours, theirs in _TOKENS.items()}
        tokens = Tokens(**{ours: sum(numbers) for ours, numbers in counts.items()})
        return tokens if tokens.is_possible else Tokens()

    def _cut(self, reply: Any) -> str | None:
        reasons = [str(event["finishReason"]) for event in _events(reply) if event.get("finishReason")]
        return reasons[-1] if reasons and reasons[-1] != "STOP" else None

    def _steps(self, reply: Any) -> AgentSteps | None:
        """The agent's calls of functions, in the events of its session; without ids if some context has none."""
        steps = steps_of_parts(parts_of(_events(reply)), self._retrieved_ids)
        if all(name is not None for name, _ in self._contexts(reply) or ()):
            return steps
        return tuple(step if step.doc_ids is None else replace(step, doc_ids=()) for step in steps)

    def _retrieved_ids(self, response: Any) -> tuple[str, ...] | None:
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


class ChatApplication(HttpApplication):
    """An application behind an OpenAI-compatible endpoint, which gets the query as the user's message.

    The messages before the query come first.

    `url` is the address of the endpoint, such as "http://localhost:8000/v1/chat/completions".

    Attributes:
        body: JSON body. A string that consists of one placeholder is replaced by the value in its own type. By default
            the messages before the query and the query are sent as "messages", with `model` if it is set.
        model: name of the model or agent that the endpoint serves.
        contexts: JMESPath to the list of contexts in the reply, such as "choices[0].message.context.citations".
        steps: JMESPath to the list of the agent's tool calls; by default the message's `tool_calls`; if there are none,
            steps are unknown.
    """

    model: str | None = None
    contexts: str | None = None
    answer: str = "choices[0].message.content"

    unused: ClassVar[frozenset[str]] = HttpApplication.unused | {"end"}

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
        if self.body is not None:
            return body
        earlier = [{"role": entry["role"], "content": entry["text"]} for entry in history]
        return {**body, "messages": [*earlier, *body["messages"]]}

    def _steps(self, reply: Any) -> AgentSteps | None:
        if self.steps is not None:
            return super()._steps(reply)
        events = reply["events"] if self.stream else [reply]
        path = finder("choices[0].delta.tool_calls[]" if self.stream else "choices[0].message.tool_calls[]")
        try:
            calls = _join_calls(call for event in events for call in path(event) or ())
            return steps_in(calls) if calls else None
        except (KeyError, TypeError, ValueError) as error:
            raise CallError(FailureKind.MALFORMED, f"tool_calls: {error}") from error

    def _tokens(self, reply: Any) -> Tokens:
        """The tokens at `usage`, and cached ones where services report them if `usage` does not say."""
        tokens = super()._tokens(reply)
        if "cached" in self.usage or (cached := self._value(_CACHED, reply)) is None:
            return tokens
        with_cached = replace(tokens, cached=cached)
        return with_cached if with_cached.is_possible else tokens

    def _cut(self, reply: Any) -> str | None:
        finish = self._value(_FINISH, reply)
        return finish if finish in ("length", "max_tokens", "content_filter") else None

    @property
    def ending(self) -> str:
        return "a finish reason"

    def has_ended(self, events: Sequence[Any], is_done: bool) -> bool:
        return is_done or any(finder(_FINISH)(event) for event in events)


def _join_calls(calls: Iterable[Any]) -> list[Any]:
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


APPLICATIONS: Mapping[str, type[HttpApplication]] = {
    "http": HttpApplication,
    "openai_chat": ChatApplication,
    "adk": AdkApplication,
}
"""Types of `answers:` that are asked."""


@dataclass(frozen=True)
class Ask(Retrieve):
    """Asks an application for the answer to a query."""

    retriever: HttpApplication

    def of_queries(self, queries: pa.RecordBatch, cut: list[int]) -> Sequence[Question]:  # noqa: ARG002  none is embedded
        return self.retriever.requests(self.kind, queries)

    def steps(self, item: Question) -> Steps[ApplicationAnswer]:  # type: ignore[override]
        key, payload, *_ = item
        answer: ApplicationAnswer
        (answer,) = results_or_raise((yield [Call(self.service, key, payload, self.depth)]))
        return answer

    def read(self, call: Call, reply: Reply) -> ApplicationAnswer:  # type: ignore[override]  # noqa: ARG002
        answer = self.retriever.read(reply.answer)
        # `usage:` may be newer than the reply, which alone has the tokens of failed attempts.
        is_read = reply.attempts == 1 or not reply.tokens.total
        tokens = answer.consumption.tokens if is_read else reply.tokens
        return replace(answer, consumption=replace(answer.consumption, tokens=tokens, attempts=reply.attempts))
