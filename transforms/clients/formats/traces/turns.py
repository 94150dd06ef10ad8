"""Turns: the question of a trace, the contexts that were retrieved and shown to the model, and the answer."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rankbeam.transforms.clients.formats.traces.agent_events import HAS_STEPS, RESULT, TRUNCATED
from rankbeam.transforms.clients.formats.traces.spans import Span, attribute_list, is_cut
from rankbeam.transforms.clients.storage.json_paths import first_of, parse_literal, value_at
from rankbeam.transforms.records.trajectories import ERROR, OK, AgentStep, AgentSteps, step_in

UNFINISHED_S = 3600
"""A trace without a root is unfinished if its last span is this much older than the source's newest span."""
_INFERENCES = ("chat", "generate_content", "text_completion")
_KIND = "openinference.span.kind"
_RERANKED, _RETRIEVED = "reranker.output_documents", ("retrieval.documents", "gen_ai.retrieval.documents")
_DOCUMENTS = (_RERANKED, *_RETRIEVED)
_RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value")
Document = tuple[str | None, str | None]  # id and text of a document, each None if the trace does not state it
_PROMPTS = ("gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.prompt", "llm.input_messages", "input.value")
_HIDDEN = "__REDACTED__"  # OpenInference writes it in place of texts that it does not trace
_COMPARED = 200  # only the beginning of a document must occur in the prompt: applications cut long documents


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


