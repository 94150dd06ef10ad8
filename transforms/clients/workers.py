"""Work done beside the thread that asks for it: NumPy and Arrow let go of Python's lock where the work is done."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
