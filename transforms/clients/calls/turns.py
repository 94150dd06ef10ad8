"""Turns: what may begin when, in one lane. A kernel says how long to wait; here is where somebody waits."""

import asyncio
import time
from collections.abc import Callable

from rankbeam.transforms.kernels.pacing import Pacer, lane_pacer
from rankbeam.transforms.records.calls.quota import Quota

_LOOK_AGAIN_S = 0.1


class Stopped(Exception):
    """Nothing more is to begin; raised to whoever waits for something to begin."""


class Turns:
    """Gives out turns to make a call, first come, first served, at the pace of one lane of a quota.

    Whoever takes a turn holds one of the lane's slots until it is given back, so that no more calls are in the air
    than the quota allows.

    Args:
        quota: of all lanes together.
        lane: which one, from 0.
        clock: in seconds.
        is_held: whether nothing may begin just now, for a reason other than the pace.

    Attributes:
        waited_s: how long there was work that had to wait for its turn.
    """

    def __init__(
        self,
        quota: Quota,
        lane: int,
        clock: Callable[[], float] = time.monotonic,
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        self._pacer: Pacer = lane_pacer(quota.requests_per_minute, lane, quota.lanes)
        self._clock, self._is_held = clock, is_held
        self._slots = asyncio.Semaphore(quota.slots(lane))
        self._first_in_line = asyncio.Lock()
        self._stop = asyncio.Event()
        self.waited_s = 0.0

    async def take(self) -> None:
        """Wait for a slot and then for a turn; the call is to begin at once.

        Raises:
            Stopped: nothing more is to begin.
        """
        await self._slots.acquire()
        try:
            async with self._first_in_line:
                while (wait_s := self._wait_s()) > 0:
                    began = self._clock()
                    await self.pause(wait_s)
                    self.waited_s += self._clock() - began
                self.refuse_when_stopped()
                self._pacer.spend(self._clock())
        except BaseException:
            self._slots.release()
            raise

    def _wait_s(self) -> float:
        return max(self._pacer.wait_s(self._clock()), _LOOK_AGAIN_S if self._is_held() else 0.0)

    def give_back(self) -> None:
        """The call has ended, one way or the other."""
        self._slots.release()

    def push_back(self) -> None:
        """The service refused a call for its rate."""
        self._pacer.push_back(self._clock())

    async def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            Stopped: nothing more is to begin.
        """
        self.refuse_when_stopped()
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return
        raise Stopped

    def stop(self) -> None:
        """Let nothing more begin; called on the loop."""
        self._stop.set()

    def refuse_when_stopped(self) -> None:
        """Raise `Stopped` once `stop` was called."""
        if self._stop.is_set():
            raise Stopped
