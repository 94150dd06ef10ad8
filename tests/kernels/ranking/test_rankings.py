"""Order, repeats and the join with judgements, against plain Python on strings."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, IntArray, StringArray, stable_order
from rankbeam.transforms.kernels.ranking import pools
from rankbeam.transforms.kernels.ranking.orders import order_by_id, order_by_score
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements, keys
from rankbeam.transforms.kernels.ranking.rankings import RankedRows, repeats

QUERIES = 3
# Few letters, so that rows repeat; of one to four bytes, so that byte order, UTF-16 order and case differ.
IDS = st.text(alphabet=["a", "B", "é", "\uffee", "😀"], max_size=2) | st.text(max_size=20)
LONG = "a document id of many more than eight bytes, again and again; " * 20
ROWS = st.lists(st.tuples(st.integers(0, QUERIES - 1), st.sampled_from([-0.5, -0.0, 0.0, 1.5, 1e300]), IDS))
STRING_TYPES = pytest.mark.parametrize("strings", [pa.string(), pa.large_string()], ids=str)


def places(values: list[int]) -> IntArray:
    return np.array(values, np.int64)


@pytest.mark.long
@STRING_TYPES
@given(rows=ROWS)
@example(rows=[(0, 1.0, "\uffee"), (0, 1.0, "😀"), (0, 1.0, "z"), (0, 1.0, "é"), (0, 1.0, "Z"), (0, 1.0, "")])
@example(rows=[(1, 1.0, "d10"), (0, -0.0, "d9"), (0, 0.0, "d10"), (1, 2.0, "d1"), (0, 0.0, "d9")])
def test_ties_are_ordered_by_the_bytes_of_the_id_descending(
    strings: pa.DataType, rows: list[tuple[int, float, str]]
) -> None:
    query, score, ids = places([row[0] for row in rows]), np.array([row[1] for row in rows]), [row[2] for row in rows]
    order = order_by_score(query, score, pa.array(ids, strings))
    by_bytes = sorted(rows, key=lambda row: row[2].encode(), reverse=True)
    assert [rows[row] for row in order] == sorted(by_bytes, key=lambda row: (row[0], -row[1]))


@given(rows=ROWS, top_k=st.none() | st.integers(0, 5))
def test_the_top_of_every_query_is_kept(rows: list[tuple[int, float, str]], top_k: int | None) -> None:
    query, ids = places([row[0] for row in rows]), pa.array([row[2] for row in rows], pa.string())
    ranked = RankedRows.of(
        order_by_score(query, np.array([row[1] for row in rows], np.float64), ids), query, ids, QUERIES
    )
    top = ranked.upto(top_k)
    for place in range(QUERIES):
        of_query = [column[ranked.query == place][:top_k] for column in (ranked.row, ranked.rank, ranked.repeated)]
        top_rows = [column[top.query == place] for column in (top.row, top.rank, top.repeated)]
        np.testing.assert_equal(top_rows, of_query)


@STRING_TYPES
@given(rows=ROWS)
def test_a_row_repeats_what_an_earlier_row_of_its_query_named(
    strings: pa.DataType, rows: list[tuple[int, float, str]]
) -> None:
    named = [(query, doc) for query, _, doc in rows]
    again = repeats(places([query for query, _ in named]), pa.array([doc for _, doc in named], strings))
    assert again.tolist() == [pair in named[:row] for row, pair in enumerate(named)]


@given(rows=ROWS)
def test_the_best_row_of_every_document_stands_for_it(rows: list[tuple[int, float, str]]) -> None:
    query, ids = places([row[0] for row in rows]), pa.array([row[2] for row in rows], pa.string())
    order = order_by_score(query, np.array([row[1] for row in rows], np.float64), ids)
    ranked = RankedRows.of(order, query, ids, QUERIES)
    collapsed = ranked.deduplicated(QUERIES)
    for place in range(QUERIES):
        of_query = [row for row in order.tolist() if query[row] == place]
        best: dict[str, int] = {}
        for row in of_query:
            best.setdefault(rows[row][2], row)
        assert ranked.rank[ranked.query == place].tolist() == list(range(1, len(of_query) + 1))
        assert ranked.row[(ranked.query == place) & ~ranked.repeated].tolist() == list(best.values())
        assert collapsed.row[collapsed.query == place].tolist() == list(best.values())
        assert collapsed.rank[collapsed.query == place].tolist() == list(range(1, len(best) + 1))
    assert not collapsed.repeated.any()


@st.composite
def judged_and_retrieved(draw: st.DrawFn) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Judged and retrieved pairs (query, document) that often agree, and often agree in all but the query."""
    ids = st.sampled_from([*draw(st.lists(IDS, min_size=1, max_size=5)), "", LONG + "1", LONG + "2"])
    pairs = st.tuples(st.integers(0, QUERIES - 1), ids)
    return sorted(draw(st.lists(pairs, unique=True))), draw(st.lists(pairs))


