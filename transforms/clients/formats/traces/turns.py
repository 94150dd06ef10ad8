"""Turns: the question of a trace, the contexts that were retrieved and shown to the model, and the answer."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from jmespath.exceptions import JMESPathError

from rankbeam.transforms.clients.formats.traces.agent_events import HAS_STEPS, RESULT, TRUNCATED
from rankbeam.transforms.clients.formats.traces.documents import (
    HIDDEN,
    KIND,
    LISTS,
    RETRIEVED,
    Document,
    documents_of,
    is_a,
    is_prompt,
    retrieved_documents,
    shown_documents,
)
from rankbeam.transforms.clients.formats.traces.spans import Span, attribute_list, is_cut
from rankbeam.transforms.clients.storage.json_paths import finder, parse_literal, value_at
from rankbeam.transforms.records.trajectories import ERROR, OK, AgentStep, AgentSteps, step_in

UNFINISHED_S = 3600
"""A trace without a root is unfinished if its last span is this much older than the source's newest span."""
_INFERENCES = ("chat", "generate_content", "text_completion")
_RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value")
_INPUTS = ("gen_ai.input.messages", "gen_ai.prompt")
_OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages")
_HELPERS = ("RETRIEVER", "RERANKER", "EMBEDDING", "TOOL", "GUARDRAIL", "EVALUATOR")  # kinds whose input is no question


class SkipReason(StrEnum):
    """Reasons why a trace is not a turn."""

    UNFINISHED = "unfinished: no root span"
    LATER = "still running: left for the next time"
    NO_QUESTION = "without a question"
    JSON_QUESTION = "whose input is JSON: name the question with --question PATH, or question: PATH in an experiment"


@dataclass(frozen=True)
class Naming:
    """Names and paths that differ between systems."""

    question: str | None = None  # JMESPaths into inputs and outputs that are JSON
    answer: str | None = None
    configuration: str = "service.version"  # name of the attribute with the configuration's name
    documents: str | None = None  # JMESPath to the list of documents in tool results


@dataclass(frozen=True)
class Turn:
    """One question to a system, with its contexts, answer and usage."""

    trace_id: str
    span_id: str
    start_s: float
    question: str
    answer: str | None  # None if the system failed or did not answer
    # Documents shown to the last inference, with None for ids and texts that are unknown; None without a retrieval.
    contexts: tuple[Document, ...] | None
    seconds: float
    conversation: str | None = None
    configuration: str | None = None
    model: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    duplicates: int = 0  # spans that the source repeats
    is_cut: bool = False  # documents were truncated, so the contexts are unknown
    steps: AgentSteps | None = None  # tool calls and retrievals by time; None if unknown
    unshown: int = 0  # documents that were retrieved, but not shown to the last inference
    is_prompt: bool = False  # the question contains a retrieved document


def turn_of(spans: Sequence[Span], newest_s: float, naming: Naming) -> Turn | SkipReason:
    """The turn of a trace, or why it has none; its spans and log events may be in any order, and repeated."""
    merged = _merge(spans)
    duplicates = sum(span.parent_id is not None for span in spans) - len(merged)
    roots = [span for span in merged if not span.parent_id]
    if not roots:
        age = newest_s - max(span.end_s for span in spans)
        return SkipReason.UNFINISHED if age > UNFINISHED_S else SkipReason.LATER
    root = roots[0]
    entry = _entry(root, merged)
    inferences = [span for span in merged if _is_inference(span)]
    question = _question(entry, inferences, naming)
    if question is None or isinstance(question, SkipReason):
        return question or SkipReason.NO_QUESTION
    last = inferences[-1] if inferences else entry
    has_failed = root.has_failed or (entry.has_failed and _is_in(entry, last, merged))
    merged = [_with_documents(span, naming.documents) for span in merged]
    cut = any(TRUNCATED in span.attributes for span in merged)
    cut |= any(is_cut(span.attributes, name) for span in merged for name in LISTS)
    retrieved = None if cut else retrieved_documents(merged)
    steps = tuple(replace(step, doc_ids=None) for step in _steps(merged)) if cut else _steps(merged)
    contexts = shown_documents(retrieved, last, question) if retrieved and inferences else retrieved
    agents = [span for span in merged if is_a(span, "AGENT", "invoke_agent")]
    tokens = {name: _total(merged, inferences, keys) or _total(merged, agents, keys) for name, keys in _TOKENS.items()}
    ended_s = root.end_s if root.end_s > root.start_s else max(span.end_s for span in merged)
    return Turn(
        root.trace_id,
        root.span_id,
        root.start_s,
        question,
        None if has_failed or TRUNCATED in last.attributes else _answer(entry, last, naming),
        contexts,
        max(0.0, ended_s - root.start_s),
        _word(merged, "gen_ai.conversation.id", "session.id"),
        _word([root, *merged], naming.configuration),
        _word(reversed(merged), "gen_ai.response.model", "llm.model_name", "gen_ai.request.model"),
        tokens if any(tokens.values()) else {},
        duplicates,
        cut,
        steps or (() if HAS_STEPS in root.attributes else None),
        len(retrieved or ()) - len(contexts or ()),
        is_prompt(question, retrieved or ()),
    )


