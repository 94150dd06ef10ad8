"""When finished calls are due to be written: on a clock that only the test moves."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.ledger import LedgerEntry
from rankbeam.transforms.clients.ledger.writer import PIECE_BYTES, PendingEntries

LARGE = "x" * (PIECE_BYTES // 2)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def entry(number: int, answer: str = "1") -> LedgerEntry:
    return LedgerEntry(f"key{number}", None, answer, 1, 0.5, datetime(2026, 1, 1, tzinfo=UTC))


def test_an_entry_is_due_after_the_time_it_may_wait_and_not_before() -> None:
    clock = Clock()
    pending = PendingEntries(0.5, clock)
    assert (pending.wait_s(), pending.is_due()) == (None, False)
    assert pending.add(entry(0))
    assert (pending.wait_s(), pending.is_due()) == (0.5, False)
    clock.now += 0.25
    assert not pending.add(entry(1))  # waits with the first, for which a writer looks already
    assert (pending.wait_s(), pending.is_due()) == (0.25, False)
    clock.now += 0.25
    assert (pending.wait_s(), pending.is_due()) == (0.0, True)
    clock.now += 1
    assert pending.wait_s() == 0.0
    assert pending.take() == [entry(0), entry(1)]
    assert (len(pending), pending.wait_s(), pending.is_due()) == (0, None, False)
    pending.add(entry(2))
    assert pending.wait_s() == 0.5


def test_much_is_due_at_once_in_pieces_of_which_the_second_does_not_wait() -> None:
    pending = PendingEntries(60.0, Clock())
    assert pending.add(entry(0, LARGE))
    assert not pending.is_due()
    assert pending.add(entry(1, LARGE))
    assert pending.is_due()
    pending.add(entry(2))
    assert pending.take() == [entry(0, LARGE), entry(1, LARGE)]
    assert (pending.is_due(), pending.wait_s()) == (True, 0.0)
    assert pending.take() == [entry(2)]


def test_what_could_not_be_written_is_tried_again_after_a_while_however_much_there_is() -> None:
    clock = Clock()
    pending = PendingEntries(0.5, clock)
    for number in range(3):
        pending.add(entry(number, LARGE))
    pending.put_back(pending.take())
    assert (pending.is_due(), pending.wait_s()) == (False, 0.5)
    clock.now += 0.5
    assert pending.is_due()
    assert pending.take() == [entry(0, LARGE), entry(1, LARGE)]
    pending.written()
    pending.add(entry(3, LARGE))
    clock.now -= 0.5  # nothing but the bytes makes it due
    assert pending.is_due()


@given(st.lists(st.sampled_from(["add", "take", "lose"])))
def test_entries_are_taken_in_their_order_and_each_is_written_once(steps: list[str]) -> None:
    pending, written, added = PendingEntries(0.5, Clock()), [], 0
    for step in steps:
        if step == "add":
            pending.add(entry(added))
            added += 1
        elif step == "take":
            written += pending.take()
        else:
            pending.put_back(pending.take())
        assert len(pending) == added - len(written)
    assert [*written, *pending.take()] == [entry(number) for number in range(added)]
