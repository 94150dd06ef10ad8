"""Work beside the thread that asks for it: order, errors, how much is under way, and the end of the threads."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.workers import AT_ONCE, Workers, read_ahead

PATIENCE_S = 30  # how long a broken test waits; one that passes never does


def own_threads(before: set[threading.Thread]) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread not in before and thread.is_alive()}


@pytest.fixture
def before() -> Iterator[set[threading.Thread]]:
    """The threads there were; afterwards no other is left."""
    threads = set(threading.enumerate())
    yield threads
    assert own_threads(threads) == set()


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("pieces", [0, 1, 2, 3, 40])
@pytest.mark.usefixtures("before")
def test_results_come_in_the_order_of_the_questions(at_once: int, pieces: int) -> None:
    workers: Workers[int] = Workers(at_once)
    results: list[int] = []
    for number in range(pieces):
        results += workers.submit(lambda value: value * value, number)
        assert results == [done * done for done in range(number + 1 - at_once)]
    results += workers.finish()
    assert results == [number * number for number in range(pieces)]


@pytest.mark.usefixtures("before")
def test_a_piece_that_is_done_later_still_comes_first() -> None:
    workers: Workers[str] = Workers(2)
    second_done = threading.Event()

    def first() -> str:
        assert second_done.wait(PATIENCE_S)
        return "first"

    def second() -> str:
        second_done.set()
        return "second"

    results = [*workers.submit(first), *workers.submit(second), *workers.finish()]
    assert results == ["first", "second"]


@pytest.mark.usefixtures("before")
def test_pieces_are_done_side_by_side_and_beside_the_one_who_asks() -> None:
    workers: Workers[int] = Workers()
    meeting = threading.Barrier(AT_ONCE)

    def meet(number: int, *, plus: int) -> int:
        meeting.wait(PATIENCE_S)  # raises unless all of them are here at once
        assert threading.current_thread() is not threading.main_thread()
        return number + plus

    results = [done for number in range(2 * AT_ONCE) for done in workers.submit(meet, number, plus=10)]
    assert [*results, *workers.finish()] == [10, 11, 12, 13]


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.usefixtures("before")
def test_no_more_are_under_way_than_may_be(at_once: int) -> None:
    workers: Workers[int] = Workers(at_once)
    under_way, most, guard = 0, 0, threading.Lock()
    gate = threading.Semaphore(0)

    def work(number: int) -> int:
        nonlocal under_way, most
        with guard:
            under_way += 1
            most = max(most, under_way)
        assert gate.acquire(timeout=PATIENCE_S)
        with guard:
            under_way -= 1
        return number

    begun = 0
    for number in range(at_once):
        assert list(workers.submit(work, number)) == []
        begun += 1
    results = []
    for number in range(at_once, 20):
        gate.release()
        results += workers.submit(work, number)
        begun += 1
        assert begun - len(results) == at_once  # results are not heaped up either
    for _ in range(at_once):
        gate.release()
    assert [*results, *workers.finish()] == list(range(20))
    assert most == at_once


@pytest.mark.parametrize("bad", [0, 1, 3, 4])
def test_an_error_surfaces_where_its_result_would(bad: int, before: set[threading.Thread]) -> None:
    def work(number: int) -> int:
        if number == bad:
            raise ValueError(f"piece {number}")
        return number

    def everything(results: list[int]) -> None:
        workers: Workers[int] = Workers(2)
        for number in range(5):
            results += workers.submit(work, number)
        for done in workers.finish():
            results.append(done)

    results: list[int] = []
    with pytest.raises(ValueError, match=f"^piece {bad}$") as caught:
        everything(results)
    assert results == list(range(bad))
    assert caught.traceback[-1].name == "work"
    del caught
    for thread in own_threads(before):
        thread.join(PATIENCE_S)
    assert own_threads(before) == set()  # once nothing refers to the workers


# --- Reading ahead ------------------------------------------------------------------------------------------------


class Counter:
    """Counts up, and remembers how far, in which threads, and whether it was closed."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.made = 0
        self.threads: set[str] = set()
        self.closed = False
        self.fails_at = fails_at

    def items(self) -> Iterator[int]:
        try:
            while self.made < 100:
                if self.made == self.fails_at:
                    raise ValueError("the source broke")
                self.threads.add(threading.current_thread().name)
                self.made += 1
                yield self.made
        finally:
            self.closed = True


def threads_ahead() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")]


@given(items=st.lists(st.none() | st.integers()), ready=st.integers(1, 5))
def test_what_is_made_ahead_is_the_same_in_the_same_order(items: list[int | None], ready: int) -> None:
    assert list(read_ahead(iter(items), ready)) == items
    assert threads_ahead() == []


def test_items_are_made_in_one_other_thread() -> None:
    counter = Counter()
    assert list(read_ahead(counter.items())) == list(range(1, 101))
    assert len(counter.threads) == 1
    assert threading.current_thread().name not in counter.threads


@pytest.mark.parametrize("ready", [1, 2, 4])
def test_only_so_many_items_are_made_ahead(ready: int) -> None:
    counter = Counter()
    for item in read_ahead(counter.items(), ready):
        assert counter.made <= item + ready


@pytest.mark.parametrize("used", [1, 2, 10])
def test_who_stops_early_ends_the_thread_and_closes_the_source(used: int) -> None:
    counter = Counter()
    items = read_ahead(counter.items())
    assert [next(items) for _ in range(used)] == list(range(1, used + 1))
    items.close()  # type: ignore[attr-defined]  # what a loop does that is left
    assert (threads_ahead(), counter.closed) == ([], True)
    assert counter.made <= used + 2


def test_an_error_comes_after_the_items_before_it() -> None:
    counter = Counter(fails_at=3)
    items = read_ahead(counter.items())
    assert [next(items) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="the source broke"):
        next(items)
    assert (threads_ahead(), counter.closed) == ([], True)


def test_nothing_is_made_before_it_is_asked_for() -> None:
    counter = Counter()
    read_ahead(counter.items())
    assert (counter.made, threads_ahead()) == (0, [])
