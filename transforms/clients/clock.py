"""Time for the fan-out and the ledger: a clock, the event loop of calls, and threads that wait.

`SystemClock` is the machine's clock. Tests use a `VirtualClock`, with which hours of waiting take no time.
"""

import asyncio
import functools
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time, and everything that waits for it."""

    def monotonic(self) -> float:
        """Seconds that never decrease."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that makes calls; it runs in its own thread."""

    def condition(self) -> threading.Condition:
        """A condition for threads to wait for, with timeouts by this clock."""

    def start(self, work: Callable[[], None], name: str) -> threading.Thread:
        """Start a thread that ends with the process."""

    def at_work(self) -> AbstractContextManager[None]:
        """Mark the calling thread as working, except while it waits for a `condition`."""


class SystemClock:
    """The clock of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of this process; it is started when it is first needed, and runs as long as the process."""
        with _lock:
            return _loop_of(os.getpid())

    def condition(self) -> threading.Condition:
        return threading.Condition()

    def start(self, work: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()


SYSTEM_CLOCK = SystemClock()
_GRACE_S = 5.0  # seconds after a time limit in which a loop that was stopped may read replies

_LATE_S = 0.5
_lock = threading.Lock()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError in the block after this time.

    If the loop was stopped meanwhile, as on a laptop that slept, it first reads the replies that have arrived.
    """
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    async with asyncio.timeout(None) as limit:

        def expire() -> None:
            limit.reschedule(loop.time() + (_GRACE_S if loop.time() - due > _LATE_S else 0.0))

        timer = loop.call_at(due, expire)
        try:
            yield
        finally:
            timer.cancel()


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it was set in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


@functools.cache
def _loop_of(pid: int) -> asyncio.AbstractEventLoop:
    del pid  # a forked process has its parent's memory, but not its threads
    loop = asyncio.new_event_loop()
    SYSTEM_CLOCK.start(loop.run_forever, "rankbeam-calls")
    return loop
