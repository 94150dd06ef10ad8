"""The fan-out: every call has one outcome, is paid for once, at the pace of its quota, and ends."""

import asyncio
from collections import Counter as Tally
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from support.services import FAST, Echo, Script, WorkerGone, failing, feed, make, run_all, stage, subjects, taking, task

from rankbeam.transforms.clients.calls import fanout, lane_context
from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.model_connection import RequestPart
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, SearchDepth
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def test_every_call_is_answered_once(tmp_path: Path) -> None:
    service = Echo()
    outcomes = make([task(f"q{i}") for i in range(300)], service, tmp_path)
    assert Tally(name for outcome in outcomes for name in subjects(outcome)) == {f"q{i}": 1 for i in range(300)}
    assert len(service.begun) == 300


def test_equal_calls_are_made_once_and_everyone_is_answered(tmp_path: Path) -> None:
    service = Echo()
    calls = [task("same", "first"), task("same", "second"), task("other")]
    outcomes = make(calls, service, tmp_path)
    assert sorted(question for question, _ in service.begun) == ["other", "same"]
    assert sorted(name for outcome in outcomes for name in subjects(outcome)) == ["first", "other", "second"]


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind.is_transient])
def test_what_may_pass_is_tried_again(kind: FailureKind, tmp_path: Path) -> None:
    service = Echo(failing(kind, times=2))
    outcomes = make([task("q")], service, tmp_path)
    assert [type(outcome) for outcome in outcomes] == [CallAnswer]
    assert len(service.begun) == 3


FINAL = [kind for kind in FailureKind if not kind.is_transient and kind is not FailureKind.TRUNCATED]


@pytest.mark.parametrize("kind", FINAL)
def test_what_will_not_pass_is_not(kind: FailureKind, tmp_path: Path) -> None:
    service = Echo(failing(kind, times=2))
    (outcome,) = make([task("q")], service, tmp_path)
    assert isinstance(outcome, FailedTask)
    assert (outcome.failure.kind, outcome.failure.attempts, outcome.failure.query_id) == (kind, 1, "q")
    assert len(service.begun) == 1


def test_attempts_are_bounded(tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.UNAVAILABLE, times=99))
    quota = Quota(requests_per_minute=60_000, attempts=3)
    (outcome,) = make([task("q")], service, tmp_path, quota)
    assert isinstance(outcome, FailedTask)
    assert (outcome.failure.kind, outcome.failure.attempts) == (FailureKind.UNAVAILABLE, 3)
    assert len(service.begun) == 3


def refusing_the_form(times: int) -> Script:
    async def script(_: str, time: int) -> str | None:
        if time <= times:
            raise CallError(FailureKind.INVALID, "no schemas", changes_form=True)
        return None

    return script


def test_another_form_is_an_attempt_at_the_pace_that_the_limit_does_not_count(
    clock: VirtualClock, tmp_path: Path
) -> None:
    service = Echo(refusing_the_form(times=1))
    quota = Quota(requests_per_minute=60, attempts=1)
    (outcome,) = make([task("q")], service, tmp_path, quota, clock)
    assert isinstance(outcome, CallAnswer)
    (_, first), (_, second) = service.begun
    assert 1.0 <= second - first <= 1.02  # calls may arrive a little closer than they were sent


def test_a_call_changes_its_form_at_most_once_for_each_part_that_may_be_refused(tmp_path: Path) -> None:
    service = Echo(refusing_the_form(times=99))
    (outcome,) = make([task("q")], service, tmp_path)
    assert isinstance(outcome, FailedTask)
    assert (outcome.failure.kind, outcome.failure.attempts) == (FailureKind.INVALID, len(RequestPart) + 1)


def test_calls_attempts_and_failures_are_counted(tmp_path: Path) -> None:
    async def script(question: str, time: int) -> str | None:
        if question != "good" and time < 3:
            raise CallError(FailureKind.INVALID if question == "bad" else FailureKind.UNAVAILABLE, "no")
        return None

    _, fan_out = run_all({"echo": Echo(script)}, [[task("good"), task("again"), task("bad")]], tmp_path)
    assert {counter: number for (counter, _), number in fan_out.totals().items() if number} == {
        Counter.CALLS_PLANNED: 3,
        Counter.CALLS_MADE: 5,
        Counter.RETRIES: 2,
        Counter.CALLS_DONE: 3,
        Counter.CALLS_FAILED: 1,
    }


