"""Adapters: functions of a query and its attributes for objects of LangChain, LlamaIndex and Haystack.

They know the objects by their methods, so that none of the three has to be installed.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Function = Callable[[str, Mapping[str, str]], Any]
"""Takes a query and its attributes; returns a text, or {answer, contexts}, or an awaitable of one."""


@dataclass(frozen=True)
class AdaptedSystem:
    """A system that answers queries in this process.

    Attributes:
        function: the function that answers.
        takes_attributes: whether its answer depends on the attributes of a query.
    """

    function: Function
    takes_attributes: bool = False


_QUESTIONS = ("query", "question", "input", "text", "user_input")
_METHODS = ("ainvoke", "invoke", "aquery", "query")


def adapted(system: Any) -> AdaptedSystem:
    """Return the system that a function or an object is."""
    if hasattr(system, "get_input_jsonschema"):
        return AdaptedSystem(langchain(system))
    if hasattr(system, "run") and hasattr(system, "graph"):
        return AdaptedSystem(haystack(system))
    method = next((getattr(system, name) for name in _METHODS if callable(getattr(system, name, None))), None)
    if method is not None:  # a query engine of LlamaIndex, among others
        return AdaptedSystem(lambda text, _attributes: method(text))
    if not callable(system):
        raise TypeError(f"{type(system).__name__} is neither a function nor an object with invoke, query or run")
    if len(inspect.signature(system).parameters) == 1:
        return AdaptedSystem(lambda text, _attributes: system(text))
    return AdaptedSystem(system, takes_attributes=True)


def langchain(runnable: Any) -> Function:
    """Adapt a chain, an agent or a chat model; a chain of several inputs gets the query as its question."""
    schema = runnable.get_input_jsonschema()
    names = [*schema.get("properties", ())] if schema.get("type") == "object" else []

    async def ask(text: str, _attributes: Mapping[str, str]) -> Any:
        if "messages" in names:
            result = await runnable.ainvoke({"messages": [{"role": "user", "content": text}]})
            return result["messages"][-1]
        name = names[0] if len(names) == 1 else next((name for name in _QUESTIONS if name in names), "root")
        return await runnable.ainvoke(text if name == "root" else {name: text})

    return ask


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
