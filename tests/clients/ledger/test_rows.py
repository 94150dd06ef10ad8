"""Rows of the ledger: which values are possible."""

import pyarrow as pa

from rankbeam.transforms.clients.ledger.rows import are_possible

LAST = 253_402_300_799_999_999


def test_answers_are_of_the_years_1970_to_9999_and_have_a_key() -> None:
    moments = pa.array([0, LAST, -1, LAST + 1, None, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({"key": ["a", "b", "c", "d", "e", None], "finished_at": moments})
    assert are_possible(rows).to_pylist() == [True, True, False, False, False, False]