def test_counts_are_reported_once(tmp_path: Path) -> None:
    _, fan_out = run_all({"echo": Echo()}, [[task("a"), task("b")]], tmp_path)
    assert fan_out.counted() == {
        (counter, "pool"): 2 for counter in (Counter.CALLS_PLANNED, Counter.CALLS_MADE, Counter.CALLS_DONE)
    }
    assert fan_out.counted() == {}


def test_the_ledger_has_when_a_call_was_answered_and_how_long_its_attempts_took(
    clock: VirtualClock, tmp_path: Path
) -> None:
    async def script(_: str, time: int) -> str | None:
        await asyncio.sleep(0.25 * time)
        if time == 1:
            raise CallError(FailureKind.UNAVAILABLE, "down")
        return None

    began = clock.now()
    call = task("q").item
    make([task("q")], Echo(script), tmp_path, clock=clock)
    (entry,) = Ledger(str(tmp_path)).find({call.key: call.depth})
    assert (entry.attempts, entry.seconds, entry.service) == (2, pytest.approx(0.75), "echo")
    assert timedelta(seconds=1) <= entry.finished_at - began < timedelta(seconds=5)  # with a pause between them


def test_the_service_says_when_to_ask_again(tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.QUOTA, times=1, retry_after_s=1.5))
    make([task("q")], service, tmp_path)
    (_, first), (_, second) = service.begun
    assert second - first >= 1.5


