"""Nuggets are collected window by window: what is merged keeps its contexts, and what a model leaves out is counted."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.judge.judge import Judge, Model, ModelReply
from rankbeam.transforms.judge.nuggets import (
    CollectNuggets,
    NuggetPool,
    PooledNugget,
    PooledNuggets,
    updated_drafts,
    windows,
)
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.nuggets import DraftNugget, Weight
from rankbeam.transforms.judge.steps.reading import ReasonedVerdict
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, FailureKind

WORK = CollectNuggets(Judge(Model("overlap", "lexical", Lexical()), built_in_templates()))
VALUES = {"query": "q", "nuggets": {"0": "a", "1": "b"}, "contexts": {"0": "x", "1": "y"}}


def reply(*rows: tuple[str, Sequence[int], Sequence[int]]) -> str:
    return json.dumps({"nuggets": [{"text": text, "merges": old, "contexts": new} for text, old, new in rows]})


def read(text: str, values: Mapping[str, Any] = VALUES) -> tuple[DraftNugget, ...]:
    drafts: tuple[DraftNugget, ...] = step_named("nuggets").read(values, text)
    return drafts


def test_a_list_is_read_with_what_each_nugget_rests_on() -> None:
    assert read(reply(("a and b", [0, 1], []), ("c", [], [1]))) == (
        DraftNugget("a and b", (0, 1), ()),
        DraftNugget("c", (), (1,)),
    )
    assert read('{"nuggets": []}') == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (reply(("a " * 13, [], [0])), "nuggets.0: the text has more than 12 words"),
        (reply(("a", [], [])), "nuggets.0: name the contexts that say it, or the nuggets that it merges"),
        (reply(("a", [], [2])), "nuggets.0.contexts: [2]; use numbers from 0 to 1"),
        (reply(("a", [-1], [])), "nuggets.0.merges: [-1]; use numbers from 0 to 1"),
        (reply(("a", [0], []), ("c", [0], [])), "merged into two nuggets"),
        (reply((" ", [], [0])), "nuggets.0.text: "),
        (reply(*(("a", [], [0]) for _ in range(31))), "nuggets: List should have at most 30 items"),
        ('{"nuggets": [{"text": "a", "contexts": [0]}]}', "nuggets.0.merges: Field required"),
    ],
)
def test_a_list_that_breaks_a_rule_is_malformed(text: str, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        read(text)
    assert caught.value.kind is FailureKind.MALFORMED
    assert problem in caught.value.message


def test_numbers_of_nuggets_are_refused_where_there_are_none_so_far() -> None:
    with pytest.raises(CallError, match="there are none so far"):
        read(reply(("a", [0], [])), {**VALUES, "nuggets": {}})


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 90_000), max_size=40))
def test_windows_hold_every_text_in_order_within_their_limits(sizes: list[int]) -> None:
    contexts = [chr(97 + number % 26) * size for number, size in enumerate(sizes)]
    parts = [part for window in windows(contexts) for part in window]
    for window in windows(contexts):
        assert 1 <= len(window) <= 10
        assert sum(len(text) for _, text in window) <= 40_000
    whole = {position: "" for position, text in enumerate(contexts) if text}
    for position, text in parts:
        whole[position] += text
    assert whole == {position: text for position, text in enumerate(contexts) if text}
    assert [position for position, _ in parts] == sorted(position for position, _ in parts)


@settings(max_examples=examples(60))
@given(st.data())
def test_no_context_of_a_kept_nugget_is_lost(data: st.DataObject) -> None:
    texts = st.sampled_from(["Pay by card", "pay by CARD.", "No refunds", "Two weeks"])
    places = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    before = [DraftNugget(text, (), own) for text, own in data.draw(st.lists(st.tuples(texts, places), max_size=4))]
    free = list(range(len(before)))
    drafts = []
    for text in data.draw(st.lists(texts, max_size=5)):
        merges = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=2)) if free else []
        free = [number for number in free if number not in merges]
        drafts.append(DraftNugget(text, tuple(merges), data.draw(places)))
    result = updated_drafts(before, drafts, [10, 11, 12, 13])
    same = lambda text: text.casefold().rstrip(".")  # noqa: E731
    assert [same(one.text) for one in result] == list(dict.fromkeys(same(draft.text) for draft in drafts))
    for one in result:
        mine = [draft for draft in drafts if same(draft.text) == same(one.text)]
        expected = {10 + place for draft in mine for place in draft.contexts}
        expected |= {place for draft in mine for number in draft.merges for place in before[number].contexts}
        expected |= {place for draft in before if same(draft.text) == same(one.text) for place in draft.contexts}
        assert set(one.contexts) == expected


def taken(pool: NuggetPool, replies: Sequence[Any]) -> tuple[PooledNuggets, list[list[Call]]]:
    """The value of a task whose calls get these replies, and its calls by step."""
    steps, sent, yielded = WORK.steps(pool), iter(replies), []
    calls = next(steps)
    try:
        while True:
            yielded.append(list(calls))
            calls = steps.send([next(sent) for _ in calls])
    except StopIteration as end:
        return end.value, yielded


def test_a_query_goes_through_its_windows_and_its_nuggets_are_weighed_ten_at_a_time() -> None:
    pool = NuggetPool("q", "how?", tuple(f"context {number}" for number in range(12)))
    first = [DraftNugget(f"fact {number}", (), (number % 10,)) for number in range(11)]
    second = [DraftNugget("facts 0 and 1", (0, 1), (1,)), *(DraftNugget(f"fact {n}", (n,), ()) for n in range(3, 11))]
    weights = [ReasonedVerdict(weight, "") for weight in [Weight.VITAL, *[Weight.OKAY] * 8]]
    value, calls = taken(pool, [ModelReply(tuple(first), "v1"), ModelReply(tuple(second), "v1"), ModelReply(weights)])
    assert [[call.step for call in step] for step in calls] == [["nuggets"], ["nuggets"], ["nugget_weight"]]
    assert value.nuggets[:2] == (PooledNugget("facts 0 and 1", True, (0, 1, 11)), PooledNugget("fact 3", False, (3,)))
    assert (len(value.nuggets), value.dropped, value.problem) == (9, 1, None)
    shown = Prompt.parse(calls[1][0].payload).values
    assert shown["nuggets"]["10"] == "fact 10"
    assert shown["contexts"] == {"0": "context 10", "1": "context 11"}


def test_one_failed_call_leaves_a_query_without_nuggets() -> None:
    pool = NuggetPool("q", "how?", ("a", "b"))
    failed = CallError(FailureKind.TIMEOUT, "too slow")
    assert taken(pool, [failed])[0] == PooledNuggets("q", problem="timeout: too slow")
    drafts = ModelReply((DraftNugget("a", (), (0,)),))
    assert taken(pool, [drafts, failed])[0] == PooledNuggets("q", problem="timeout: too slow")


def test_ten_nuggets_are_weighed_in_one_call() -> None:
    pool = NuggetPool("q", "how?", tuple(f"context {number}" for number in range(12)))
    drafts = [ModelReply(tuple(DraftNugget(f"f{n}", (), (0,)) for n in range(30)))] * 2
    weights = [ModelReply([ReasonedVerdict(Weight.OKAY, "")] * 10)] * 3
    _, calls = taken(pool, [*drafts, *weights])
    assert [len(step) for step in calls] == [1, 1, 3]
    _, calls = taken(pool, [ModelReply(())] * 2)
    assert [len(step) for step in calls if step] == [1, 1]
