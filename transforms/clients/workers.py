"""Work done beside the thread that asks for it: NumPy and Arrow let go of Python's lock where the work is done."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
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


class Ahead(Generic[Result]):
    """Makes items in a thread while the ones before them are used, or before anybody asks for the first."""

    def __init__(
        self, items: Iterator[Result], ready: int = 2, before: int = 0, maker: ThreadPoolExecutor | None = None
    ) -> None:
        """Begin at once.

        Args:
            items: what is made; anything that yields.
            ready: how many items may wait to be used.
            before: how many may wait before the first one is used, if more.
            maker: the thread that makes them; by default one of their own, which ends with them.
        """
        self._items, self._ready = items, ready
        self._maker = maker or ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._owned = maker is None
        self._waiting = deque(self._next() for _ in range(max(ready, before)))

    def __iter__(self) -> Iterator[Result]:
        """Yield the items, and raise the error that ended them."""
        try:
            while made := self._waiting.popleft().result():
                if len(self._waiting) < self._ready:
                    self._waiting.append(self._next())
                yield made.pop()
        finally:
            self.close()

    def close(self) -> None:
        """End the making, and close the items."""
        for future in self._waiting:
            future.cancel()
        wait(self._waiting)
        if self._owned:
            self._maker.shutdown()
        if isinstance(self._items, Generator):
            self._items.close()

    def _next(self) -> Future[list[Result]]:
        return self._maker.submit(lambda: list(islice(self._items, 1)))


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
    yield from Ahead(items, ready)
