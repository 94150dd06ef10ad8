"""Order, repeats and the join with judgements, against plain Python on strings."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transforms.kernels import hashing
from transforms.kernels.arrays import HashArray, IntArray, StringArray
from transforms.kernels.orders import order_by_score
from transforms.kernels.pools import Pool, find_judgements
from transforms.kernels.rankings import Ranked, repeats

QUERIES = 3
# Few letters, so that rows repeat; of one to four bytes, so that byte order, UTF-16 order and case differ.
IDS = st.text(alphabet=["a", "B", "é", "\uffee", "😀"], max_size=2) | st.text(max_size=20)
LONG = "a document id of many more than eight bytes, again and again; " * 20
ROWS = st.lists(st.tuples(st.integers(0, QUERIES - 1), st.sampled_from([-0.5, -0.0, 0.0, 1.5, 1e300]), IDS))
STRING_TYPES = pytest.mark.parametrize("strings", [pa.string(), pa.large_string()], ids=str)


def places(values: list[int]) -> IntArray:
    return np.array(values, np.int64)


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
    ranked = Ranked.of(order_by_score(query, np.array([row[1] for row in rows], np.float64), ids), query, ids, QUERIES)
    top = ranked.upto(top_k)
    for place in range(QUERIES):
        of_query = [column[ranked.query == place][:top_k] for column in (ranked.row, ranked.rank, ranked.repeated)]
        kept = [column[top.query == place] for column in (top.row, top.rank, top.repeated)]
        np.testing.assert_equal(kept, of_query)


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
    ranked = Ranked.of(order, query, ids, QUERIES)
    collapsed = ranked.collapsed(QUERIES)
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
    found = find_judgements(*columns(retrieved, strings), pool)
    assert found.tolist() == [row_of.get(pair, -1) for pair in retrieved]


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
