"""Rewriting of queries: prompts, keys and every reply, without a network."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from rankbeam.transforms.clients.models.base import Stored
from rankbeam.transforms.clients.models.offline import Extractive, Lexical
from rankbeam.transforms.clients.models.rewriting import Rewrite, default_template
from rankbeam.transforms.clients.models.scoring import Rate
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import RewriteKind, Rewriting

HISTORY = json.dumps([{"role": "user", "text": "Where are invoices?"}, {"role": "assistant", "text": "In billing."}])


def work(kind: str, **more: Any) -> Rewrite:
    named = RewriteKind(kind)
    return Rewrite(
        Rewriting("writer", named, more.pop("template", default_template(named)), **more), "extractive", Extractive()
    )


def value(of: Rewrite | Rate, reply: Stored, item: Any = ("who pays?", {})) -> Any:
    """The value of a task after a reply, or its error."""
    steps = of.steps(item)
    (call,) = next(steps)
    try:
        outcome: Any = of.read(call, Reply(reply.written()))
    except CallError as error:
        outcome = error
    try:
        steps.send([outcome])
    except StopIteration as end:
        return end.value
    except CallError as error:
        return error
    raise AssertionError


def text_of(of: Rewrite, query: str, attributes: Mapping[str, str]) -> str:
    rendered = Prompt.parse(of.call((query, attributes)).payload).rendered()
    return rendered.system + rendered.user


def test_a_prompt_has_the_query_the_conversation_and_the_number() -> None:
    assert "where is it?" in text_of(work("hyde"), "where is it?", {})
    assert "Write 4 queries" in text_of(work("multi_query", n=4), "where is it?", {})
    standalone = text_of(work("standalone"), "and older ones?", {"history": HISTORY})
    assert "user: Where are invoices?\nassistant: In billing." in standalone


def test_an_own_template_gets_attributes() -> None:
    own = work("hyde", template="Write in {language}: {query}")
    assert text_of(own, "who?", {"language": "fr"}) == "Write in fr: who?"
    assert own.attributes == {"language"}


def test_keys_depend_on_the_texts_that_a_template_holds_and_on_the_sample() -> None:
    plain = work("hyde").call(("who?", {"language": "fr"})).key
    assert work("hyde").call(("who?", {})).key == plain
    keys = {
        plain,
        work("hyde").call(("who", {})).key,
        work("hyde", sample=1).call(("who?", {})).key,
        work("hyde", temperature=0.7).call(("who?", {})).key,
        work("multi_query").call(("who?", {})).key,
        work("multi_query", n=2).call(("who?", {})).key,
    }
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("kind", "reply", "texts"),
    [
        ("hyde", Stored(" Owners pay. \n"), ("Owners pay.",)),
        ("hyde", Stored(""), ("",)),
        ("hyde", Stored(" \n"), ("",)),
        ("hyde", Stored(None, block="SAFETY"), ()),
        ("multi_query", Stored('{"queries": ["a", "", "c", "d"]}'), ("a", "", "c")),
        ("multi_query", Stored('```json\n{"queries": ["a"]}\n```'), ("a",)),
    ],
)
def test_what_a_reply_holds(kind: str, reply: Stored, texts: tuple[str, ...]) -> None:
    assert value(work(kind, n=3 if kind == "multi_query" else 1), reply) == texts


@pytest.mark.parametrize(
    ("kind", "reply", "failure"),
    [
        ("hyde", Stored("cut", finish="max_tokens"), FailureKind.TRUNCATED),
        ("hyde", Stored("", finish="max_tokens"), FailureKind.TRUNCATED),
        ("hyde", Stored(None, vector=(1.0,)), FailureKind.INVALID),
        ("multi_query", Stored("a\nb"), FailureKind.MALFORMED),
        ("multi_query", Stored('{"queries": []}'), FailureKind.MALFORMED),
    ],
)
def test_replies_that_cannot_be_used_fail(kind: str, reply: Stored, failure: FailureKind) -> None:
    error = value(work(kind), reply)
    assert isinstance(error, CallError)
    assert error.kind == failure


@pytest.mark.parametrize("kind", list(RewriteKind))
def test_the_offline_model_rewrites(kind: RewriteKind) -> None:
    of = work(kind, n=2 if kind is RewriteKind.MULTI_QUERY else 1)
    item = ("Who has to pay old invoices?", {"history": HISTORY})
    call = of.call(item)
    connection = asyncio.run(Extractive().connect())
    texts = of.read(call, asyncio.run(connection.call(call.payload, 1.0, 1)))
    assert len(texts) == of.rewriting.n
    assert all("pay" in text or "invoices" in text for text in texts)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Stored('{"score": 7}'), 7.0),
        (Stored(None, block="SAFETY"), None),
        (Stored('{"score": 11}'), FailureKind.MALFORMED),
        (Stored('{"score": NaN}'), FailureKind.MALFORMED),
        (Stored("seven"), FailureKind.MALFORMED),
    ],
)
def test_a_rating_is_a_whole_number_or_nothing(reply: Stored, expected: float | FailureKind | None) -> None:
    outcome = value(Rate("judge", "lexical", Lexical(), 256), reply, ("who?", ("a text",)))
    assert (outcome.kind if isinstance(outcome, CallError) else outcome[0][1]) == expected