_TOKENS = {
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens"),
    "output": ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens"),
}


def _total(spans: Sequence[Span], inferences: Sequence[Span], names: Sequence[str]) -> int:
    """The tokens of all inferences or agents; one inside another that states tokens is not counted again."""
    numbers = {span.span_id: _number(span, *names) for span in inferences}
    parents = {span.span_id: span.parent_id or "" for span in spans}
    return sum(number for name, number in numbers.items() if not any(map(numbers.get, _ancestors(name, parents))))


def _is_in(outer: Span, inner: Span, spans: Sequence[Span]) -> bool:
    parents = {span.span_id: span.parent_id or "" for span in spans}
    return outer.span_id in (inner.span_id, *_ancestors(inner.span_id, parents))


def _ancestors(name: str, parents: Mapping[str, str]) -> Iterator[str]:
    seen = {name}
    while (name := parents.get(name, "")) and name not in seen:
        seen.add(name)
        yield name


def _steps(spans: Sequence[Span]) -> AgentSteps:
    """Tool calls, and retrievals outside of them; a retrieval inside a tool call belongs to that call."""
    parents = {span.span_id: span.parent_id or "" for span in spans}
    tools = {span.span_id for span in spans if is_a(span, "TOOL", "execute_tool")}
    retrieved: dict[str, list[str]] = {}
    for span in spans:
        documents = next((results for name in RETRIEVED if (results := documents_of(span, name)) is not None), None)
        if documents is not None:
            owner = next((name for name in (span.span_id, *_ancestors(span.span_id, parents)) if name in tools), "")
            names = retrieved.setdefault(owner or span.span_id, [])
            names += [name for name, _ in documents if name is not None and name not in names]
    return tuple(_step(span, retrieved.get(span.span_id)) for span in spans if span.span_id in {*tools, *retrieved})


def _step(span: Span, doc_ids: Sequence[str] | None) -> AgentStep:
    tool = _word([span], "gen_ai.tool.name", "tool.name") or span.name or "retrieval"
    args = next((span.attributes[name] for name in _ARGUMENTS if name in span.attributes), None)
    if args is None and doc_ids is not None and _RETRIEVAL_QUERY in span.attributes:
        args = {"query": span.attributes[_RETRIEVAL_QUERY]}
    status = ERROR if span.has_failed or "error.type" in span.attributes else OK
    step = step_in({"tool": tool, "args": parse_literal(args), "status": status})
    return replace(step, doc_ids=None if doc_ids is None else tuple(doc_ids))


def _with_documents(span: Span, path: str | None) -> Span:
    """The span with the documents in its tool's result, if a path names them."""
    result = parse_literal(span.attributes.get(RESULT))
    documents = None if path is None or result is None else _at(result, path)
    if not isinstance(documents, list):
        return span
    return replace(span, attributes={**span.attributes, "retrieval.documents": documents})


