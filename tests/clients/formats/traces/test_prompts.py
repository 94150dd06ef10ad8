"""Contexts are the documents that the last inference was shown, where its prompt says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.traces import START, message, otlp, span

from rankbeam.transforms.clients.formats.traces.documents import shown_documents
from rankbeam.transforms.clients.formats.traces.spans import Span, spans_of
from rankbeam.transforms.clients.formats.traces.turns import Naming, Turn, turn_of

FIRST, SECOND, LONG = "Invoices are sent\non the first day.", 'Owners "pay" them.', "Late fees " + "rise daily " * 60
PROMPTS: dict[str, dict[str, Any]] = {
    "messages": {"gen_ai.input.messages": message("user", f"Context: {SECOND} {LONG[:400]}… Question: Who?")},
    "a tool's response": {
        "gen_ai.input.messages": json.dumps([
            {"role": "user", "parts": [{"type": "text", "content": "Who?"}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "response": json.dumps([SECOND, LONG])}]},
        ])
    },
    "instructions": {"gen_ai.system_instructions": message("system", f"{SECOND}\n\n{LONG}")},
    "OpenInference": {"llm.input_messages.0.message.content": f"{SECOND}\n{LONG}"},
    "input": {"input.value": json.dumps({"messages": [{"content": f"{LONG}   {SECOND}"}]})},
    "older": {"gen_ai.prompt.0.content": f"{SECOND}\n{LONG}"},
}  # fmt: skip


def turn(prompt: dict[str, Any], *documents: dict[str, str]) -> Turn:
    root = span("t", 0, 0, {"input.value": "Who?"})
    search = span("t", 1, 0, {"openinference.span.kind": "RETRIEVER", "retrieval.documents": list(documents)})
    first = span("t", 2, 1, {"openinference.span.kind": "LLM", "input.value": FIRST})  # rewrites the question, say
    last = span("t", 3, 2, {"openinference.span.kind": "LLM", "output.value": "Ann.", **prompt})
    result = turn_of(list(spans_of(otlp(root, search, first, last))), START + 10, Naming())
    assert isinstance(result, Turn)
    return result


RETRIEVED = tuple(
    {"document.id": name, "document.content": text} for name, text in zip("abc", (FIRST, SECOND, LONG), strict=True)
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_contexts_are_those_in_the_prompt_of_the_last_inference(prompt: str) -> None:
    result = turn(PROMPTS[prompt], *RETRIEVED)
    assert (result.contexts, result.unshown) == ((("b", SECOND), ("c", LONG)), 1)


@pytest.mark.parametrize(
    "prompt",
    [{}, {"input.value": "Who?"}, {"gen_ai.input.messages": json.dumps([LONG, SECOND])[:-3]}],
    ids=["none", "question", "cut"],
)
def test_a_prompt_without_any_document_or_cut_leaves_all(prompt: dict[str, Any]) -> None:
    result = turn(prompt, *RETRIEVED)
    assert (result.contexts, result.unshown) == ((("a", FIRST), ("b", SECOND), ("c", LONG)), 0)


def test_a_document_without_text_stays_and_one_that_is_the_question_proves_nothing() -> None:
    prompt = {"input.value": f"Who? {SECOND}"}
    assert turn(prompt, {"document.id": "x"}, *RETRIEVED[:2]).contexts == (("x", None), ("b", SECOND))
    itself = {"document.id": "q", "document.content": "who?".capitalize()}
    assert turn({"input.value": "Who?"}, itself, RETRIEVED[0]).unshown == 0


@given(st.lists(st.text("abc ", max_size=4), max_size=6), st.text("abc ", max_size=30))
def test_what_is_left_out_is_not_in_the_prompt(texts: list[str], prompt: str) -> None:
    words = lambda text: " ".join(text.split())  # noqa: E731
    documents = [(str(place), text) for place, text in enumerate(texts)]
    inference = Span("t", "s", "", "", 0.0, 0.0, False, {"input.value": prompt})
    remaining = shown_documents(documents, inference, "")
    inside = [document for document in documents if words(document[1]) in words(prompt)]
    proof = [document for document in inside if words(document[1])]
    assert list(remaining) == (inside if proof else documents)
