"""Services that are down, from the start, in the middle or for one query: their costs and messages."""

import asyncio
import json
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.services import Echo, Script, failing, make, run_all, taking, task

from rankbeam.transforms.clients.ledger.survey import clear
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind

QUOTA = Quota(requests_per_minute=1500)
QUERIES = 300
"""Twelve seconds of the quota."""
MOST = 60
OF_A_QUERY = [FailureKind.INVALID, FailureKind.BLOCKED, FailureKind.TRUNCATED, FailureKind.MALFORMED]


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def down(when: Callable[[float], bool], kind: FailureKind = FailureKind.UNAVAILABLE, latency_s: float = 0.0) -> Script:
    """A script by which the service is down at some times."""

    async def script(_: str, __: int) -> str | None:
        await asyncio.sleep(latency_s)
        if when(asyncio.get_running_loop().time()):
            raise CallError(kind, "it is down")
        return None

    return script


def failures(outcomes: list[CallAnswer | FailedTask]) -> list[Failure]:
    return [outcome.failure for outcome in outcomes if isinstance(outcome, FailedTask)]


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [failing(FailureKind.UNAVAILABLE, times=99), failing(FailureKind.QUOTA, times=99), taking(3600)],
    ids=["refuses", "allows nothing", "hangs"],
)
@pytest.mark.parametrize("concurrent_calls", [10, *in_campaigns(None)])
def test_a_service_that_is_dead_from_the_start_costs_sixty_attempts(
    script: Script, concurrent_calls: int | None, clock: VirtualClock, tmp_path: Path
) -> None:
    service = Echo(script)
    quota = Quota(requests_per_minute=1500, concurrent_calls=concurrent_calls)
    outcomes = make([task(f"q{i}") for i in range(QUERIES)], service, tmp_path, quota, clock)
    assert len(failures(outcomes)) == len(outcomes) == QUERIES
    assert len(service.begun) <= MOST
    assert clock.monotonic() < 800
    not_asked = [failure for failure in failures(outcomes) if failure.attempts == 0]
    assert len(not_asked) > QUERIES - MOST
    assert all(failure.message.startswith("not asked: ") for failure in not_asked)


def test_a_service_that_only_refuses_for_good_is_not_waited_for(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.PERMISSION, times=99))
    outcomes = make([task(f"q{i}") for i in range(500)], service, tmp_path, QUOTA, clock)
    assert Tally(failure.attempts for failure in failures(outcomes)) == {0: 480, 1: 20}
    assert {failure.kind for failure in failures(outcomes)} == {FailureKind.PERMISSION}
    assert clock.monotonic() < 2


@pytest.mark.long
@pytest.mark.parametrize("latency_s", [2.0, *in_campaigns(0.1)])
def test_a_service_that_dies_in_the_middle_costs_sixty_attempts_more(
    latency_s: float, clock: VirtualClock, tmp_path: Path
) -> None:
    service = Echo(down(lambda now: now >= 8, latency_s=latency_s))
    outcomes = make([task(f"q{i}") for i in range(QUERIES)], service, tmp_path, QUOTA, clock)
    after = sum(at >= 8 for _, at in service.begun)
    assert after <= MOST
    assert len(outcomes) - len(failures(outcomes)) == sum(at < 8 - latency_s for _, at in service.begun)
    assert clock.monotonic() < 800


