"""The budget of calls: what is reserved, what waits, what is refused, and how lanes share it."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.services import Echo, feed, stage, task

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.lane_context import Budget
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Prices, Quota
from rankbeam.transforms.records.calls.steps import FailedTask, Usage
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def nothing() -> None:
    """Nothing is stopped."""


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), max_size=30),
    st.floats(0, 20),
)
def test_calls_side_by_side_never_cost_more_than_the_limit_and_one_is_refused_only_where_it_might(
    calls: list[tuple[float, float]], limit: float
) -> None:
    budget, refused = Budget(limit), list[tuple[FailureKind, bool]]()

    async def call(most: float, share: float) -> None:
        try:
            async with budget.reserved(most, nothing) as reservation:
                await asyncio.sleep(0)
                reservation.cost = most * share
        except CallError as error:
            refused.append((error.kind, budget.spent + most > limit))

    async def main() -> None:
        await asyncio.gather(*(call(*arguments) for arguments in calls))

    run(main())
    assert budget.spent <= limit * (1 + 1e-6)
    assert set(refused) <= {(FailureKind.OVER_BUDGET, True)}


@pytest.mark.parametrize(("cost", "left"), [(6, 4), (10, 0), (12, 0)])
def test_a_refusal_says_what_is_left(cost: float, left: float) -> None:
    async def main() -> None:
        budget = Budget(10)
        async with budget.reserved(10, nothing) as reservation:
            reservation.cost = cost
        with pytest.raises(CallError, match=f"may cost 8, and {left} of max_cost is left"):
            async with budget.reserved(8, nothing):
                pass

    run(main())


def test_a_call_waits_for_those_in_flight_and_is_made_when_they_cost_less_than_they_might() -> None:
    async def main() -> None:
        budget, order = Budget(10), list[str]()

        async def later() -> None:
            async with budget.reserved(8, nothing):
                order.append("second")

        async with AsyncExitStack() as stack:
            reservation = await stack.enter_async_context(budget.reserved(9, nothing))
            waiting = asyncio.create_task(later())
            await asyncio.sleep(0)
            order.append("first")
            reservation.cost = 2
        await waiting
        assert order == ["first", "second"]

    run(main())


def test_what_waits_ends_when_nothing_more_is_to_begin() -> None:
    async def main() -> None:
        budget, stopped = Budget(10), list[bool]()

        def refuse() -> None:
            if stopped:
                raise LaneStopped

        async def later() -> None:
            async with budget.reserved(8, refuse):
                pass

        async with budget.reserved(9, nothing):
            waiting = asyncio.create_task(later())
            await asyncio.sleep(0)
            stopped.append(True)
            budget.wake()
            with pytest.raises(LaneStopped):
                await waiting

    run(main())


class Wordy(Echo):
    """A service whose answers take ten tokens, and the first of each question is cut short."""

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return Tokens(output=10)

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        return replace(await super().call(payload, timeout_s, attempt), tokens=Tokens(output=10))


def spent(service: Wordy, budget: float, questions: int, folder: Path, lanes: int = 1) -> list[FailureKind | None]:
    """The failures of some concurrent calls of each lane, if a token costs one."""
    quota = Quota(requests_per_minute=60_000, lanes=lanes, prices=Prices(0.0, 0.0, 1_000_000.0))
    with VirtualClock() as clock:
        fan_out = FanOut(replace(stage({"echo": service}, quota), budget=budget), Ledger(str(folder)), clock)
        for lane in range(lanes):
            fan_out.begin(("pool",), lane, feed([task(f"q{lane}.{number}") for number in range(questions)]))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    return [outcome.failure.kind if isinstance(outcome, FailedTask) else None for outcome in outcomes]


def test_a_call_reserves_the_tokens_that_it_may_take(tmp_path: Path) -> None:
    service = Wordy()
    assert Counter(spent(service, 25.0, 3, tmp_path)) == {None: 2, FailureKind.OVER_BUDGET: 1}
    assert len(service.begun) == 2


class Afterwards(Wordy):
    """A service whose tokens are only known afterwards, such as an application."""

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return Tokens()


@pytest.mark.parametrize("failures", [0, 2])
def test_a_call_whose_tokens_are_only_known_afterwards_reserves_what_others_cost(failures: int, tmp_path: Path) -> None:
    async def fail_first(_question: str, _times: int) -> None:
        if len(service.begun) <= failures:
            raise CallError(FailureKind.UNAVAILABLE, "HTTP 503")

    service = Afterwards(script=fail_first)
    assert Counter(spent(service, 35.0, 10, tmp_path, lanes=3)) == {None: 3, FailureKind.OVER_BUDGET: 27}
    assert len(service.begun) == 3 + failures


@pytest.mark.parametrize(("budget", "attempts"), [(29.0, 1), (30.0, 2)])
def test_an_answer_that_was_cut_short_is_asked_for_with_twice_the_tokens(
    budget: float, attempts: int, tmp_path: Path
) -> None:
    async def script(_: str, time: int) -> str | None:
        return '"cut short"' if time == 1 else None

    def read(answer: object) -> object:
        if answer == "cut short":
            raise CallError(FailureKind.TRUNCATED, "cut short")
        return answer

    service = Wordy(script, read)
    assert spent(service, budget, 1, tmp_path) == [FailureKind.OVER_BUDGET if attempts == 1 else None]
    assert len(service.begun) == attempts


def test_what_one_lane_does_not_need_another_of_its_process_spends(tmp_path: Path) -> None:
    service = Echo()
    quota = Quota(requests_per_minute=6000, lanes=2, price_per_1000=1000)
    with VirtualClock() as clock:
        fan_out = FanOut(replace(stage({"echo": service}, quota), budget=20.0), Ledger(str(tmp_path)), clock)
        for lane, calls in enumerate((2, 30)):
            fan_out.begin(("pool",), lane, feed([task(f"q{lane}.{number}") for number in range(calls)]))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    assert len(service.begun) == 20
    refused = [outcome.failure.kind for outcome in outcomes if isinstance(outcome, FailedTask)]
    assert refused == [FailureKind.OVER_BUDGET] * 12
    assert "12" in "".join(fan_out.warnings())


def test_a_call_without_a_price_is_made_whatever_others_have_cost() -> None:
    async def main() -> None:
        budget = Budget(1.0)
        async with budget.reserved(1.0, nothing) as reservation:
            reservation.cost = 2.0  # a service that counted more tokens than expected
        async with budget.reserved(0.0, nothing):
            assert budget.spent == 2.0

    run(main())


def test_lanes_share_what_earlier_stages_have_left() -> None:
    quota = Quota(requests_per_minute=6000, lanes=4, price_per_1000=1000)
    whole = replace(stage({"echo": Echo()}, quota), budget=10.0)
    left = whole.after([Usage("pool", calls=2, ledger_hits=7)])
    assert left.budget_of_lane(("pool",)) == pytest.approx((10 - 2) / 4)
    assert whole.after([Usage("pool", calls=20, ledger_hits=0)]).budget_of_lane(("pool",)) == 0