def assert_finds_every_judgement(
    judged: list[tuple[int, str]], retrieved: list[tuple[int, str]], strings: pa.DataType
) -> None:
    query, doc_id = columns(judged, strings)
    pool = Pool(QUERIES, query, doc_id, np.arange(len(judged), dtype=np.float64))
    row_of = {pair: row for row, pair in enumerate(judged)}
    positions = find_judgements(*columns(retrieved, strings), pool)
    assert positions.tolist() == [row_of.get(pair, -1) for pair in retrieved]


def columns(pairs: list[tuple[int, str]], strings: pa.DataType) -> tuple[IntArray, StringArray]:
    return places([query for query, _ in pairs]), pa.array([doc for _, doc in pairs], strings)


@STRING_TYPES
@given(pairs=judged_and_retrieved())
def test_every_judgement_is_found(
    strings: pa.DataType, pairs: tuple[list[tuple[int, str]], list[tuple[int, str]]]
) -> None:
    assert_finds_every_judgement(*pairs, strings)


@pytest.fixture(params=["documents collide", "everything collides"])
def colliding_hash(request: pytest.FixtureRequest) -> Iterator[None]:
    """A hash that tells nothing apart; collisions of the real one cannot be had by trying."""

    def same_for_all(values: StringArray | HashArray, *_: HashArray) -> HashArray:
        return np.zeros(len(values), np.uint64)

    replaced = "hash_strings" if request.param == "documents collide" else "combine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, replaced, same_for_all)
        yield


@pytest.mark.usefixtures("colliding_hash")
@given(pairs=judged_and_retrieved())
def test_every_judgement_is_found_though_hashes_collide(
    pairs: tuple[list[tuple[int, str]], list[tuple[int, str]]],
) -> None:
    assert_finds_every_judgement(*pairs, pa.string())


@pytest.mark.usefixtures("colliding_hash")
@given(rows=ROWS)
def test_repeats_are_exact_though_hashes_collide(rows: list[tuple[int, float, str]]) -> None:
    named = [(query, doc) for query, _, doc in rows]
    again = repeats(*columns(named, pa.string()))
    assert again.tolist() == [pair in named[:row] for row, pair in enumerate(named)]


@given(rows=ROWS, data=st.data())
@example(rows=[(0, 1.0, "a"), (0, 1.0, "b"), (0, 0.0, "c"), (0, 0.0, "d"), (1, 0.0, "e")], data=None)
def test_what_matters_has_the_rank_that_it_has_anyway(
    rows: list[tuple[int, float, str]], data: st.DataObject | None
) -> None:
    query, score = places([row[0] for row in rows]), np.array([row[1] for row in rows], np.float64)
    ids = pa.array([row[2] for row in rows], pa.string())
    chosen = [row % 3 == 0 for row in range(len(rows))]
    if data is not None:
        chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    matters = np.array(chosen, bool)
    full, quick = order_by_score(query, score, ids), order_by_score(query, score, ids, matters)
    assert sorted(quick.tolist()) == list(range(len(rows)))
    np.testing.assert_array_equal(query[quick], query[full])
    np.testing.assert_array_equal(score[quick], score[full])
    # Rows that name the same document with the same score are one another's equals.
    names = [[(rows[row][2] if matters[row] else None) for row in order.tolist()] for order in (full, quick)]
    tied_with_one = {(rows[row][0], rows[row][1]) for row in np.flatnonzero(matters).tolist()}
    assert [name for name in names[0] if name is not None] == [name for name in names[1] if name is not None]
    for one, other in zip(full.tolist(), quick.tolist(), strict=True):
        if (rows[one][0], rows[one][1]) in tied_with_one:
            assert rows[one] == rows[other]


