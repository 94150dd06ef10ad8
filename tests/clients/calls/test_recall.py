"""Recalled answers: what comes of them equals what the driver makes of them, and whatever is doubtful goes to it."""

import json
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.services import FAST, Echo, Script, failing

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed, Recall
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, distinct
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, store
from rankbeam.transforms.clients.ledger.parts import Encoder
from rankbeam.transforms.clients.ledger.rows import table_of
from rankbeam.transforms.clients.retrievers.base import Retrieve
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.steps import CallAnswer, RecalledTasks, SearchDepth, Subject, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.retrieved import rankings_in

HTTP = Http(url="http://127.0.0.1:9/", results="hits.hits", id="_id", score="s", text="of.text")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = '{"hits": {"hits": [{"_id": "d", "s": 1.5, "of": {"text": "words"}}]}}'
READ = Ranking(("d",), (1.5,), ("words",))
CALLED = Ranking((), ())  # what an answer of `Echo` is read as
REACH = SearchDepth(10)


def work(depth: SearchDepth) -> Retrieve:
    return Retrieve("echo", "http", HTTP, depth)


def put(folder: Path, *answers: tuple[str, str, int]) -> str:
    """Keep answers: key, answer, and how far it goes; returns the path of the part."""
    encoder = Encoder()
    encoder.add(table_of(LedgerEntry(key, SearchDepth(results), text, 1, 0.1, NOON) for key, text, results in answers))
    return store.put(str(folder), encoder.finish()).path


def task(name: str, *queries: str) -> Task:
    return Task(name, "echo", (name, name), tuple(Subject("retrieval", query, 3, (0,)) for query in queries or (name,)))


def recalled(
    tasks: Sequence[Task], folder: Path, clock: VirtualClock, script: Script | None = None
) -> tuple[dict[str, Any], list[str], Echo, FanOut]:
    """By query what came of it; the queries that were recalled; the service, and the fan-out."""
    service = Echo(script)
    stage = Stage("retrieve", {"echo": work(REACH)}, {"echo": service}, {"echo": "pool"}, {"pool": FAST}, {})
    shard = distinct([Reference.to(batch) for batch in batches_of(tasks)])
    recall = Recall(stage.works, list(map(Reference.to, shard)))
    fan_out = FanOut(stage, Ledger(str(folder)), clock)
    fan_out.begin(("pool",), 0, Feed(recall.missed(), recall=recall))
    values: dict[str, Any] = {}
    known: list[str] = []
    for taken in fan_out.outcomes():
        if isinstance(taken, RecalledTasks):
            for place, subject in zip(taken.tasks, taken.subjects, strict=True):
                (values[subject.query_id],) = rankings_in(taken.values.slice(place, 1))
                known.append(subject.query_id)
        elif isinstance(taken, CallAnswer):
            values |= {subject.query_id: taken.value for subject in taken.subjects}
        elif taken is not None:
            values[taken.subject.query_id] = taken.failure.kind
    return values, known, service, fan_out


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def test_what_the_ledger_has_is_recalled_and_the_rest_is_called(tmp_path: Path, clock: VirtualClock) -> None:
    put(tmp_path, *((f"a{n}", GOOD, 10) for n in range(700)))
    tasks = [task(f"a{n}", f"q{n}", f"again{n}") for n in range(700)] + [task(f"new{n}") for n in range(20)]
    values, known, service, fan_out = recalled(tasks, tmp_path, clock)
    expected = dict.fromkeys([f"{name}{n}" for n in range(700) for name in ("q", "again")], READ)
    assert values == expected | {f"new{n}": CALLED for n in range(20)}
    assert len(known) == 1400
    assert {question for question, _ in service.begun} == {f"new{n}" for n in range(20)}
    totals = fan_out.totals()
    assert (totals[Counter.LEDGER_HITS, "pool"], totals[Counter.CALLS_PLANNED, "pool"]) == (700, 720)
    assert [(usage.calls, usage.ledger_hits) for usage in fan_out.usage()] == [(20, 700)]


class Counted(list[Reference]):
    """Batches of tasks, and how often they were read."""

    reads = 0

    def __iter__(self) -> Iterator[Reference]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize(("hits", "reads"), [(0, 2), (3, 3), (5, 2)])
def test_the_tasks_of_a_lane_are_read_no_more_often_than_needed(hits: int, reads: int, tmp_path: Path) -> None:
    """Once to look them up and to count them, once for those to call, and once for those to recall."""
    put(tmp_path, *((f"a{n}", GOOD, 10) for n in range(hits)))
    batches = [*batches_of([task(f"a{n}") for n in range(3)]), *batches_of([task(f"a{n}") for n in range(3, 5)])]
    shard = Counted(map(Reference.to, batches))
    recall = Recall({"echo": work(REACH)}, shard)
    feed = Feed(recall.missed(), recall=recall)
    lookup = Ledger(str(tmp_path)).lookup()
    lookup.refresh()
    feed.look_up(lookup)
    assert feed.left == 5
    known = 0
    while (part := feed.read_recalled()) is not None:
        known += len(part.tasks)
    assert feed.fill(1 << 20)
    assert (known, len([*feed.take(lambda: True)]), shard.reads) == (hits, 5 - hits, reads)


