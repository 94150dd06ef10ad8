"""Looking up a stream of calls: what is there is known at once, the newest answer counts, damage has an older copy."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, Lookup, store
from rankbeam.transforms.clients.ledger.merging import compact
from rankbeam.transforms.clients.ledger.parts import Encoder
from rankbeam.transforms.clients.ledger.rows import table_of
from rankbeam.transforms.records.calls.steps import SearchDepth

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def entry(key: str, answer: str = "1", depth: SearchDepth | None = None, minute: int = 0) -> LedgerEntry:
    return LedgerEntry(key, depth, answer, 1, 0.1, NOON + timedelta(minutes=minute))


def put(folder: Path, *entries: LedgerEntry) -> str:
    """Write a part; returns its path."""
    encoder = Encoder()
    encoder.add(table_of(entries))
    return store.put(str(folder), encoder.finish()).path


def fresh(folder: Path) -> Lookup:
    lookup = Ledger(str(folder)).lookup()
    lookup.refresh()
    return lookup


def answers(lookup: Lookup, requested: dict[str, SearchDepth | None]) -> dict[str, str]:
    return {row.key: row.answer for row in lookup.read(requested)}


def test_a_part_is_known_from_the_next_refresh_on(tmp_path: Path) -> None:
    lookup = fresh(tmp_path)
    put(tmp_path, entry("a"))
    assert lookup.place("a", None) is None
    lookup.refresh()
    assert lookup.place("a", None) is not None
    assert answers(lookup, {"a": None, "b": None}) == {"a": "1"}


def test_the_newest_answer_that_goes_far_enough_counts(tmp_path: Path) -> None:
    put(
        tmp_path,
        entry("a", "10", SearchDepth(10), 3),
        entry("a", "20", SearchDepth(20), 1),
        entry("a", "21", SearchDepth(20, 0.5), 2),
    )
    lookup = fresh(tmp_path)
    requests = {
        SearchDepth(5): "10",
        SearchDepth(11): "20",
        SearchDepth(11, 0.4): "21",
        SearchDepth(21): None,
        None: None,
    }
    assert {depth: answers(lookup, {"a": depth}).get("a") for depth in requests} == requests


def test_a_damaged_answer_has_an_older_copy(tmp_path: Path) -> None:
    old, new = put(tmp_path, entry("a", "1")), put(tmp_path, entry("a", "2", minute=1))
    lookup = fresh(tmp_path)
    Path(new).write_bytes(Path(old).read_bytes()[:100])
    assert answers(lookup, {"a": None}) == {"a": "1"}
    assert new in lookup.warnings()[0]


def test_what_a_merge_has_moved_is_found(tmp_path: Path) -> None:
    put(tmp_path, entry("a"))
    put(tmp_path, entry("b"))
    lookup = fresh(tmp_path)
    compact(str(tmp_path))
    assert answers(lookup, {"a": None, "b": None}) == {"a": "1", "b": "1"}
    assert not lookup.warnings()


REACHES = st.none() | st.builds(SearchDepth, st.integers(1, 3), st.none() | st.sampled_from([0.2, 0.5]))


@settings(max_examples=examples(40))
@given(
    st.lists(st.tuples(st.sampled_from("abc"), REACHES), max_size=8), st.dictionaries(st.sampled_from("abcd"), REACHES)
)
def test_it_finds_the_newest_of_all_that_answer_whatever_is_added_and_merged_meanwhile(
    tmp_path_factory: object, written: list[tuple[str, SearchDepth | None]], requested: dict[str, SearchDepth | None]
) -> None:
    folder = tmp_path_factory.mktemp("ledger")  # type: ignore[attr-defined]  pytest's
    expected: dict[str, str] = {}
    lookup = fresh(folder)
    for minute, (key, depth) in enumerate(written):
        put(folder, entry(key, f"{minute}", depth, minute))
        if key in requested and _is_answered(depth, requested[key]):
            expected[key] = f"{minute}"
        if minute == 2:
            lookup.refresh()
        if minute == 5:
            compact(str(folder))
            lookup.refresh()
    lookup.refresh()
    assert answers(lookup, requested) == expected


def _is_answered(stored: SearchDepth | None, requested: SearchDepth | None) -> bool:
    """A whole answer for a whole one, and a ranking for one that goes no farther."""
    if stored is None or requested is None:
        return stored is requested
    return stored.covers(requested)
