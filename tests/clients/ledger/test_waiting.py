"""Calls that wait for batch jobs: each once, in order, whatever lanes wrote them; most of them are on disk."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.ledger import waiting
from rankbeam.transforms.clients.ledger.waiting import BatchRound, PendingCall
from rankbeam.transforms.records.errors import InputError

KEYS, WORDS = st.text("abc", min_size=1, max_size=3), st.sampled_from(["x", "y"])
CALLS = st.builds(
    PendingCall,
    key=KEYS,
    service=WORDS,
    stage=st.just("judge"),
    step=WORDS,
    positions=st.lists(st.integers(0, 5), unique=True).map(sorted).map(tuple),
    payload=st.just("ü\n\r"),
)


def read(batch: BatchRound) -> list[tuple[str, int, list[PendingCall]]]:
    with batch.pending() as pending:
        steps = [(service, number, list(calls)) for service, number, calls in pending.steps()]
        again = [(service, number, list(calls)) for service, number, calls in pending.steps()]
        assert steps == again
        assert len(pending) == sum(number for _, number, _ in steps)
    return steps


@given(parts=st.lists(st.lists(CALLS, min_size=1, max_size=6), max_size=9))
def test_calls_of_all_lanes_are_read_once_in_order(parts: list[list[PendingCall]], tmp_path_factory: object) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    batch = BatchRound(str(tmp_path_factory.mktemp("round")))
    expected: dict[tuple[str, str], dict[str, PendingCall]] = {}
    for part in parts:
        batch.write_pending(part)
        for call in part:
            of_step = expected.setdefault((call.service, call.step), {})
            positions = {*of_step.get(call.key, call).positions, *call.positions}
            of_step[call.key] = replace(call, positions=tuple(sorted(positions)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_READ_AT_ONCE", 2)
        merged = read(batch)
    assert merged == [
        (step[0], len(calls), [calls[key] for key in sorted(calls)]) for step, calls in sorted(expected.items())
    ]
    assert read(batch) == []


@pytest.mark.campaign
def test_few_calls_are_in_memory(tmp_path: Path) -> None:
    batch = BatchRound(str(tmp_path))
    text = "x" * 20_000
    for lane in range(60):
        batch.write_pending(
            PendingCall(f"{number:04}-{lane}", "m", "judge", "grade", (0,), text) for number in range(100)
        )
    tracemalloc.start()
    try:
        with batch.pending() as pending:
            number = sum(1 for _, _, calls in pending.steps() for _ in calls)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert number == 6_000
    assert peak < 50_000_000  # all payloads are 120 MB; a block of 32 files is read at a time


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pending-x.jsonl").write_text('{"key": 1}\n', encoding="utf-8")
    with (
        pytest.raises(InputError, match=r"is not a list of calls: .*pending-x\.jsonl|pending-x"),
        BatchRound(str(tmp_path)).pending(),
    ):
        pass