def test_for_each_slot_four_calls_may_pause_before_another_attempt(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.QUOTA, times=1, retry_after_s=30.0))
    quota = Quota(requests_per_minute=60_000, concurrent_calls=2)
    make([task(f"q{number}") for number in range(25)], service, tmp_path, quota, clock)
    assert [sum(at // 30 == part for _, at in service.begun) for part in range(4)] == [10, 20, 15, 5]


def test_a_service_that_wants_too_long_a_pause_is_not_waited_for(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.QUOTA, times=1, retry_after_s=3600))
    (outcome,) = make([task("q")], service, tmp_path, clock=clock)
    assert isinstance(outcome, FailedTask)
    assert outcome.failure.attempts == 1
    assert clock.monotonic() < 1


def test_a_call_that_hangs_ends_at_its_time_limit(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(taking(3600))
    quota = Quota(requests_per_minute=60_000, timeout_s=20, attempts=2)
    outcomes = make([task(f"q{i}") for i in range(5)], service, tmp_path, quota, clock)
    failures = {
        (outcome.failure.kind, outcome.failure.message) for outcome in outcomes if isinstance(outcome, FailedTask)
    }
    assert failures == {(FailureKind.TIMEOUT, "no answer within 20 s (timeout_s of its quota)")}
    assert len(outcomes) == 5
    assert 40.25 < clock.monotonic() < 42


def test_a_malformed_answer_is_asked_for_again_and_not_kept(tmp_path: Path) -> None:
    async def script(_: str, time: int) -> str | None:
        return "{" if time == 1 else None

    service = Echo(script)
    assert [type(outcome) for outcome in make([task("q")], service, tmp_path)] == [CallAnswer]
    make([task("q")], service, tmp_path)
    assert len(service.begun) == 2


def test_a_second_run_makes_no_call(tmp_path: Path) -> None:
    calls = [task(f"q{i}") for i in range(50)]
    first, second = Echo(), Echo()
    answers = make(calls, first, tmp_path)
    again, fan_out = run_all({"echo": second}, [calls], tmp_path)
    assert not second.begun
    assert {answer.subjects: answer for answer in again} == {answer.subjects: answer for answer in answers}
    assert fan_out.totals()[Counter.LEDGER_HITS, "pool"] == 50


def test_answers_of_the_ledger_are_read_as_outcomes_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_context, "_MOST", 5)
    calls, again = [task(f"q{i}") for i in range(400)], Echo()
    make(calls, Echo(), tmp_path)
    assert len(make(calls, again, tmp_path)) == 400
    assert not again.begun


def test_a_second_run_that_finds_everything_does_not_connect(tmp_path: Path) -> None:
    class Unreachable(Echo):
        async def connect(self) -> Echo:
            raise InputError("no credentials")

    make([task("q")], Echo(), tmp_path)
    assert len(make([task("q")], Unreachable(), tmp_path)) == 1
    with pytest.raises(InputError, match="no credentials"):
        make([task("other")], Unreachable(), tmp_path)


def test_an_answer_of_farther_reach_serves_a_lesser_call_and_not_the_reverse(tmp_path: Path) -> None:
    make([task("q", depth=SearchDepth(50, 0.5))], Echo(), tmp_path)
    near, far, loose = Echo(), Echo(), Echo()
    make([task("q", depth=SearchDepth(10, 0.4))], near, tmp_path)
    make([task("q", depth=SearchDepth(51, 0.5))], far, tmp_path)
    make([task("q", depth=SearchDepth(10, None))], loose, tmp_path)
    assert (len(near.begun), len(far.begun), len(loose.begun)) == (0, 1, 1)


def test_an_answer_that_cannot_be_used_as_configured_is_kept_for_the_day_it_can(tmp_path: Path) -> None:
    def refuse(_: object) -> object:
        raise CallError(FailureKind.INVALID, "the rule does not match")

    (failed,) = make([task("q")], Echo(reader=refuse), tmp_path)
    assert isinstance(failed, FailedTask)
    assert failed.failure.message == "the rule does not match"
    mended = Echo()
    assert [type(outcome) for outcome in make([task("q")], mended, tmp_path)] == [CallAnswer]
    assert not mended.begun


def test_two_readers_of_one_answer_fail_and_succeed_apart(tmp_path: Path) -> None:
    def refuse(_: object) -> object:
        raise CallError(FailureKind.MALFORMED, "nothing there")

    services = {"good": Echo(), "bad": Echo(reader=refuse)}
    outcomes, _ = run_all(services, [[task("q", "good", service="good"), task("q", "bad", service="bad")]], tmp_path)
    types = {name: type(outcome) for outcome in outcomes for name in subjects(outcome)}
    assert types == {"good": CallAnswer, "bad": FailedTask}
    assert len(services["good"].begun) + len(services["bad"].begun) == 1


def test_what_was_answered_before_a_worker_went_away_is_kept(tmp_path: Path) -> None:
    async def script(question: str, _: int) -> str | None:
        if question == "q40":
            raise WorkerGone
        return None

    calls = [task(f"q{i}") for i in range(50)]
    with pytest.raises(WorkerGone):
        make(calls, Echo(script), tmp_path, Quota(requests_per_minute=60_000, concurrent_calls=1))
    again = Echo()
    make(calls, again, tmp_path)
    assert {question for question, _ in again.begun} <= {f"q{i}" for i in range(40, 50)}


def test_no_more_calls_are_in_flight_than_the_quota_allows(tmp_path: Path) -> None:
    service = Echo(taking(0.02))
    make([task(f"q{i}") for i in range(60)], service, tmp_path, Quota(requests_per_minute=60_000, concurrent_calls=7))
    assert service.most_open == 7


def test_retries_spend_quota(tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.UNAVAILABLE, times=1))
    make([task(f"q{i}") for i in range(30)], service, tmp_path, Quota(requests_per_minute=20 * 60))
    begun = [at for _, at in service.begun]
    assert len(begun) == 60
    assert all(later - earlier >= 1.0 for earlier, later in zip(begun, begun[20:], strict=False))


