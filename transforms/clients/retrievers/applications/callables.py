"""Applications in this process: any Python function, or an object of LangChain, LlamaIndex or Haystack.

These objects are known by their methods, so that none of the three has to be installed.
"""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import JsonValue, field_validator

from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedError
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.records.columns import attributes_in
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.trajectories import AgentSteps, has_steps

Function = Callable[[str, Mapping[str, str]], Any]
"""Takes a query and its attributes; returns a text, or {answer, contexts}, or an awaitable of one."""


@dataclass(frozen=True)
class AdaptedSystem:
    """A function that answers queries, and whether its answer depends on the attributes of a query."""

    function: Function
    takes_attributes: bool = False


_QUESTIONS = ("query", "question", "input", "text", "user_input")
_METHODS = ("ainvoke", "invoke", "aquery", "query")


def adapt_system(system: Any) -> AdaptedSystem:
    """Return a system that calls this function or object."""
    if hasattr(system, "get_input_jsonschema"):
        return AdaptedSystem(langchain(system))
    if hasattr(system, "run") and hasattr(system, "graph"):
        return AdaptedSystem(haystack(system))
    method = next((getattr(system, name) for name in _METHODS if callable(getattr(system, name, None))), None)
    if method is not None:  # a query engine of LlamaIndex, among others
        return AdaptedSystem(lambda text, _attributes: method(text))
    if not callable(system):
        raise TypeError(f"{type(system).__name__} is neither a function nor an object with invoke, query or run")
    if _takes_attributes(system):
        return AdaptedSystem(system, takes_attributes=True)
    return AdaptedSystem(lambda text, _attributes: system(text))


