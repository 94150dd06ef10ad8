"""The ledger's writer on the virtual clock: when what was added is on the filesystem, and when it is tried again."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rankbeam.transforms.clients.ledger import LedgerEntry, LedgerWriter, store
from rankbeam.transforms.clients.ledger.writer import PIECE_BYTES, PendingEntries
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def entry(number: int) -> LedgerEntry:
    return LedgerEntry(f"key{number}", SearchDepth(10), '"good"', 1, 0.5, datetime(2026, 1, 1, tzinfo=UTC))


def run(clock: VirtualClock, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, clock.loop()).result(60)


def test_an_entry_is_written_as_soon_as_it_is_due_and_not_before(clock: VirtualClock, tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=5.0, clock=clock)

    async def add() -> list[int]:
        unwritten = []
        writer.add(entry(1))
        for seconds in (4.9, 0.2, 4.9, 0.2):
            await asyncio.sleep(seconds)
            unwritten.append(writer.unwritten)
            if len(unwritten) == 2:
                writer.add(entry(2))
        return unwritten

    assert run(clock, add()) == [1, 0, 1, 0]
    writer.close()


def test_on_this_machine_an_answer_is_lost_for_a_fifth_of_a_second_at_most(clock: VirtualClock, tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), clock=clock)

    async def add() -> int:
        writer.add(entry(1))
        await asyncio.sleep(0.21)
        return writer.unwritten

    assert run(clock, add()) == 0
    writer.close()


def test_entries_that_come_together_are_one_part(clock: VirtualClock, tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=5.0, clock=clock)

    async def add() -> int:
        for number in range(50):
            writer.add(entry(number))
            await asyncio.sleep(0.09)
        await asyncio.sleep(1.0)
        return len(list(tmp_path.iterdir()))

    assert run(clock, add()) == 1
    assert writer.unwritten == 0
    writer.close()


def test_what_cannot_be_written_is_tried_again_each_time_it_is_due(clock: VirtualClock, tmp_path: Path) -> None:
    obstacle = tmp_path / "ledger"
    obstacle.write_text("a file in the way")
    writer = LedgerWriter(str(obstacle), flush_s=5.0, clock=clock)

    async def add() -> list[tuple[bool, int]]:
        seen = []
        writer.add(entry(1))
        for number in range(3):
            if number == 2:
                obstacle.unlink()
            await asyncio.sleep(5.1)
            seen.append((writer.problem is None, writer.unwritten))
        return seen

    assert run(clock, add()) == [(False, 1), (False, 1), (True, 0)]
    writer.close()


def test_taken_entries_no_longer_make_later_ones_due() -> None:
    pending = PendingEntries(5.0, lambda: 0.0)
    pending.add(replace(entry(1), answer="x" * PIECE_BYTES))
    assert pending.is_due()
    assert len(pending.take()) == 1
    pending.add(entry(2))
    assert not pending.is_due()


def test_closing_raises_where_answers_are_not_on_the_filesystem(clock: VirtualClock, tmp_path: Path) -> None:
    obstacle = tmp_path / "ledger"
    obstacle.write_text("a file in the way")
    writer = LedgerWriter(str(obstacle), flush_s=5.0, clock=clock)
    writer.add(entry(1))
    with pytest.raises(InputError) as caught:
        writer.close()
    assert caught.value.problem.startswith("the ledger of finished calls cannot be written: ")
    assert (caught.value.problem.count("cannot be written"), caught.value.path) == (1, str(obstacle))
    assert writer.unwritten == 1


def test_once_a_writer_is_closed_its_small_parts_are_one(tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path))
    for number in range(3):
        writer.add(entry(number))
        writer.flush()
    assert len(store.parts_in(str(tmp_path))) == 3
    writer.close()
    assert len(store.parts_in(str(tmp_path))) == 1


def test_what_follows_a_flush_waits_for_its_own_interval(clock: VirtualClock, tmp_path: Path) -> None:
    writer = LedgerWriter(str(tmp_path), flush_s=5.0, clock=clock)

    async def add() -> list[int]:
        unwritten = []
        writer.add(entry(1))
        await asyncio.to_thread(writer.flush)
        writer.add(entry(2))
        for seconds in (0.0, 4.9, 0.2):
            await asyncio.sleep(seconds)
            unwritten.append(writer.unwritten)
        return unwritten

    assert run(clock, add()) == [1, 1, 0]
    assert clock.monotonic() < 5.5
    writer.close()