def _is_inference(span: Span) -> bool:
    return is_a(span, "LLM", *_INFERENCES)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """The spans by time, each once (the version that ended last), with the attributes of their log events."""
    by_id: dict[str, Span] = {}
    events = [span for span in spans if span.parent_id is None]
    for span in sorted(spans, key=lambda span: (span.end_s, json.dumps(vars(span), sort_keys=True, default=str))):
        if span.parent_id is not None:
            by_id[span.span_id] = span
    for event in events:
        owner = by_id.get(event.span_id)
        if owner is not None:
            by_id[owner.span_id] = replace(owner, attributes={**event.attributes, **owner.attributes})
    return sorted(by_id.values(), key=lambda span: (span.start_s, span.span_id))


def _entry(root: Span, spans: Sequence[Span]) -> Span:
    """The span with the user's input: the root, or the first one below it, as roots of web servers have none."""
    inner = (span for span in spans if str(span.attributes.get(KIND, "")).upper() not in _HELPERS)
    return next((span for span in (root, *inner) if _has_input(span)), root)


def _has_input(span: Span) -> bool:
    return "input.value" in span.attributes or bool(_messages(span, *_INPUTS, "llm.input_messages"))


def _question(entry: Span, inferences: Sequence[Span], naming: Naming) -> str | SkipReason | None:
    value = _text(entry.attributes.get("input.value"), naming.question, SkipReason.JSON_QUESTION)
    if naming.question is not None and value is not None:
        return value
    stated = _last_of(_messages(entry, *_INPUTS, "llm.input_messages"), "user")
    if stated is None and (value is None or isinstance(value, SkipReason)) and inferences:
        stated = _last_of(_messages(inferences[0], *_INPUTS), "user")
    return stated or value


def _answer(entry: Span, last: Span, naming: Naming) -> str | None:
    # Of inferences without a span around them, the last one answers. A failed one may have written half an answer.
    candidates = [entry] * (not entry.has_failed and not _is_inference(entry)) + [last] * (not last.has_failed)
    for span in candidates:
        stated = _last_of(_messages(span, *_OUTPUTS), None)
        text = stated or _text(span.attributes.get("output.value"), naming.answer, None)
        if isinstance(text, str):
            return text
    return None


def _messages(span: Span, *names: str) -> list[tuple[str, str]]:
    """Role and text of messages; older versions write attributes such as `gen_ai.prompt.0.content`."""
    messages = []
    for listed in next(filter(None, (attribute_list(span.attributes, name) for name in names)), ()):
        if isinstance(listed, Mapping):
            message = {name.removeprefix("message."): value for name, value in listed.items()}
            parts = message.get("parts") or attribute_list(message, "contents")
            content = "\n".join(filter(None, map(_part_text, parts))) if parts else str(message.get("content") or "")
            messages.append((str(message.get("role") or ""), content))
    return messages


def _part_text(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    values = {name.removeprefix("message_content."): value for name, value in part.items()}
    return str(values.get("content") or values.get("text") or "") if values.get("type", "text") == "text" else ""


def _last_of(messages: Sequence[tuple[str, str]], role: str | None) -> str | None:
    last = next((text for name, text in reversed(messages) if role in (None, name) and text.strip()), None)
    return None if last == HIDDEN else last


def _text(value: Any, path: str | None, refused: SkipReason | None) -> str | SkipReason | None:
    """A text; for JSON, the text at the path, but never the JSON itself."""
    if isinstance(value, str):
        content = value.strip()
        if content[:1] in ("{", "["):
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):
                return content
        else:
            return None if content in ("", HIDDEN) else content
    if value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    if path is None:
        return refused
    inner = _at(value, path)
    return inner if isinstance(inner, str) and inner.strip() else None


def _at(value: Any, path: str) -> Any:
    """The value at a path into an object, or into a list, such as `[-1].content`; None if the path does not fit."""
    try:
        return value_at(value, path) if isinstance(value, Mapping) else finder(path)(value)
    except JMESPathError:
        return None


def _word(spans: Iterable[Span], *names: str) -> str | None:
    values: Iterator[Any] = (span.attributes.get(name) for span in spans for name in names)
    return next((str(value) for value in values if value not in (None, "")), None)


def _number(span: Span, *names: str) -> int:
    value = next((span.attributes[name] for name in names if span.attributes.get(name) is not None), 0)
    try:
        return int(float(value))
    except (ArithmeticError, TypeError, ValueError):
        return 0