def _takes_attributes(function: Function) -> bool:
    """Return whether the second parameter takes attributes; a default such as 5 or {"k": 5} shows a setting."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have none
        return False
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    second = [entry.default for entry in signature.parameters.values() if entry.kind in by_position][1:2]
    takes = any(
        default in (inspect.Parameter.empty, None) or (isinstance(default, Mapping) and not default)
        for default in second
    )
    try:
        signature.bind("query", *[{}] * takes)
    except TypeError as error:
        problem = f"a system takes a query, and its attributes if it needs them; the parameters are {signature}"
        raise TypeError(problem) from error
    return takes


def langchain(runnable: Any) -> Function:
    """Adapt a chain, an agent or a chat model; a chain of several inputs gets the query as its question."""
    schema = runnable.get_input_jsonschema()
    names = [*schema.get("properties", ())] if schema.get("type") == "object" else []

    async def ask(text: str, _attributes: Mapping[str, str]) -> Any:
        if "messages" in names:
            result = await runnable.ainvoke({"messages": [{"role": "user", "content": text}]})
            calls = [call for message in result["messages"] for call in getattr(message, "tool_calls", None) or ()]
            by_call = _retrieved_by_call(result["messages"])
            read = {name: result[name] for name in _CONTEXTS if isinstance(result.get(name), list | str)}
            if by_call and not read:
                contexts = (context for retrieved in by_call.values() for context in retrieved)
                read = {"contexts": [*{tuple(context.values()): context for context in contexts}.values()]}
            steps = [{**call, **_doc_ids(by_call.get(call.get("id")))} for call in calls]
            return {**read, "answer": result["messages"][-1], "steps": steps}
        name = names[0] if len(names) == 1 else next((name for name in _QUESTIONS if name in names), "root")
        return await runnable.ainvoke(text if name == "root" else {name: text})

    return ask


def _retrieved_by_call(messages: Iterable[Any]) -> dict[str | None, list[dict[str, str | None]]]:
    """The documents that tools returned as artifacts beside their texts, by the id of the call."""
    artifacts = {getattr(message, "tool_call_id", None): getattr(message, "artifact", None) for message in messages}
    return {
        name: [_context(document) for document in artifact]
        for name, artifact in artifacts.items()
        if isinstance(artifact, list | tuple) and all(hasattr(document, "page_content") for document in artifact)
    }


def _doc_ids(retrieved: Iterable[Mapping[str, str | None]] | None) -> dict[str, list[str | None]]:
    ids = None if retrieved is None else [context["doc_id"] for context in retrieved]
    return {} if ids is None or None in ids else {"doc_ids": ids}


def haystack(pipeline: Any) -> Function:
    """Adapt a pipeline: every input that is named as a query gets it; the last documents are the contexts."""
    inputs = {name for sockets in pipeline.inputs().values() for name in sockets}
    names = [name for name in _QUESTIONS if name in inputs]
    if not names:
        raise TypeError(f"the pipeline has none of the inputs {', '.join(_QUESTIONS)}; write a function that runs it")

    def ask(text: str, _attributes: Mapping[str, str]) -> dict[str, Any]:
        outputs = pipeline.run(dict.fromkeys(names, text), include_outputs_from={*pipeline.graph.nodes})
        result: dict[str, Any] = {"answer": None, "contexts": None}
        for output in outputs.values():
            result["contexts"] = output.get("documents", result["contexts"])
            if replies := output.get("replies"):
                result["answer"] = replies[0] if isinstance(replies[0], str) else replies[0].text
            if answers := output.get("answers"):
                result["answer"] = answers[0].data
        return result

    return ask


CALLABLE = "callable"  # the type of these applications, which `rankbeam.evaluate(…, system=…)` uses

_systems: dict[str, AdaptedSystem] = {}
_registering = threading.Lock()
_ANSWERS = ("answer", "output", "result", "response")
_CONTEXTS = ("contexts", "context", "source_documents", "documents")
_TEXTS = ("text", "page_content", "content")
_IDS = ("doc_id", "ref_doc_id", "id", "id_")


@contextmanager
def register_systems(systems: Mapping[str, Any]) -> Iterator[None]:
    """Make systems known by name as long as the block lasts; no other thread may use their names meanwhile."""
    functions = {name: adapt_system(system) for name, system in systems.items()}
    with _registering:
        if taken := sorted(functions.keys() & _systems.keys()):
            problem = "is being evaluated by another thread; wait for it, or name this one: system={NAME: function}"
            raise InputError(f"system {taken[0]!r} {problem}")
        _systems.update(functions)
    try:
        yield
    finally:
        for name in systems:
            del _systems[name]


class CallableApplication(HttpApplication):
    """A function of this process.

    Attributes:
        system: name of the function.
        attributes_of_queries: names of the attributes that decide its answer, besides the query's text.
    """

    system: str
    url: str = "http://callable/"
    answer: str = "answer"
    results: str | None = "contexts"
    id: str | None = "doc_id"
    text: str | None = "text"
    steps: str | None = "steps"
    attributes_of_queries: tuple[str, ...] = ()

    reading: ClassVar[frozenset[str]] = HttpApplication.reading | {"url"}

    @field_validator("system")
    @classmethod
    def _known_system(cls, value: str) -> str:
        if value not in _systems:
            raise ValueError("is a function of Python; use rankbeam.evaluate(…, system=…)")
        return value

    @property
    def template(self) -> JsonValue:
        return {"query": "{query}", **{name: f"{{{name}}}" for name in self.attributes_of_queries}}

    @property
    def takes_history(self) -> bool:
        """A function that takes attributes gets the history among them."""
        return _systems[self.system].takes_attributes

    @property
    def access(self) -> Access:
        """Access that no failure is counted against: a function's failure concerns one query only."""
        return Access(f"the function {self.system!r}", (), frozenset())

    def requests(self, kind: str, queries: pa.RecordBatch) -> list[tuple[str, str]]:
        """Key and payload of the call for each query; attributes are part of them if the function takes attributes."""
        requests = super().requests(kind, queries)
        if not _systems[self.system].takes_attributes:
            return requests
        attributes = list(map(attributes_in, queries["attributes"].to_pylist()))
        return [
            (
                content_key({"key": key, "attributes": entry}) if entry else key,
                json.dumps({**entry, **json.loads(payload)}, ensure_ascii=False),
            )
            for (key, payload), entry in zip(requests, attributes, strict=True)
        ]

    def _steps(self, reply: Any) -> AgentSteps | None:
        return super()._steps(reply) if "steps" in reply else None

    def scope(self) -> str:
        return self.system

    async def connect(self) -> "CallableConnection":
        if self.system not in _systems:
            raise CallError(FailureKind.INVALID, f"the function {self.system!r} is not known in this process")
        return CallableConnection(_systems[self.system])


