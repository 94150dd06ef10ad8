"""The calls of a lane that were begun and have not ended."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class InFlight:
    """Runs calls side by side. They are paid for once they are begun: whatever happens to one, the others end.

    Args:
        stop: called when one raises an error: no further call is to begin.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._calls: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def begin(self, call: Coroutine[Any, Any, None]) -> None:
        """Begin a call."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Wait until all calls have ended.

        Raises:
            Exception: whatever the first of them raised that raised anything.
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
