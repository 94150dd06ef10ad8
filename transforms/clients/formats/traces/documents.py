"""Documents of a trace: those that were retrieved, and those of them that an inference was shown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.transforms.clients.formats.traces.agent_events import TRUNCATED
from rankbeam.transforms.clients.formats.traces.spans import Span, attribute_list, is_cut
from rankbeam.transforms.clients.storage.json_paths import first_of, parse_literal

KIND = "openinference.span.kind"
_RERANKED, RETRIEVED = "reranker.output_documents", ("retrieval.documents", "gen_ai.retrieval.documents")
LISTS = (_RERANKED, *RETRIEVED)
Document = tuple[str | None, str | None]  # id and text of a document, each None if the trace does not state it
_PROMPTS = ("gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.prompt", "llm.input_messages", "input.value")
HIDDEN = "__REDACTED__"  # OpenInference writes it in place of texts that it does not trace
_SHORT = 40  # characters of a document that questions may contain by chance
_COMPARED = 200  # only the beginning of a document must occur in the prompt: applications cut long documents


def is_a(span: Span, kind: str, *operations: str) -> bool:
    is_kind = str(span.attributes.get(KIND, "")).upper() == kind
    return is_kind or span.attributes.get("gen_ai.operation.name") in operations


def retrieved_documents(spans: Sequence[Span]) -> tuple[Document, ...] | None:
    """The results of all retrievals by time, each document once; if there is a reranker, its results.

    A retrieval or a reranker may state a document without its text, and another one the text. Passages can share an id.
    """
    reranked, retrieved = (
        [documents for span in spans for name in names if (documents := documents_of(span, name)) is not None]
        for names in ((_RERANKED,), RETRIEVED)
    )
    if not reranked and not retrieved:
        return None
    every = [document for documents in (*reranked, *retrieved) for document in documents]
    texts = {name: text for name, text in reversed(every) if name is not None and text is not None}
    results = (document for documents in reranked or retrieved for document in documents)
    return tuple(dict.fromkeys((name, texts.get(name or "") if text is None else text) for name, text in results))


def documents_of(span: Span, name: str) -> list[Document] | None:
    entries = attribute_list(span.attributes, name)
    if not entries:
        is_retriever = name == "retrieval.documents" and is_a(span, "RETRIEVER")
        is_empty = is_retriever and not any(_texts_in(span.attributes.get("output.value")))
        return [] if is_empty or name in span.attributes else None
    return [_document(entry) for entry in entries]


def _document(entry: Any) -> Document:
    if not isinstance(entry, Mapping):
        return None, str(entry)
    name = first_of(entry, "document.id", "id", "doc_id", "metadata.id", "metadata.doc_uri")
    text = first_of(entry, "document.content", "content", "text", "page_content", "pageContent")
    return None if name is None else str(name), None if text in (None, HIDDEN) else str(text)


def shown_documents(documents: Sequence[Document], inference: Span, question: str) -> tuple[Document, ...]:
    """The documents that were shown to an inference, in order; all documents if its prompt has none of their texts.

    A document without text is kept, as it may have been shown. Documents that are part of the question prove nothing.
    """
    prompt, question_line = " ".join(_one_line(text) for text in _prompt(inference)), _one_line(question)
    starts = _beginnings(documents)
    if not any(start in prompt and start not in question_line for start in starts):
        return tuple(documents)
    return tuple(document for document, start in zip(documents, starts, strict=True) if start in prompt)


def is_prompt(question: str, documents: Sequence[Document]) -> bool:
    """Return whether a question contains a document, as a whole prompt does."""
    content = _one_line(question)
    return any(len(start) > _SHORT and start in content for start in _beginnings(documents))


def _beginnings(documents: Sequence[Document]) -> list[str]:
    return [_one_line(text or "")[:_COMPARED] for _, text in documents]


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