def test_answers_of_a_file_that_was_deleted_meanwhile_are_called_for_again(tmp_path: Path) -> None:
    put(tmp_path, ("a", GOOD, 10), ("b", GOOD, 10))
    recall = Recall({"echo": work(REACH)}, list(map(Reference.to, batches_of([task("a"), task("b")]))))
    lookup = Ledger(str(tmp_path)).lookup()
    lookup.refresh()
    assert (recall.look_up(lookup), list(recall.missed())) == (2, [])
    for part in tmp_path.rglob("*.parquet"):
        part.unlink()
    assert recall.read() is None
    assert [recall.rejected() is None for _ in range(3)] == [False, False, True]


def test_an_answer_that_does_not_go_far_enough_is_not_recalled(tmp_path: Path, clock: VirtualClock) -> None:
    put(tmp_path, ("short", GOOD, 9), ("long", GOOD, 10))
    _, known, service, _ = recalled([task("short"), task("long")], tmp_path, clock)
    assert (known, [question for question, _ in service.begun]) == (["long"], ["short"])


def test_what_cannot_be_read_is_called_again_and_nothing_else(tmp_path: Path, clock: VirtualClock) -> None:
    put(tmp_path, ("good", GOOD, 10), ("broken", '{"hits": {"hits": 5}}', 10))
    values, known, service, _ = recalled([task("good"), task("broken")], tmp_path, clock)
    assert values == {"good": READ, "broken": CALLED}
    assert (known, [question for question, _ in service.begun]) == (["good"], ["broken"])


def test_a_damaged_answer_has_an_older_copy_and_a_warning(tmp_path: Path, clock: VirtualClock) -> None:
    put(tmp_path, ("a", GOOD, 10))
    newer = LedgerEntry("a", SearchDepth(10), '{"hits": {"hits": []}}', 1, 0.1, NOON.replace(hour=13))
    table = table_of([newer, replace(newer, key="another")])
    place = table.schema.get_field_index("seconds")
    encoder = Encoder()
    encoder.add(table.set_column(place, table.schema.field(place), pa.array([0.2, 0.1])))  # its hash does not match
    store.put(str(tmp_path), encoder.finish())
    values, known, service, fan_out = recalled([task("a")], tmp_path, clock)
    assert (values, known, service.begun) == ({"a": READ}, [], [])
    assert fan_out.totals()[Counter.LEDGER_HITS, "pool"] == 1
    assert "impossible values" in fan_out.warnings()[0]


def test_a_service_whose_answers_are_recalled_has_answered(tmp_path: Path, clock: VirtualClock) -> None:
    """Misses are then for single queries: all of them are called."""
    put(tmp_path, ("a", GOOD, 10))
    tasks = [task("a"), *(task(f"new{n}") for n in range(30))]
    values, known, service, _ = recalled(tasks, tmp_path, clock, failing(FailureKind.NOT_FOUND, times=1))
    assert (known, len(service.begun)) == (["a"], 30)
    assert values == {"a": READ} | {f"new{n}": FailureKind.NOT_FOUND for n in range(30)}


def test_lanes_without_an_answer_in_the_ledger_are_as_ever(tmp_path: Path, clock: VirtualClock) -> None:
    values, known, service, _ = recalled([task("a"), task("b")], tmp_path, clock)
    assert (values, known, Tally(question for question, _ in service.begun)) == (
        {"a": CALLED, "b": CALLED},
        [],
        Tally(["a", "b"]),
    )


VALUES = st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=2) | st.just([])
RESULTS = st.fixed_dictionaries(
    {}, optional={"_id": VALUES, "s": VALUES, "of": VALUES | st.fixed_dictionaries({}, optional={"text": VALUES})}
)
USUAL = st.fixed_dictionaries(
    {"_id": st.text(min_size=1, max_size=3), "s": st.floats(-9, 9), "of": st.fixed_dictionaries({"text": st.text()})}
)
ANSWERS = st.builds(
    lambda results: {"hits": {"hits": results}}, st.lists(USUAL) | st.lists(RESULTS | USUAL) | VALUES
) | VALUES.filter(lambda value: not isinstance(value, float))


@given(st.lists(ANSWERS, min_size=1, max_size=4))
def test_many_answers_are_read_as_each_of_them(answers: list[Any]) -> None:
    texts = [json.dumps(answer).encode() for answer in answers]
    rankings = HTTP.recall(texts)
    for number, text in enumerate(texts):
        try:
            ranking = HTTP.read(text.decode())
        except CallError:
            assert not rankings[number].is_valid
            continue
        (together,) = rankings_in(rankings.slice(number, 1))
        assert (together.doc_ids, together.texts) == (ranking.doc_ids, ranking.texts)
        assert str(together.scores) == str(ranking.scores)