def test_lanes_of_one_bundle_are_at_work_at_once_and_keep_one_quota(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(taking(0.5))
    lanes = [[task(f"{lane} {i}") for i in range(20)] for lane in range(4)]
    outcomes, fan_out = run_all({"echo": service}, lanes, tmp_path, Quota(requests_per_minute=40 * 60), clock)
    begun = sorted(at for _, at in service.begun)
    assert len(outcomes) == 80
    assert all(later - earlier >= 1.0 for earlier, later in zip(begun, begun[40:], strict=False))
    assert clock.monotonic() < 3.5  # one lane after the other would take 2.5 s each
    assert fan_out.totals()[Counter.CALLS_DONE, "pool"] == 80


def test_lanes_share_what_may_be_in_flight(tmp_path: Path) -> None:
    service = Echo(taking(0.05))
    lanes = [[task(f"{lane} {i}") for i in range(20)] for lane in range(3)]
    run_all({"echo": service}, lanes, tmp_path, Quota(requests_per_minute=60_000, concurrent_calls=7))
    assert service.most_open == 7


def test_a_lane_that_fails_stops_the_others(tmp_path: Path) -> None:
    async def script(question: str, _: int) -> str | None:
        if question == "bug":
            raise WorkerGone
        return None

    service = Echo(script)
    lanes = [[task("bug")], [task(f"q{i}") for i in range(10_000)]]
    with pytest.raises(WorkerGone):
        run_all({"echo": service}, lanes, tmp_path, Quota(requests_per_minute=100 * 60))
    assert len(service.begun) < 200


def test_a_caller_that_stops_taking_outcomes_pays_for_nothing_more(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo()
    fan_out = FanOut(stage({"echo": service}, Quota(requests_per_minute=100 * 60)), Ledger(str(tmp_path)), clock)
    fan_out.begin(("pool",), 0, feed([task(f"q{i}") for i in range(9000)]))
    outcomes = fan_out.outcomes()
    assert next(outcome for outcome in outcomes if outcome is not None)
    outcomes.close()
    fanout.stop_all(grace_s=60)
    assert fan_out.ended
    assert len(service.begun) < 200


def test_a_lane_that_begins_after_the_stop_makes_no_call(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo()
    fan_out = FanOut(stage({"echo": service}), Ledger(str(tmp_path)), clock)
    fanout.stop_all(grace_s=0)
    fan_out.begin(("pool",), 0, feed([task("q")]))
    with pytest.raises(LaneStopped):
        list(fan_out.outcomes())
    assert not service.begun


def test_all_fan_outs_that_run_are_stopped_together(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(taking(0.3))
    fan_out = FanOut(stage({"echo": service}, Quota(requests_per_minute=600)), Ledger(str(tmp_path)), clock)
    fan_out.begin(("pool",), 0, feed([task(f"q{i}") for i in range(50)]))
    outcomes = fan_out.outcomes()
    while not service.open:
        next(outcomes)
    assert fan_out in fanout.at_work()
    begun = len(service.begun)
    fanout.stop_all(grace_s=20)
    assert fan_out not in fanout.at_work()
    assert (len(service.begun), service.open) == (begun, 0)
    with pytest.raises(LaneStopped):
        list(outcomes)


def test_a_caller_that_waits_can_report_progress_every_quarter_of_a_second(clock: VirtualClock, tmp_path: Path) -> None:
    fan_out = FanOut(stage({"echo": Echo(taking(10))}), Ledger(str(tmp_path)), clock)
    fan_out.begin(("pool",), 0, feed([task("q")]))
    times = [clock.monotonic() for outcome in fan_out.outcomes() if outcome is None]
    assert max(later - earlier for earlier, later in pairwise(times)) == pytest.approx(0.25)
    assert len(times) < 50


def test_each_warning_of_a_connection_is_reported_once(tmp_path: Path) -> None:
    class Warned(Echo):
        warnings = ("an old version", "slow", "an old version")

    _, fan_out = run_all(
        {"one": Warned(), "other": Warned()}, [[task("a", service="one"), task("b", service="other")]], tmp_path
    )
    assert fan_out.warnings() == ["an old version", "slow"]


def test_waiting_for_the_pace_is_counted(tmp_path: Path) -> None:
    _, fan_out = run_all(
        {"echo": Echo()}, [[task(f"q{i}") for i in range(31)]], tmp_path, Quota(requests_per_minute=600)
    )
    assert fan_out.totals()[Counter.THROTTLED_S, "pool"] == 3  # 30 pauses of 0.1 s, and 15 ms after each full second


def test_stopping_keeps_what_was_answered_and_lets_calls_in_flight_end(clock: VirtualClock, tmp_path: Path) -> None:
    service = Echo(taking(0.3))
    fan_out = FanOut(stage({"echo": service}, Quota(requests_per_minute=100 * 60)), Ledger(str(tmp_path)), clock)
    calls = [task(f"q{i}") for i in range(1000)]
    fan_out.begin(("pool",), 0, feed(calls))
    taken, outcomes = 0, fan_out.outcomes()
    while taken < 70:
        taken += next(outcomes) is not None
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), clock.loop()).result()  # a call may begin at this very moment
    begun, stopped_at = len(service.begun), clock.monotonic()
    fanout.stop_all(grace_s=20)
    assert clock.monotonic() - stopped_at < 0.31  # and not the whole grace
    later: list[object] = []
    with pytest.raises(LaneStopped):
        later.extend(outcome for outcome in outcomes if outcome is not None)
    assert taken + len(later) == begun == len(service.begun)
    assert 95 <= begun <= 105  # at 100 a second, after a second
    assert service.open == 0
    again = Echo()
    make(calls, again, tmp_path, FAST)
    assert len(again.begun) == 1000 - begun
