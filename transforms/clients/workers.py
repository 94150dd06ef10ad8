"""Work done beside the thread that asks for it: NumPy and Arrow let go of Python's lock where the work is done."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Generic, ParamSpec, TypeVar

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

AT_ONCE = 2


class Workers(Generic[Result]):
    """Does a few pieces of work at once, and gives out their results in the order in which they were asked for."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._threads = ThreadPoolExecutor(at_once)
        self._pending: deque[Future[Result]] = deque()

    def submit(
        self, work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Iterator[Result]:
        """Begin a piece of work; yield an earlier result when as many are under way as may be.

        Raises:
            Exception: whatever that earlier piece raised.
        """
        self._pending.append(self._threads.submit(work, *arguments, **named))
        if len(self._pending) > self._at_once:
            yield self._pending.popleft().result()

    def finish(self) -> Iterator[Result]:
        """Yield the results that are left, and end the threads."""
        while self._pending:
            yield self._pending.popleft().result()
        self._threads.shutdown()


def ahead(items: Iterator[Result], ready: int = 2) -> Iterator[Result]:
    """Make items in a thread of their own while the ones before them are used.

    The thread ends with the items, with an error, which is raised here, and when this iterator is closed, which
    closes `items` too.

    Args:
        items: what is made; anything that yields.
        ready: how many items may wait to be used.

    >>> list(ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    maker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        waiting = deque(maker.submit(_next, items) for _ in range(ready))
        while made := waiting.popleft().result():
            waiting.append(maker.submit(_next, items))
            yield made.pop()
    finally:
        maker.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()


def _next(items: Iterator[Result]) -> list[Result]:
    return list(islice(items, 1))
