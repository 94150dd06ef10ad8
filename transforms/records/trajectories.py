"""Steps of agents: the calls of tools that led to an answer, or that should have.

A deployed application answers with its contexts, steps, tokens and durations.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.kernels.trajectories import ToolCall
from rankbeam.transforms.records.errors import shortened
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

EXPECTED_STEPS = "expected_steps"
"""The key of reference answers, and the attribute of queries, that holds the expected steps."""

STEP = pa.struct(
    [
        pa.field("tool", pa.string(), nullable=False),
        pa.field("args", pa.string(), nullable=False),
        pa.field("status", pa.string()),
        pa.field("doc_ids", pa.list_(pa.string())),
    ]
)
"""One step; `args` are JSON, and `doc_ids` are null if the step retrieved nothing."""

OK, ERROR = "ok", "error"
_TOOL = ("tool", "tool_name", "toolName", "name")
_ARGS = ("args", "arguments", "tool_input", "toolInput", "input_parameters", "inputParameters", "input")
_USES, _RESPONSES = ("tool_uses", "toolUses"), ("tool_responses", "toolResponses")
_EVENTS = ("invocation_events", "invocationEvents")


@dataclass(frozen=True)
class AgentStep:
    """One call of a tool."""

    tool: str  # its name
    args: str = "{}"  # its arguments as canonical JSON
    status: str | None = None  # "ok", "error", or the system's own word; None if it is not known
    # Ids of the documents that it retrieved, best first; None if it retrieved nothing.
    doc_ids: tuple[str, ...] | None = None

    @property
    def call(self) -> ToolCall:
        """The call, as the metrics of trajectories take it.

        >>> step_in({"name": "find", "arguments": '{"n": 5.0, "q": "x"}'}).call
        ('find', {'n': '5', 'q': '"x"'})
        """
        value = json.loads(self.args)
        return self.tool, {key: _canonical_json(one) for key, one in value.items()} if isinstance(value, dict) else {
            "": self.args
        }

    def with_texts(self, change: Callable[[str], str]) -> "AgentStep":
        """The step with all texts in its arguments changed."""
        return replace(self, args=_canonical_json(_plain(json.loads(self.args), change)))


AgentSteps = tuple[AgentStep, ...]


def steps_in(value: Any) -> AgentSteps:
    """The steps in a list of calls, or in ADK's record of an invocation.

    Raises:
        ValueError: it is neither; the message says where.

    >>> [step.tool for step in steps_in([{"tool_name": "find", "tool_input": {}}, {"function": {"name": "buy"}}])]
    ['find', 'buy']
    """
    if isinstance(value, Mapping) and (stored := _stored_parts(value)) is not None:
        return steps_of_parts(stored)
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list of steps {{tool, args}}, found {type(value).__name__}")
    steps = []
    for place, entry in enumerate(value):
        try:
            steps.append(step_in(entry))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
    return tuple(steps)


def step_in(value: Any) -> AgentStep:
    """The step in a call of a tool, under the names that agents' frameworks use."""
    call = value["function"] if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping) else value
    tool = _first_value(call, _TOOL) if isinstance(call, Mapping) else None
    if not isinstance(tool, str) or not tool:
        keys = ", ".join(map(str, call)) if isinstance(call, Mapping) else type(call).__name__
        raise ValueError(f"has no tool; its keys: {shortened(keys, 100)}")
    status, doc_ids = value.get("status"), value.get("doc_ids")
    if not isinstance(status, str | None):
        raise ValueError(f"status: expected a text, found {type(status).__name__}")
    is_list = isinstance(doc_ids, list) and all(type(name) in (str, int) for name in doc_ids)
    if doc_ids is not None and not is_list:
        raise ValueError("doc_ids: expected a list of ids")
    return AgentStep(
        tool, _arguments(_first_value(call, _ARGS)), status, None if doc_ids is None else tuple(map(str, doc_ids))
    )


def has_steps(value: Any) -> bool:
    """Return whether a value is a list of objects, and so meant as steps.

    >>> has_steps([{"tool": "find"}]), has_steps(({"tool": "find"},)), has_steps([]), has_steps(3), has_steps(["find"])
    (True, True, True, False, False)
    """
    return isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value)


Documents = Callable[[Any], tuple[str, ...] | None]
"""The ids of the documents in the response of a tool; None if it retrieved nothing."""


