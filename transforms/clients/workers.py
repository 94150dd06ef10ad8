"""Do work in other threads: NumPy and Arrow release Python's lock while they compute."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Generic, ParamSpec, TypeVar

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

AT_ONCE = 2


class Workers(Generic[Result]):
    """Runs a few tasks at once, and yields their results in the order of submission."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._threads = ThreadPoolExecutor(at_once)
        self._pending: deque[Future[Result]] = deque()

    def submit(
        self, work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Iterator[Result]:
        """Start a task; if more than `at_once` tasks are now pending, yield the result of the earliest."""
        self._pending.append(self._threads.submit(work, *arguments, **named))
        if len(self._pending) > self._at_once:
            yield self._pending.popleft().result()

    def finish(self) -> Iterator[Result]:
        while self._pending:
            yield self._pending.popleft().result()
        self._threads.shutdown()


class Prefetcher(Generic[Result]):
    """Makes items in a thread while earlier items are in use; the thread starts before the first item is requested."""

    def __init__(
        self, items: Iterator[Result], ready: int = 2, before: int = 0, maker: ThreadPoolExecutor | None = None
    ) -> None:
        self._items, self._ready = items, ready
        self._maker = maker or ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._owned = maker is None
        self._waiting = deque(self._next() for _ in range(max(ready, before)))

    def __iter__(self) -> Iterator[Result]:
        """Yield the items, and raise the error that ended them."""
        try:
            while results := self._waiting.popleft().result():
                if len(self._waiting) < self._ready:
                    self._waiting.append(self._next())
                yield results.pop()
        finally:
            self.close()

    def close(self) -> None:
        for future in self._waiting:
            future.cancel()
        wait(self._waiting)
        if self._owned:
            self._maker.shutdown()
        if isinstance(self._items, Generator):
            self._items.close()

    def _next(self) -> Future[list[Result]]:
        return self._maker.submit(lambda: list(islice(self._items, 1)))


def read_ahead(items: Iterator[Result], ready: int = 2) -> Iterator[Result]:
    """Make items in a separate thread while earlier items are in use.

    The thread ends after the last item, after an error, which is raised here, or when this iterator is closed, which
    closes `items` too.

    >>> list(read_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    yield from Prefetcher(items, ready)
