"""Settings of a process that several threads need at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from rankbeam.transforms.clients.sharing import shared


@pytest.fixture
def log() -> list[str]:
    return []


def test_of_blocks_that_overlap_the_first_enters_and_the_last_leaves(log: list[str]) -> None:
    @shared
    @contextmanager
    def set_once() -> Iterator[int]:
        log.append("set")
        try:
            yield len(log)
        finally:
            log.append("unset")

    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with set_once():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with suppress(KeyboardInterrupt), set_once() as value:
        leave.set()
        thread.join()  # the block that set it has ended, and this one goes on
        assert (value, log) == (1, ["set"])
        raise KeyboardInterrupt
    assert log == ["set", "unset"]
    with set_once() as value:
        assert value == 3
    assert log == ["set", "unset"] * 2


def test_a_block_that_cannot_be_entered_is_tried_again(log: list[str]) -> None:
    @shared
    @contextmanager
    def fails_once() -> Iterator[None]:
        log.append("tried")
        if len(log) == 1:
            raise FileNotFoundError
        yield

    with pytest.raises(FileNotFoundError), fails_once():
        pass
    with fails_once():
        assert log == ["tried", "tried"]