async def _in_thread(function: Function, query: str, attributes: Mapping[str, str]) -> Any:
    """The result of a function.

    Each call has a thread of its own that ends with the process: functions that never return would fill asyncio's pool
    of threads, which the ledger needs, too, and would keep the process from ending.
    """
    future: Future[Any] = Future()

    def call() -> None:
        try:
            future.set_result(function(query, attributes))
        except StopIteration as error:  # as of next(…); asyncio cannot raise it in a coroutine
            future.set_exception(UnexpectedError(error, "the function raised", "its traceback is in"))
        except BaseException as error:
            future.set_exception(error)

    future.set_running_or_notify_cancel()  # a call that takes too long cannot be cancelled, only left
    threading.Thread(target=copy_context().run, args=(call,), daemon=True).start()
    return await asyncio.wrap_future(future)


class CallableConnection:
    """Calls a function; one that is not asynchronous runs in a thread."""

    def __init__(self, system: AdaptedSystem) -> None:
        self._function = system.function

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the caller limits the time, and every attempt is the same
        values = json.loads(payload)
        attributes = {name: value for name, value in values.items() if name != "query"}
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            result = await self._call_function(values["query"], attributes)
        except TimeoutError:  # an OSError
            raise
        except OSError as error:
            raise CallError(FailureKind.UNAVAILABLE, f"{type(error).__name__}: {error}") from error
        reply = {"seconds": round(clock() - began, 6), "reply": plain(result)}
        text = json.dumps(reply, ensure_ascii=False)
        return Reply(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))  # as replies of services

    async def _call_function(self, query: str, attributes: Mapping[str, str]) -> Any:
        try:
            result = await _in_thread(self._function, query, attributes)
            return await result if inspect.isawaitable(result) else result
        except (CallError, OSError, TimeoutError):
            raise
        except BaseException as error:  # SystemExit, too, would end the event loop of all calls
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise UnexpectedError(error, "the function raised", "its traceback is in") from None

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def plain(result: Any) -> dict[str, Any]:
    """The answer and the contexts in what a system returned.

    >>> plain("yes"), plain({"result": "yes", "context": ["a"]})
    ({'answer': 'yes', 'contexts': None}, {'answer': 'yes', 'contexts': [{'doc_id': None, 'text': 'a'}]})
    """
    if isinstance(result, str):
        return {"answer": result, "contexts": None}
    if hasattr(result, "source_nodes"):  # a Response of LlamaIndex
        return plain({"answer": str(result), "contexts": [entry.node for entry in result.source_nodes]})
    if not isinstance(result, Mapping):
        return {"answer": _text_of(result), "contexts": None}
    answer = next((result[name] for name in _ANSWERS if name in result), None)
    contexts = next((result[name] for name in _CONTEXTS if name in result), None)
    answer = answer if isinstance(answer, str | None) else _text_of(answer)
    steps = {"steps": result["steps"]} if has_steps(result.get("steps")) else {}
    return {"answer": answer, "contexts": _contexts(contexts), **steps}


def _contexts(value: Any) -> list[dict[str, str | None]] | None:
    """The contexts in a list; a single text is one context, not one for each character."""
    if value is None:
        return None
    if not isinstance(value, Iterable):
        problem = f"the system returned {type(value).__name__} as contexts; return a list of texts or documents"
        raise CallError(FailureKind.MALFORMED, problem)
    return [_context(entry) for entry in ([value] if isinstance(value, str | Mapping) else value)]


def _text_of(message: Any) -> str:
    """The text of a message of LangChain, whose content may be a list of blocks."""
    content = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, Mapping) else block for block in blocks]
    if not any(isinstance(text, str) for text in texts):
        problem = f"the system returned {type(message).__name__}; return a text or {{answer, contexts}}"
        raise CallError(FailureKind.MALFORMED, problem)
    return "".join(text for text in texts if isinstance(text, str))


def _context(value: Any) -> dict[str, str | None]:
    """A context: a text, a mapping, or a document of LangChain, LlamaIndex or Haystack."""
    if isinstance(value, str):
        return {"doc_id": None, "text": value}
    parts = value if isinstance(value, Mapping) else {name: getattr(value, name, None) for name in (*_TEXTS, *_IDS)}
    text = next((parts[name] for name in _TEXTS if isinstance(parts.get(name), str)), None)
    name = next((str(parts[name]) for name in _IDS if parts.get(name) not in (None, "")), None)
    return {"doc_id": name, "text": text}
