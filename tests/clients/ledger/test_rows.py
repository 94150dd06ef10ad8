"""Rows of the ledger: which values are possible, and that what is read is what was kept."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.clients.ledger import rows
from rankbeam.transforms.clients.ledger.rows import (
    LedgerEntry,
    StoredRow,
    are_possible,
    entry_of,
    row_groups,
    stored_in,
    table_of,
)
from rankbeam.transforms.records.calls.steps import SearchDepth

LAST = 253_402_300_799_999_999


def test_answers_are_of_the_years_1970_to_9999_and_have_a_key() -> None:
    moments = pa.array([0, LAST, -1, LAST + 1, None, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({"key": ["a", "b", "c", "d", "e", None], "finished_at": moments})
    assert are_possible(rows).to_pylist() == [True, True, False, False, False, False]


def test_a_row_answers_calls_of_its_key_that_go_no_farther() -> None:
    ranking, whole = (StoredRow(("k", *stored, 1, 0.5, None, b""), {}) for stored in ((10, 0.5), (0, None)))
    assert [ranking.answers("k", requested) for requested in (SearchDepth(10, 0.5), SearchDepth(9, 0.4))] == [
        True,
        True,
    ]
    assert [ranking.answers("k", requested) for requested in (SearchDepth(11, 0.5), SearchDepth(10, 0.6), None)] == [
        False
    ] * 3
    assert [ranking.answers("l", SearchDepth(10, 0.5)), whole.answers("k", None), whole.answers("l", None)] == [
        False, True, False,
    ]  # fmt: skip


MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59), timezones=st.just(UTC))


@given(st.lists(MOMENTS, max_size=5))
@example([datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 12, 0, 0, 120, tzinfo=UTC)])
def test_rows_of_any_moment_are_read_as_they_were_kept(moments: list[datetime]) -> None:
    entries = [LedgerEntry(f"{row}", SearchDepth(row, 0.5), "{}", 1, 0.1, moment) for row, moment in enumerate(moments)]
    assert list(map(entry_of, stored_in(table_of(entries), []))) == entries


def test_only_rows_with_another_moment_or_an_impossible_one_are_left_out() -> None:
    entries = [LedgerEntry(f"{row}", None, "{}", 1, 0.1, datetime(2026, 1, row + 1, tzinfo=UTC)) for row in range(4)]
    table = table_of(entries)
    at = table.column_names.index("finished_at")
    moments = table["finished_at"].cast(pa.int64()).to_pylist()
    changed = pa.array([moments[0], moments[1] + 1, -1, moments[3]], pa.timestamp("us", "UTC"))
    rows = table.set_column(at, table.schema.field(at), changed)
    assert list(map(entry_of, stored_in(rows, []))) == [entries[0], None, None, entries[3]]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([4, 4], [[4, 4]]),  # as many bytes as a group may have
        ([4, 5], [[4], [5]]),
        ([9, 1, 1], [[9], [1, 1]]),  # an answer of any size has a group
        ([2, 2, 2, 2], [[2, 2, 2], [2]]),
        ([4, 4, 4, 4], [[4, 4], [4, 4]]),
    ],
)
def test_row_groups_have_at_most_so_many_rows_and_bytes(
    sizes: list[int], expected: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "GROUP_ROWS", 3)
    monkeypatch.setattr(rows, "GROUP_BYTES", 8)
    entries = [LedgerEntry("k", None, "x" * size, 1, 0.1, datetime(2026, 1, 1, tzinfo=UTC)) for size in sizes]
    assert [[len(entry.answer) for entry in group] for group in row_groups(entries)] == expected
