"""Lanes that run together share a connection and a circuit breaker for each service: what one learns, all know."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.services import Echo, Script, failing, run_all, task

from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Task
from rankbeam.transforms.records.errors import CallError, FailureKind

QUOTA = Quota(requests_per_minute=6000)
LANES = [[task(f"q{lane}.{number}") for number in range(200)] for lane in range(4)]
MOST = 60


class Counting(Echo):
    """A service that counts its connections."""

    def __init__(self, script: Script | None = None) -> None:
        super().__init__(*(() if script is None else (script,)))
        self.connected = self.closed = 0

    async def connect(self) -> Connection:
        await asyncio.sleep(0.1)
        self.connected += 1
        return await super().connect()

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def outcomes_of(
    service: Echo, lanes: list[list[Task]], folder: Path, clock: VirtualClock
) -> list[CallAnswer | FailedTask]:
    return run_all({"echo": service}, lanes, folder, QUOTA, clock)[0]


@pytest.mark.campaign
def test_a_dead_service_costs_four_lanes_no_more_than_one(
    clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = Echo(failing(FailureKind.UNAVAILABLE, times=99))
    with caplog.at_level(logging.WARNING):
        outcomes = outcomes_of(service, LANES, tmp_path, clock)
    assert len(outcomes) == 800
    assert all(isinstance(outcome, FailedTask) for outcome in outcomes)
    assert len(service.begun) <= MOST
    assert sum("attempts in a row failed" in record.message for record in caplog.records) == 1


@pytest.mark.long
def test_every_lane_goes_on_when_one_of_them_is_answered_again(clock: VirtualClock, tmp_path: Path) -> None:
    async def script(_: str, __: int) -> str | None:
        if 2 <= asyncio.get_running_loop().time() < 40:
            raise CallError(FailureKind.UNAVAILABLE, "it is down")
        return None

    service = Echo(script)
    outcomes = outcomes_of(service, LANES, tmp_path, clock)
    assert sum(isinstance(outcome, CallAnswer) for outcome in outcomes) == 800
    assert sum(2 <= at < 40 for _, at in service.begun) <= MOST
    assert clock.monotonic() < 120


@pytest.mark.long
def test_lanes_share_a_connection_which_the_last_of_them_closes(clock: VirtualClock, tmp_path: Path) -> None:
    service = Counting()
    outcomes = outcomes_of(service, LANES, tmp_path, clock)
    assert len(outcomes) == len(service.begun) == 800
    assert (service.connected, service.closed) == (1, 1)