def turn_of(spans: Sequence[Span], newest_s: float, naming: Naming) -> Turn | SkipReason:
    """The turn of a trace, or why it has none; its spans and log events may be in any order, and repeated."""
    merged = _merge(spans)
    duplicates = sum(span.parent_id is not None for span in spans) - len(merged)
    roots = [span for span in merged if not span.parent_id]
    if not roots:
        age = newest_s - max(span.end_s for span in spans)
        return SkipReason.UNFINISHED if age > UNFINISHED_S else SkipReason.LATER
    root = roots[0]
    inferences = [span for span in merged if _is_a(span, "LLM", *_INFERENCES)]
    question = _question(root, inferences, naming)
    if question is None or isinstance(question, SkipReason):
        return question or SkipReason.NO_QUESTION
    last = inferences[-1] if inferences else root
    merged = [_with_documents(span, naming.documents) for span in merged]
    cut = any(TRUNCATED in span.attributes for span in merged)
    cut |= any(is_cut(span.attributes, name) for span in merged for name in _DOCUMENTS)
    retrieved = None if cut else _contexts(merged)
    steps = tuple(replace(step, doc_ids=None) for step in _steps(merged)) if cut else _steps(merged)
    contexts = shown_documents(retrieved, last, question) if retrieved and inferences else retrieved
    agents = [span for span in merged if _is_a(span, "AGENT", "invoke_agent")]
    tokens = {name: _total(merged, inferences, keys) or _total(merged, agents, keys) for name, keys in _TOKENS.items()}
    ended_s = root.end_s if root.end_s > root.start_s else max(span.end_s for span in merged)
    return Turn(
        root.trace_id,
        root.span_id,
        root.start_s,
        question,
        None if root.has_failed or TRUNCATED in last.attributes else _answer(root, last, naming),
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


def _ancestors(name: str, parents: Mapping[str, str]) -> Iterator[str]:
    seen = {name}
    while (name := parents.get(name, "")) and name not in seen:
        seen.add(name)
        yield name


def _steps(spans: Sequence[Span]) -> AgentSteps:
    """Tool calls, and retrievals outside of them; a retrieval inside a tool call belongs to that call."""
    parents = {span.span_id: span.parent_id or "" for span in spans}
    tools = {span.span_id for span in spans if _is_a(span, "TOOL", "execute_tool")}
    retrieved: dict[str, list[str]] = {}
    for span in spans:
        documents = next((results for name in _RETRIEVED if (results := _documents(span, name)) is not None), None)
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


def _is_a(span: Span, kind: str, *operations: str) -> bool:
    is_kind = str(span.attributes.get(_KIND, "")).upper() == kind
    return is_kind or span.attributes.get("gen_ai.operation.name") in operations


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


def _question(root: Span, inferences: Sequence[Span], naming: Naming) -> str | SkipReason | None:
    for span in (root, *inferences[:1]):
        if (text := _last_of(_messages(span, "gen_ai.input.messages", "gen_ai.prompt"), "user")) is not None:
            return text
    return _text(root.attributes.get("input.value"), naming.question, SkipReason.JSON_QUESTION)


def _answer(root: Span, last: Span, naming: Naming) -> str | None:
    for span in (root,) if last.has_failed else (last, root):  # a failed inference may have written half an answer
        if (text := _last_of(_messages(span, "gen_ai.output.messages", "gen_ai.completion"), None)) is not None:
            return text
    text = _text(root.attributes.get("output.value"), naming.answer, None)
    return text if isinstance(text, str) else None


def _messages(span: Span, name: str, old: str) -> list[tuple[str, str]]:
    """Role and text of messages; older versions write attributes such as `gen_ai.prompt.0.content`."""
    messages = []
    for message in attribute_list(span.attributes, name) or attribute_list(span.attributes, old):
        if isinstance(message, Mapping):
            parts = message.get("parts")
            texts = [str(part.get("content") or part.get("text") or "") for part in parts or () if _is_text(part)]
            content = "\n".join(filter(None, texts)) if parts is not None else str(message.get("content") or "")
            messages.append((str(message.get("role") or ""), content))
    return messages


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type", "text") == "text"


def _last_of(messages: Sequence[tuple[str, str]], role: str | None) -> str | None:
    return next((text for name, text in reversed(messages) if role in (None, name) and text.strip()), None)


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
            return None if content in ("", _HIDDEN) else content
    if value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    if path is None:
        return refused
    inner = _at(value, path)
    return inner if isinstance(inner, str) and inner.strip() else None


def _at(value: Any, path: str) -> Any:
    """The value at a path into an object, or into a list, such as `[-1].content`."""
    return value_at({"value": value}, f"value{path}" if path.startswith("[") else f"value.{path}")


def _contexts(spans: Sequence[Span]) -> tuple[Document, ...] | None:
    """The results of all retrievals by time, each document once; if there is a reranker, its results."""
    by_names = (
        [documents for span in spans for name in names if (documents := _documents(span, name)) is not None]
        for names in ((_RERANKED,), _RETRIEVED)
    )
    if (retrieved := next(filter(None, by_names), None)) is None:
        return None
    by_name: dict[Document, Document] = {}
    for document in (document for documents in retrieved for document in documents):
        name, text = document
        place = (name, None if name is not None else text)
        if by_name.setdefault(place, document)[1] is None:
            by_name[place] = document  # a later retrieval may have the text
    return tuple(by_name.values())


def _documents(span: Span, name: str) -> list[Document] | None:
    entries = attribute_list(span.attributes, name)
    if not entries:
        is_retriever = name == "retrieval.documents" and _is_a(span, "RETRIEVER")
        return [] if is_retriever or name in span.attributes else None
    return [_document(entry) for entry in entries]


def _document(entry: Any) -> Document:
    if not isinstance(entry, Mapping):
        return None, str(entry)
    name = first_of(entry, "document.id", "id", "doc_id", "metadata.id")
    text = first_of(entry, "document.content", "content", "text", "page_content", "pageContent")
    return None if name is None else str(name), None if text is None else str(text)


def _word(spans: Iterable[Span], *names: str) -> str | None:
    values: Iterator[Any] = (span.attributes.get(name) for span in spans for name in names)
    return next((str(value) for value in values if value not in (None, "")), None)


def _number(span: Span, *names: str) -> int:
    value = next((span.attributes[name] for name in names if span.attributes.get(name) is not None), 0)
    try:
        return int(float(value))
    except (ArithmeticError, TypeError, ValueError):
        return 0


def shown_documents(documents: Sequence[Document], inference: Span, question: str) -> tuple[Document, ...]:
    """The documents that were shown to an inference, in order; all documents if its prompt has none of their texts.

    A document without text is kept, as it may have been shown. Documents that are part of the question prove nothing.
    """
    prompt, question_line = " ".join(_one_line(text) for text in _prompt(inference)), _one_line(question)
    starts = [_one_line(text or "")[:_COMPARED] for _, text in documents]
    if not any(start in prompt and start not in question_line for start in starts):
        return tuple(documents)
    return tuple(document for document, start in zip(documents, starts, strict=True) if start in prompt)


def _prompt(inference: Span) -> Iterator[str]:
    """All texts of a prompt; no texts if the prompt was truncated."""
    values = inference.attributes
    if TRUNCATED in values or any(is_cut(values, name) for name in ("gen_ai.input.messages", "llm.input_messages")):
        return
    for name, value in values.items():
        if any(name == prompt or name.startswith(f"{prompt}.") for prompt in _PROMPTS):
            yield from _texts_in(value)


def _texts_in(value: Any) -> Iterator[str]:
    """All texts in a value, however nested, including texts inside JSON strings."""
    value = parse_literal(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner)
    elif isinstance(value, str):
        yield value


def _one_line(text: str) -> str:
    return " ".join(text.split())
