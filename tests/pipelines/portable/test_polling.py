"""Asking until there is an answer, on a virtual clock: hours of waiting take no time."""

from collections.abc import Iterator

import pytest

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
