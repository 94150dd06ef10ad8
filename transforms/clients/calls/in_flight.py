"""The calls of a lane that are in flight."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class InFlight:
    """Runs calls concurrently. A call is paid for once it is begun, so an error of one does not cancel the others."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._calls: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def begin(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Wait until all calls have ended.

        Raises:
            Exception: the first exception of a call, if any.
        """
        while self._calls:
            await asyncio.wait(self._calls)
        if self._errors:
            raise self._errors[0]

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        error = asyncio.CancelledError("a call was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)
            self._stop()