@STRING_TYPES
@pytest.mark.parametrize("descending", [False, True])
@given(rows=st.lists(st.tuples(st.integers(0, 3), IDS | IDS.map(lambda end: LONG + end), st.just(0)), max_size=40))
@example(rows=[(1, "d" * 8, 0), (1, "d" * 9, 0), (1, "d" * 7, 0), (0, "d" * 8 + "\0", 0), (0, "d" * 8, 0), (0, "", 0)])
@example(rows=[(0, "\0", 0), (0, "", 0), (0, "\0\0", 0), (0, "a\0", 0), (0, "a", 0)])
def test_ids_are_ordered_as_python_orders_their_bytes(
    strings: pa.DataType, descending: bool, rows: list[tuple[int, str, int]]
) -> None:
    order = order_by_id(
        places([row[0] for row in rows]), pa.array([row[1] for row in rows], strings), descending=descending
    )
    assert sorted(order.tolist()) == list(range(len(rows)))
    by_bytes = sorted(rows, key=lambda row: row[1].encode(), reverse=descending)
    assert [rows[row] for row in order] == sorted(by_bytes, key=lambda row: row[0])


@STRING_TYPES
def test_slices_of_ids_are_ordered_like_others(strings: pa.DataType) -> None:
    ids = pa.array([f"{LONG[: number % 70]}{number * 7919 % 1000}" for number in range(1000)], strings)
    for offset, length in ((1, 999), (500, 3), (999, 1), (1000, 0)):
        part = ids.slice(offset, length)
        order = order_by_id(np.zeros(length, np.int64), part)
        assert part.take(pa.array(order)).to_pylist() == sorted(part.to_pylist(), key=str.encode)


@pytest.mark.parametrize("count", [1, 2, 255, 1 << 16, (1 << 16) + 1, 200_000, (1 << 32) + 5])
@pytest.mark.parametrize("used", [1, 3, 1 << 20])
def test_a_stable_order_is_that_of_a_stable_sort(count: int, used: int) -> None:
    rng = np.random.default_rng(8)
    groups = rng.integers(0, count, 50_000)
    groups = rng.choice(rng.integers(0, count, used), 50_000) if used < 1 << 20 else groups
    groups[7] = count - 1
    for given_groups in (groups, np.sort(groups), np.sort(groups)[::-1], groups[:1], groups[:0]):
        expected = np.argsort(given_groups, kind="stable")
        np.testing.assert_array_equal(stable_order(given_groups, count), expected)


@pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 5000, 300_000])
def test_every_key_of_a_pool_is_matched(size: int) -> None:
    query = np.sort(np.random.default_rng(9).integers(0, 1 + size // 10, size))
    ids = pa.array([f"d{number}" for number in range(size)], pa.string())
    pool = Pool(1 + size // 10, query, ids, np.zeros(size))
    key = keys(query, ids)
    assert len(set(key.tolist())) == size
    others = keys(query, pa.array([f"other{number}" for number in range(size)], pa.string()))
    extremes = np.array([0, 1, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 1 << 63], np.uint64)
    shuffle = np.random.default_rng(10).permutation(2 * size + 5)
    searched_keys = np.concatenate([others, key, extremes])[shuffle]
    row, judgement = pool.matches(searched_keys)
    where = np.full(2 * size + 5, -1)
    where[size : 2 * size] = np.arange(size)
    assert np.isin(row, np.arange(len(searched_keys))).all()
    positions = np.full(len(searched_keys), -1)
    positions[row] = judgement
    np.testing.assert_array_equal(positions, where[shuffle])


@pytest.mark.parametrize("highest", [[], [0xFFFFFFFFFFFFFFFF]])
def test_keys_at_both_ends_and_close_to_each_other_are_matched(
    highest: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [0, 1, 2, 3, 1 << 20, (1 << 20) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, 0xFFFFFFFFFFFFFFFE, *highest]
    key = np.array(some[::-1], np.uint64)
    monkeypatch.setattr(pools, "keys", lambda *_: key)  # no id with these hashes is known
    pool = Pool(1, np.zeros(len(key), np.int64), pa.array([str(number) for number in some]), np.zeros(len(key)))
    keys = np.array([*some, 4, (1 << 20) + 2, (1 << 63) + 2, 0xFFFFFFFFFFFFFFFD], np.uint64)
    row, judgement = pool.matches(keys)
    assert row.tolist() == list(range(len(some)))
    assert key[judgement].tolist() == some
