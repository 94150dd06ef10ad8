"""Asking until there is an answer, on a virtual clock: hours of waiting take no time."""

import gc
import ssl
from collections.abc import Iterator

import pytest
from support.flink_rest import flink, serving

from rankbeam.pipelines.portable.engine import FlinkJob
from rankbeam.pipelines.portable.service import PAUSE_S, poll_until
from rankbeam.transforms.clients.virtual_clock import VirtualClock


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


@pytest.mark.parametrize("after_s", [0.0, 0.1, 3600.0])
def test_the_first_answer_is_taken(clock: VirtualClock, after_s: float) -> None:
    began, attempts = clock.monotonic(), []

    def ask() -> str | None:
        attempts.append(clock.monotonic() - began)
        return "FINISHED" if attempts[-1] >= after_s else None

    assert poll_until(ask, 7200.0, clock) == "FINISHED"
    assert after_s <= clock.monotonic() - began <= after_s + PAUSE_S
    assert len(attempts) == 1 + after_s // PAUSE_S + bool(after_s % PAUSE_S)


@pytest.mark.parametrize("within_s", [0.0, 0.1, 90.0])
def test_it_ends_in_time_without_an_answer(clock: VirtualClock, within_s: float) -> None:
    began, attempts = clock.monotonic(), []

    def ask() -> None:
        attempts.append(clock.monotonic() - began)

    assert poll_until(ask, within_s, clock) is None
    assert clock.monotonic() - began == pytest.approx(within_s, abs=1e-6)
    assert attempts[0] == 0.0


def test_an_error_of_the_engine_is_raised(clock: VirtualClock) -> None:
    def ask() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        poll_until(ask, 1.0, clock)


def test_hours_of_polling_flink_take_no_memory() -> None:
    """A client of HTTP has 1.4 MB of certificates, and a command hardly ever collects garbage."""
    with serving(flink("RUNNING")) as address:
        polled = FlinkJob(address, "f1")
        polled.state()
        gc.disable()
        try:
            before = certificates()
            for _ in range(20):
                polled.state()
            assert certificates() == before
        finally:
            gc.enable()


def certificates() -> int:
    return sum(isinstance(thing, ssl.SSLContext) for thing in gc.get_objects())