def steps_of_parts(parts: Iterable[Mapping[str, Any]], documents: Documents = lambda _: None) -> AgentSteps:
    """The steps in the parts of ADK's events: calls of functions, and their responses by id, else by order."""
    steps: list[AgentStep] = []
    waiting: list[tuple[int, Mapping[str, Any]]] = []
    for part in parts:
        if (call := _first_value(part, ("functionCall", "function_call"))) is not None:
            waiting.append((len(steps), call))
            steps.append(AgentStep(str(call.get("name") or ""), _arguments(call.get("args"))))
        elif (response := _first_value(part, ("functionResponse", "function_response"))) is not None:
            entry = next((one for one in waiting if _answers(response, one[1])), None)
            if entry is not None:
                waiting.remove(entry)
                result = response.get("response")
                steps[entry[0]] = replace(steps[entry[0]], status=_status(result), doc_ids=documents(result))
    return tuple(steps)


def parts_of(events: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of the content of ADK's events."""
    for event in events:
        content = event.get("content") if isinstance(event, Mapping) else None
        yield from (part for part in (content or {}).get("parts") or () if isinstance(part, Mapping))


def documents_of(steps: AgentSteps | None) -> tuple[str, ...] | None:
    """The documents of all steps, in the order in which the agent first saw them; None if no step retrieved any.

    >>> documents_of((AgentStep("a", doc_ids=("1", "2")), AgentStep("b"), AgentStep("a", doc_ids=("3", "1"))))
    ('1', '2', '3')
    """
    retrieved = [step.doc_ids for step in steps or () if step.doc_ids is not None]
    return tuple(dict.fromkeys(name for doc_ids in retrieved for name in doc_ids)) if retrieved else None


def rows_of(steps: AgentSteps | None) -> list[dict[str, Any]] | None:
    return None if steps is None else [asdict(step) for step in steps]


def in_rows(rows: Sequence[Mapping[str, Any]] | None) -> AgentSteps | None:
    if rows is None:
        return None
    return tuple(
        AgentStep(row["tool"], row["args"], row["status"], None if row["doc_ids"] is None else tuple(row["doc_ids"]))
        for row in rows
    )


def as_json(steps: AgentSteps) -> list[dict[str, Any]]:
    """Steps as people write them, without unknown values."""
    rows = [{**asdict(step), "args": json.loads(step.args)} for step in steps]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def _stored_parts(value: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The parts of ADK's `intermediate_data`, in either of its forms; None for something else."""
    events, uses = _first_value(value, _EVENTS), _first_value(value, _USES)
    if events is not None:
        return list(parts_of(events))
    if uses is None:
        return None
    responses = _first_value(value, _RESPONSES) or ()
    return [*({"functionCall": call} for call in uses), *({"functionResponse": response} for response in responses)]


def _answers(response: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    names = ("name",) if response.get("id") is None or call.get("id") is None else ("id",)
    return all(response.get(name) == call.get(name) for name in names)


def _status(result: Any) -> str:
    has_failed = isinstance(result, Mapping) and (result.get("error") is not None or result.get("status") == ERROR)
    return ERROR if has_failed else OK


def _first_value(value: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _arguments(value: Any) -> str:
    """Arguments as JSON; OpenAI sends them as a text that holds JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return _canonical_json(value)
    return "{}" if value is None else _canonical_json(value)


def _canonical_json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, default=str)


def _plain(value: Any, change: Callable[[str], str] = str) -> Any:
    """The value with whole numbers as integers, since JSON knows one type of number, and with changed texts."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, change) for inner in value]
    if isinstance(value, str):
        return change(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Consumption:
    """Tokens and number of all attempts at an answer, and durations of the last one."""

    tokens: Tokens = NO_TOKENS
    seconds: float | None = None  # duration of the attempt; None if it was not measured
    first_token_s: float | None = None  # time to the first token of a stream; None without a stream
    attempts: int = 0


NO_CONSUMPTION = Consumption()
INVENTED = -1  # the position of a cited context that the answer does not have


@dataclass(frozen=True)
class ApplicationAnswer:
    """The answer of an application to one query."""

    text: str  # the answer
    # Id and text of each context, best first; None if the application does not report them.
    contexts: tuple[tuple[str | None, str | None], ...] | None
    consumption: Consumption = NO_CONSUMPTION  # tokens and durations
    steps: AgentSteps | None = None  # calls of tools; None if the application does not report them
    # Positions of the contexts that the application says it cites, and `INVENTED` for each citation of something else;
    # None for the numbers in the text.
    citations: tuple[int, ...] | None = None
    cut: str | None = None  # reason why the answer ended early; None if it did not, or nothing is known
