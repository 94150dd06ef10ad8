"""The documents that a model was shown, by the texts in its prompt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.transforms.clients.formats.cases.paths import structured
from rankbeam.transforms.clients.formats.traces.agent_events import TRUNCATED
from rankbeam.transforms.clients.formats.traces.spans import Span, is_cut

Document = tuple[str | None, str | None]
"""Id and text of a document, each None where the trace does not say."""
_PROMPTS = ("gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.prompt", "llm.input_messages", "input.value")
_COMPARED = 200
"""Characters at the beginning of a document that the prompt must have: applications cut long documents."""


def shown(documents: Sequence[Document], inference: Span, question: str) -> tuple[Document, ...]:
    """The documents that an inference was shown, in their order; all where its prompt has none of their texts.

    A document without text stays: whether it was shown is not known. One whose text is in the question proves nothing.
    """
    prompt, own = " ".join(_words(text) for text in _prompt(inference)), _words(question)
    starts = [_words(text or "")[:_COMPARED] for _, text in documents]
    if not any(start in prompt and start not in own for start in starts):
        return tuple(documents)
    return tuple(document for document, start in zip(documents, starts, strict=True) if start in prompt)


def _prompt(inference: Span) -> Iterator[str]:
    """All texts of a prompt; none where it was cut."""
    own = inference.attributes
    if TRUNCATED in own or any(is_cut(own, name) for name in ("gen_ai.input.messages", "llm.input_messages")):
        return
    for name, value in own.items():
        if any(name == prompt or name.startswith(f"{prompt}.") for prompt in _PROMPTS):
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    """The texts anywhere in a value, and in JSON that is one of its texts."""
    value = structured(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _words(text: str) -> str:
    return " ".join(text.split())
