"""The index: which rows of which files answer many calls, in the order of the files."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.ledger import index as module
from rankbeam.transforms.clients.ledger.index import NONE, ROW, Index, Rows, join_rows
from rankbeam.transforms.records.calls.steps import SearchDepth

EMPTY = Index([], np.empty(0, ROW))


def rows(places: dict[str, tuple[int, int]], moment: int = 0) -> Rows:
    """Rows of a part: the row group and the row of each key, all of them whole answers."""
    array = np.zeros(len(places), ROW)
    array["hash"], array["moment"], array["distance"] = [hash(key) for key in places], moment, np.nan
    array["group"], array["row"] = np.array(list(places.values())).T
    return join_rows([array])


def test_answers_are_read_in_the_order_of_the_files_a_row_group_at_a_time() -> None:
    of_a, of_b = {"k": (0, 0), "l": (0, 2), "m": (1, 0)}, {"n": (1, 1), "o": (1, 3), "p": (2, 0), "q": (2, 1)}
    index = EMPTY.changed(["a", "b"], {"a": rows(of_a), "b": rows(of_b)})
    numbers = index.newest(list("qponmlk"), SearchDepth(0))
    ordered = numbers[index.in_order(numbers)]
    assert list(index.groups(ordered)) == [
        ("a", 0, slice(0, 2), [0, 2]),
        ("a", 1, slice(2, 3), [0]),
        ("b", 1, slice(3, 5), [1, 3]),
        ("b", 2, slice(5, 7), [0, 1]),
    ]
    assert list(index.groups(ordered[:1])) == [("a", 0, slice(0, 1), [0])]
    assert list(index.groups(ordered[:0])) == []


def test_the_newest_answer_of_a_key_has_the_number_and_a_key_without_one_has_none() -> None:
    index = EMPTY.changed(["old", "new"], {"old": rows({"k": (0, 0)}, 1), "new": rows({"k": (0, 5)}, 2)})
    number, absent = index.newest(["k", "z"], SearchDepth(0)).tolist()
    assert absent == NONE
    assert list(index.groups(np.array([number]))) == [("new", 0, slice(0, 1), [5])]
    assert [place.path for place in index.places("k", SearchDepth(0))] == ["new", "old"]
    assert EMPTY.newest(["k", "z"], None).tolist() == [NONE, NONE]


def test_keys_beside_every_hash_of_the_index_have_no_answer() -> None:
    lower, middle, higher = sorted("klm", key=hash)
    index = EMPTY.changed(["a"], {"a": rows({middle: (0, 0)})})
    assert index.newest([higher, middle, lower], SearchDepth(0)).tolist() == [NONE, 0, NONE]
    assert [list(index.places(key, SearchDepth(0))) for key in (higher, lower)] == [[], []]


RANKINGS = [SearchDepth(2), SearchDepth(3), SearchDepth(2, 0.5), SearchDepth(3, 0.2)]
REACHES = [*RANKINGS, SearchDepth(1), SearchDepth(4), SearchDepth(1, 0.5), SearchDepth(2, 0.2), SearchDepth(3, 0.6)]


@pytest.mark.parametrize("stored", [None, *RANKINGS])
def test_many_calls_are_answered_by_what_answers_one(stored: SearchDepth | None) -> None:
    index_rows = rows({"k": (0, 0)}).copy()
    if stored is not None:
        index_rows["results"], index_rows["distance"] = (
            stored.results,
            np.nan if stored.distance is None else stored.distance,
        )
    index = EMPTY.changed(["a"], {"a": index_rows})
    answered = [requested for requested in (None, *REACHES) if index.newest(["k"], requested).tolist() == [0]]
    assert answered == ([requested for requested in REACHES if stored.covers(requested)] if stored else [None])
    assert answered == [requested for requested in (None, *REACHES) if list(index.places("k", requested))]


class Answer(NamedTuple):
    """A row of a part; few hashes and moments, so that many are equal."""

    hash: int
    moment: int
    check: int
    group: int
    row: int


LEAST, MOST = -(2**63), 2**63 - 1
HASHES = st.one_of(st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST]), st.integers(LEAST, MOST))
ANSWERS = st.lists(
    st.builds(Answer, HASHES, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=9
)
PATHS = ("a", "b", "c", "d")


@given(
    ledgers=st.lists(st.dictionaries(st.sampled_from(PATHS), ANSWERS), min_size=1, max_size=4),
    at_once=st.integers(1, 5),
)
def test_the_rows_are_those_of_all_parts_in_order_however_the_ledger_changes(
    ledgers: list[dict[str, list[Answer]]], at_once: int
) -> None:
    index, current = EMPTY, dict[str, list[Answer]]()
    for ledger in ledgers:  # a path holds the same rows as long as it stays
        current = {path: current.get(path, answers) for path, answers in ledger.items()}
        new = {path: part(answers) for path, answers in current.items() if path not in index.paths}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_ROWS_AT_ONCE", at_once)
            index = index.changed([*current], new)
        expected = sorted(
            (answer.hash, -answer.moment, answer.check, place, answer.group, answer.row)
            for place, answers in enumerate(current.values())
            for answer in answers
        )
        names = ("hash", "moment", "check", "part", "group", "row")
        columns = [np.asarray(index._columns[name]).tolist() for name in names]
        columns[1] = [-moment for moment in columns[1]]
        assert list(zip(*columns, strict=True)) == expected


def part(answers: list[Answer]) -> Rows:
    array = np.zeros(len(answers), ROW)
    for name in Answer._fields:
        array[name] = [getattr(answer, name) for answer in answers]
    return join_rows([array])
