"""Rows of the ledger: which values are possible."""

import pyarrow as pa

from rankbeam.transforms.clients.ledger.rows import Stored, are_possible
from rankbeam.transforms.records.calls.reach import Reach

LAST = 253_402_300_799_999_999


def test_answers_are_of_the_years_1970_to_9999_and_have_a_key() -> None:
    moments = pa.array([0, LAST, -1, LAST + 1, None, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({"key": ["a", "b", "c", "d", "e", None], "finished_at": moments})
    assert are_possible(rows).to_pylist() == [True, True, False, False, False, False]


def test_a_row_answers_calls_of_its_key_that_go_no_farther() -> None:
    ranking, whole = (Stored(("k", *held, 1, 0.5, None, b""), {}) for held in ((10, 0.5), (0, None)))
    assert [ranking.answers("k", wanted) for wanted in (Reach(10, 0.5), Reach(9, 0.4))] == [True, True]
    assert [ranking.answers("k", wanted) for wanted in (Reach(11, 0.5), Reach(10, 0.6), None)] == [False] * 3
    assert [ranking.answers("l", Reach(10, 0.5)), whole.answers("k", None), whole.answers("l", None)] == [
        False, True, False,
    ]  # fmt: skip
