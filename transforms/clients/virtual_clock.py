"""A clock for tests: time advances to the next awaited moment once no work is left before it.

The event loop of calls, and threads that wait for a `condition` with a timeout, share one time. Time stops while a
callback of the loop is ready, while the loop's work in a thread is unfinished, and while a thread of the clock works;
then it jumps to the earliest timer or timeout. So the order and times of events do not depend on the machine.
"""

import asyncio
import heapq
import itertools
import selectors
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

_LEAST_S = 1e-9
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(eq=False)
class _Sleeper:
    """A thread that waits for a condition."""

    condition: "_Condition"
    is_counted: bool
    has_timed_out: bool = False
    is_woken: bool = False


@dataclass
class _Time:
    """The time that the loop and all threads share."""

    seconds: float = 0.0
    wake_loop: Callable[[], None] = lambda: None
    _at_work: int = 0
    _sleepers: list[tuple[float, int, _Sleeper]] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.local = field(default_factory=threading.local)

    @property
    def is_this_thread_at_work(self) -> bool:
        return getattr(self._thread, "is_at_work", False)

    @contextmanager
    def this_thread_at_work(self) -> Iterator[None]:
        """Mark the calling thread as one of the threads that `begin` counted."""
        before, self._thread.is_at_work = self.is_this_thread_at_work, True
        try:
            yield
        finally:
            self._thread.is_at_work = before

    def begin(self, threads: int = 1) -> None:
        with self._lock:
            self._at_work += threads

    def end(self) -> None:
        with self._lock:
            self._at_work -= 1
        self.wake_loop()

    def sleep(self, sleeper: _Sleeper, timeout_s: float | None) -> None:
        """Register a thread that begins to wait."""
        with self._lock:
            if timeout_s is not None:
                until = self.seconds + max(_LEAST_S, timeout_s)  # a smaller step could round to zero
                heapq.heappush(self._sleepers, (until, next(self._numbers), sleeper))
        if sleeper.is_counted:
            self.end()
        else:
            self.wake_loop()

    def advance(self, timer_s: float | None) -> bool:
        """Go to the next awaited moment unless work is left; return whether that moment is the loop's timer."""
        with self._lock:
            while self._sleepers and self._sleepers[0][2].is_woken:
                heapq.heappop(self._sleepers)
            if self._at_work:
                return False
            timer = None if timer_s is None else self.seconds + timer_s
            if not self._sleepers or (timer is not None and timer < self._sleepers[0][0]):
                self.seconds = self.seconds if timer is None else timer
                return timer is not None
            self.seconds, _, sleeper = heapq.heappop(self._sleepers)
            self._at_work += 1
        sleeper.condition.time_out(sleeper)
        self.end()
        return False


class _Condition(threading.Condition):
    """A condition with timeouts in virtual time. A notified thread counts as working from that moment."""

    def __init__(self, shared: _Time) -> None:
        super().__init__()
        self._shared = shared
        self._asleep: list[_Sleeper] = []

    def wait(self, timeout: float | None = None) -> bool:
        sleeper = _Sleeper(self, self._shared.is_this_thread_at_work)
        self._asleep.append(sleeper)
        self._shared.sleep(sleeper, timeout)
        super().wait()
        return not sleeper.has_timed_out

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else self._shared.seconds + timeout
        while not (result := predicate()):
            remaining = None if until is None else until - self._shared.seconds
            if remaining is not None and remaining <= 0:
                break
            self.wait(remaining)
        return result

    def notify(self, n: int = 1) -> None:
        woken, self._asleep = self._asleep[:n], self._asleep[n:]
        for sleeper in woken:
            sleeper.is_woken = True
        self._shared.begin(sum(sleeper.is_counted for sleeper in woken))
        super().notify(n)

    def notify_all(self) -> None:
        self.notify(len(self._asleep))

    def time_out(self, sleeper: _Sleeper) -> None:
        with self:
            sleeper.has_timed_out = not sleeper.is_woken
            self.notify_all()


class _Selector(selectors.DefaultSelector):
    """Advances time to the next timer instead of waiting for it."""

    def __init__(self, shared: _Time) -> None:
        super().__init__()
        self._shared = shared

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0 or self._shared.advance(timeout):
            return ready
        blocked: list[tuple[selectors.SelectorKey, int]] = super().select(None)
        return blocked


class _Loop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; time stops while its work in threads is unfinished."""

    def __init__(self, shared: _Time) -> None:
        super().__init__(_Selector(shared))
        self._shared = shared

    def time(self) -> float:
        return self._shared.seconds

    def run_in_executor(  # type: ignore[override] # its arguments are typed by a TypeVarTuple
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        def work() -> Any:
            with self._shared.this_thread_at_work():
                return func(*args)

        self._shared.begin()
        future = super().run_in_executor(executor, work)
        future.add_done_callback(lambda _: self._shared.end())
        return future


class VirtualClock:
    """A `Clock` for tests, used as a context manager: its loop runs inside the block.

    >>> async def wait() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> with VirtualClock() as clock:
    ...     asyncio.run_coroutine_threadsafe(wait(), clock.loop()).result()
    3600.0
    """

    def __init__(self) -> None:
        self._shared = _Time()
        self._thread: threading.Thread | None = None
        self._loop = _Loop(self._shared)
        self._shared.wake_loop = self._wake_loop

    def __enter__(self) -> "VirtualClock":
        self._thread = threading.Thread(target=self._loop.run_forever, name="virtual-clock", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None  # noqa: S101  it was entered
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _wake_loop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(lambda: None)

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._shared.seconds

    def now(self) -> datetime:
        return _START + timedelta(seconds=self._shared.seconds)

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._thread is None:
            raise RuntimeError("the virtual clock is not running: use `with VirtualClock() as clock:`")
        return self._loop

    def condition(self) -> threading.Condition:
        return _Condition(self._shared)

    def start(self, work: Callable[[], None], name: str) -> threading.Thread:
        """Start a thread that counts as working, except while it waits for a condition."""

        def run() -> None:
            try:
                with self._shared.this_thread_at_work():
                    work()
            finally:
                self._shared.end()

        self._shared.begin()
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Stop time during the block, except while the thread waits for a condition."""
        self._shared.begin()
        try:
            with self._shared.this_thread_at_work():
                yield
        finally:
            self._shared.end()
