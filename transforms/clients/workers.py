"""Do work in other threads: NumPy and Arrow release Python's lock while they compute."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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


def read_ahead(items: Iterator[Result], ready: int = 2) -> Iterator[Result]:
    """Make items in a separate thread while earlier items are in use.

    The thread ends after the last item, after an error, which is raised here, or when this iterator is closed, which
    closes `items` too.

    >>> list(read_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    maker = ThreadPoolExecutor(1, thread_name_prefix="ahead")

    def make_next() -> Future[list[Result]]:
        return maker.submit(lambda: list(islice(items, 1)))

    waiting = deque(make_next() for _ in range(ready))
    try:
        while results := waiting.popleft().result():
            waiting.append(make_next())
            yield results.pop()
    finally:
        maker.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()
