"""Runs that another process cancels: their lanes begin no further call, and keep what is paid for."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.services import FAST, Echo, feed, stage, task

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import InputError

TASKS = [task(f"q{number}") for number in range(500)]
TEN_A_SECOND = Quota(requests_per_minute=600, concurrent_calls=10)
RUN, SECOND = Owner("r1", "2026-01-02T03:04:05"), Owner("r1", "2026-01-02T04:05:06")


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def drained(service: Echo, ledger: Ledger, quota: Quota, clock: VirtualClock) -> None:
    fan_out = FanOut(stage({"echo": service}, quota), ledger, clock)
    fan_out.begin(("pool",), 0, feed(TASKS))
    for _ in fan_out.outcomes():
        pass


def test_a_cancelled_run_begins_no_further_call_and_keeps_every_answer(clock: VirtualClock, tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"), RUN)

    async def script(question: str, _: int) -> str | None:
        if question == "q30":
            await asyncio.to_thread(ledger.request_stop)
        await asyncio.sleep(0.5)
        return None

    service = Echo(script)
    with pytest.raises(InputError, match="the run was cancelled"):
        drained(service, ledger, TEN_A_SECOND, clock)
    assert len(service.begun) <= 31 + 20  # a look every second, and a second until it is made
    assert service.open == 0
    answers = list(ledger.find({task.item.key: task.item.depth for task in TASKS}))
    assert len(answers) == len(service.begun)

    service = Echo()
    with pytest.raises(InputError, match="the run was cancelled"):  # an engine may start the lane again
        drained(service, ledger, FAST, clock)
    assert not service.begun


def test_the_request_is_for_one_execution_and_stays(clock: VirtualClock, tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"), RUN)
    ledger.request_stop()
    ledger.request_stop()
    service = Echo()
    drained(service, Ledger(ledger.folder, SECOND), FAST, clock)
    assert len(service.begun) == len(TASKS)
    assert ledger.is_stop_requested()