@pytest.mark.long
def test_a_service_that_recovers_answers_everything(
    clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = Echo(down(lambda now: 8 <= now < 188, latency_s=0.5))
    outcomes = make([task(f"q{i}") for i in range(QUERIES)], service, tmp_path, QUOTA, clock)
    assert not failures(outcomes)
    reports = ["echo: 20 attempts in a row failed, the last with: it is down", "echo: the service answers again"]
    assert [record.message.startswith(report) for record, report in zip(caplog.records, reports, strict=True)] == [
        True
    ] * 2
    assert sum(8 <= at < 188 for _, at in service.begun) <= MOST
    assert clock.monotonic() < QUERIES / 25 + 180 + 70  # the longest pause before a probe is a minute


def test_a_quota_of_the_day_that_is_spent_ends_the_run_at_once(clock: VirtualClock, tmp_path: Path) -> None:
    async def script(_: str, __: int) -> str | None:
        if len(service.begun) > 100:
            raise CallError(FailureKind.QUOTA, "100 a day", retry_after_s=8 * 3600)
        return None

    service = Echo(script)
    outcomes = make([task(f"q{i}") for i in range(QUERIES)], service, tmp_path, QUOTA, clock)
    assert len(service.begun) == 101
    assert {failure.kind for failure in failures(outcomes)} == {FailureKind.QUOTA}
    assert Tally(failure.attempts for failure in failures(outcomes)) == {0: QUERIES - 101, 1: 1}
    assert clock.monotonic() < 15


def test_a_quota_that_is_used_up_ends_the_calls_of_every_service_of_its_pool(tmp_path: Path) -> None:
    async def script(_: str, __: int) -> str | None:
        if len(services["one"].begun) == 3:
            raise CallError(FailureKind.QUOTA, "per day", stops_pool=True)
        return None

    services = {"one": Echo(script), "other": Echo()}
    tasks = [task(f"{name} {i}", service=name) for i in range(20) for name in services]
    outcomes, _ = run_all(services, [tasks], tmp_path, Quota(requests_per_minute=60_000, concurrent_calls=1))
    assert [len(service.begun) for service in services.values()] == [3, 2]
    assert Tally((failure.kind, failure.attempts, failure.message) for failure in failures(outcomes)) == {
        (FailureKind.QUOTA, 1, "per day"): 1,
        (FailureKind.QUOTA, 0, "not asked: its quota is exhausted for now: per day"): 40 - 4 - 1,
    }


@pytest.mark.parametrize("kind", [FailureKind.INVALID, FailureKind.BLOCKED, FailureKind.TRUNCATED])
def test_queries_that_are_refused_keep_no_other_from_being_asked(kind: FailureKind, tmp_path: Path) -> None:
    async def script(question: str, _: int) -> str | None:
        if int(question[1:]) < 76:
            raise CallError(kind, f"no {question}")
        return None

    outcomes = make([task(f"q{i}") for i in range(80)], Echo(script), tmp_path, QUOTA)
    assert len(failures(outcomes)) == 76
    assert min(failure.attempts for failure in failures(outcomes)) >= 1


def test_queries_that_are_not_found_by_a_service_that_has_answered_keep_no_other_from_being_asked(
    tmp_path: Path,
) -> None:
    """In the first run it answered; the second one finds that answer in the ledger, and 76 that fail for good."""

    async def script(question: str, _: int) -> str | None:
        if question != "before" and int(question[1:]) < 76:
            raise CallError(FailureKind.NOT_FOUND, "gone")
        return None

    make([task("before")], Echo(script), tmp_path, QUOTA)
    outcomes = make([task("before"), *(task(f"q{i}") for i in range(80))], Echo(script), tmp_path, QUOTA)
    assert len(failures(outcomes)) == 76
    assert {failure.attempts for failure in failures(outcomes)} == {1}


@pytest.mark.long
def test_answers_that_are_slower_than_refusals_do_not_count_as_missing(tmp_path: Path) -> None:
    async def script(question: str, _: int) -> str | None:
        if int(question[1:]) % 3 == 0:
            raise CallError(FailureKind.INVALID, "too long")
        await asyncio.sleep(5)
        return None

    service = Echo(script)
    outcomes = make([task(f"q{i}") for i in range(300)], service, tmp_path, QUOTA)
    assert len(service.begun) == 300
    assert len(failures(outcomes)) == 100


@pytest.mark.long
def test_a_service_that_is_down_keeps_no_other_one_of_its_pool_from_being_asked(tmp_path: Path) -> None:
    services = {"up": Echo(), "down": Echo(failing(FailureKind.UNAVAILABLE, times=99))}
    tasks = [task(f"{name} {i}", service=name) for i in range(120) for name in services]
    outcomes, _ = run_all(services, [tasks], tmp_path, QUOTA)
    assert len(services["up"].begun) == 120
    assert len(failures(outcomes)) == 120
    assert len(services["down"].begun) <= MOST


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [FailureKind.NOT_FOUND, FailureKind.PERMISSION, FailureKind.UNAVAILABLE, FailureKind.INVALID]
)
def test_every_run_asks_what_earlier_ones_did_not_until_all_is_asked(kind: FailureKind, tmp_path: Path) -> None:
    """76 queries fail for good, and 4 behind them do not: the first 76 must not be asked first in every run."""

    async def script(question: str, _: int) -> str | None:
        if int(question[1:]) < 76:
            raise CallError(kind, "no")
        return None

    service, answered, queries = Echo(script), [0], set[str]()
    quota = Quota(requests_per_minute=1500, give_up_after_s=5.0)
    while answered[-1] < 4:
        before, known = len(service.begun), len(queries)
        outcomes = make([task(f"q{i}") for i in range(80)], service, tmp_path, quota)
        answered.append(80 - len(failures(outcomes)))
        queries |= {question for question, _ in service.begun}
        assert answered[-1] > 0 or (len(service.begun) - before <= MOST and len(queries) >= known + 10)
    assert len(answered) <= 9


def test_a_run_that_gives_nothing_up_forgets_what_was_asked_in_vain(tmp_path: Path) -> None:
    down = Echo(failing(FailureKind.PERMISSION, times=99))
    make([task(f"q{i}") for i in range(40)], down, tmp_path, QUOTA)
    assert [len(json.loads(path.read_text())) for path in tmp_path.glob("uses/tried-*")] == [20]
    up = Echo()
    make([task(f"q{i}") for i in range(40)], up, tmp_path, QUOTA)
    assert [question for question, _ in up.begun] == [f"q{i}" for i in (*range(20, 40), *range(20))]
    assert [json.loads(path.read_text()) for path in tmp_path.glob("uses/tried-*")] == [[]]


def test_clearing_a_ledger_forgets_what_was_asked_in_vain(tmp_path: Path) -> None:
    make([task(f"q{i}") for i in range(40)], Echo(failing(FailureKind.PERMISSION, times=99)), tmp_path, QUOTA)
    clear(str(tmp_path))
    assert not list(tmp_path.glob("uses/*"))
