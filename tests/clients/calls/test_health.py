"""The circuit breaker: what a dead service costs, when it is asked again, and what says nothing of it."""

import pickle
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.strategies import lists_up_to

from rankbeam.transforms.clients.calls.health import (
    FAILURES_TO_OPEN,
    MOST_UNCONFIRMED,
    Breaker,
    StartedAttempt,
    StepBreaker,
)
from rankbeam.transforms.records.errors import CallError, FailureKind

GIVE_UP_S = 600.0
PROBES = [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, *(63.0 + 60.0 * later for later in range(1, 9))]
DOWN = CallError(FailureKind.UNAVAILABLE, "down")
FORBIDDEN = CallError(FailureKind.PERMISSION, "forbidden")
OF_A_QUERY = [FailureKind.INVALID, FailureKind.BLOCKED, FailureKind.TRUNCATED, FailureKind.MALFORMED]
OF_THE_SERVICE = [
    FailureKind.UNAVAILABLE,
    FailureKind.TIMEOUT,
    FailureKind.PERMISSION,
    FailureKind.NOT_FOUND,
    FailureKind.QUOTA,
]


@dataclass
class Driven:
    """A breaker, asked as often as it allows, with attempts that take no time."""

    breaker: Breaker = field(default_factory=lambda: Breaker(GIVE_UP_S))
    now: float = 0.0
    begun: list[float] = field(default_factory=list)

    def attempt(self, error: CallError | None) -> bool:
        """Make an attempt as soon as one may begin; False where none may any more."""
        while (until := self.breaker.wait_until(self.now)) != self.now:
            if until is None:
                return False
            self.now = until
        begun = self.breaker.begin()
        self.begun.append(self.now)
        if error is None:
            self.breaker.answered()
        else:
            self.breaker.failed(begun, error, self.now)
        return True


def test_a_dead_service_is_probed_after_longer_and_longer_pauses_and_given_up() -> None:
    driven = Driven()
    while driven.attempt(DOWN):
        pass
    assert driven.begun == [0.0] * FAILURES_TO_OPEN + [at for at in PROBES if at < GIVE_UP_S]
    assert driven.breaker.is_given_up(driven.now)
    assert driven.now == GIVE_UP_S
    assert len(driven.begun) <= 3 * FAILURES_TO_OPEN


def test_a_service_that_hangs_costs_no_more_attempts_than_one_that_refuses() -> None:
    breaker, in_flight = Breaker(GIVE_UP_S), []
    while breaker.wait_until(0.0) is not None:
        in_flight.append(breaker.begin())
    assert len(in_flight) == MOST_UNCONFIRMED
    now = 60.0
    for begun in in_flight:
        breaker.failed(begun, CallError(FailureKind.TIMEOUT, "too late"), now)
    attempts = len(in_flight)
    while (until := breaker.wait_until(now)) is not None:
        now = until
        if not breaker.is_given_up(now):
            now += 60.0
            breaker.failed(breaker.begin(), CallError(FailureKind.TIMEOUT, "too late"), now)
            attempts += 1
    assert attempts <= 3 * FAILURES_TO_OPEN


def test_a_probe_that_is_answered_closes_the_breaker_and_the_next_outage_begins_anew() -> None:
    driven = Driven()
    for _ in range(FAILURES_TO_OPEN + 3):
        assert driven.attempt(DOWN)
    assert driven.now == 7.0
    assert driven.breaker.is_open
    assert driven.attempt(None)
    assert not driven.breaker.is_open
    for _ in range(FAILURES_TO_OPEN + 1):
        assert driven.attempt(DOWN)
    assert driven.begun[-1] == driven.begun[-2] + 1.0


def test_one_probe_at_a_time_decides() -> None:
    driven = Driven()
    for _ in range(FAILURES_TO_OPEN):
        driven.attempt(DOWN)
    breaker = driven.breaker
    assert breaker.wait_until(0.0) == 1.0
    probe = breaker.begin()
    assert probe.is_probe
    assert breaker.wait_until(50.0) is None
    breaker.failed(StartedAttempt(0, is_probe=False), DOWN, 50.0)  # one that began before
    assert breaker.wait_until(50.0) is None
    breaker.failed(probe, DOWN, 51.0)
    assert breaker.wait_until(51.0) == 53.0


def test_a_probe_that_says_nothing_of_the_service_is_followed_by_another_one() -> None:
    driven = Driven()
    for _ in range(FAILURES_TO_OPEN):
        driven.attempt(DOWN)
    assert driven.attempt(CallError(FailureKind.INVALID, "too long"))
    assert driven.now == 1.0
    assert driven.attempt(None)
    assert driven.now == 1.0


@pytest.mark.parametrize("kind", OF_A_QUERY)
def test_what_fails_because_of_one_query_never_opens_it(kind: FailureKind) -> None:
    driven = Driven()
    assert all(driven.attempt(CallError(kind, "no")) for _ in range(200))
    assert driven.now == 0.0


@pytest.mark.parametrize(
    ("errors", "changes_form", "is_final", "opens"),
    [
        ([], False, True, True),
        ([CallError(FailureKind.INVALID, "too long")], False, True, False),
        ([DOWN], False, True, False),
        ([CallError(FailureKind.BLOCKED, "no")], False, True, False),  # an answer
        ([], True, True, False),
        ([], False, False, False),
    ],
)
def test_requests_that_were_all_refused_alike_open_it(
    errors: list[CallError], changes_form: bool, is_final: bool, opens: bool
) -> None:
    service = Breaker(GIVE_UP_S)
    attempt = StepBreaker(service, Breaker(GIVE_UP_S), "call", is_final)
    for error in [*errors, *[CallError(FailureKind.INVALID, "no field x", changes_form=changes_form)] * 60]:
        if service.wait_until(0.0) is not None:
            attempt.failed(attempt.begin(), error, 0.0)
    assert service.is_given_up(0.0) == opens
    assert not opens or str(service.refusal()) == "not asked: 20 attempts in a row failed, the last with: no field x"


def test_refusals_with_a_message_for_each_query_take_no_memory() -> None:
    service = Breaker(GIVE_UP_S)
    for number in range(1_000):
        service.refused(service.begin(), CallError(FailureKind.INVALID, f"query {number} is too long"), 0.0)
    assert not service.is_open
    assert len(pickle.dumps(service)) < 5_000


@pytest.mark.parametrize("kind", OF_THE_SERVICE)
def test_what_fails_because_of_the_service_opens_it(kind: FailureKind) -> None:
    driven = Driven()
    for _ in range(FAILURES_TO_OPEN):
        driven.attempt(CallError(kind, "no"))
    assert driven.breaker.is_open
    assert str(driven.breaker.refusal()) == "not asked: 20 attempts in a row failed, the last with: no"
    assert (driven.breaker.refusal().kind, driven.breaker.refusal().attempts) == (kind, 0)


def test_what_no_time_helps_is_given_up_at_once_unless_the_service_has_ever_answered() -> None:
    never, before, hit = Driven(), Driven(), Driven()
    before.attempt(None)
    hit.breaker.answered_before()
    for driven in (never, before, hit):
        for _ in range(FAILURES_TO_OPEN):
            assert driven.attempt(FORBIDDEN)
    assert not never.attempt(FORBIDDEN)
    assert before.attempt(None)
    assert hit.attempt(None)


def test_a_quota_that_comes_back_tomorrow_is_not_waited_for() -> None:
    driven = Driven()
    driven.attempt(None)
    assert driven.attempt(CallError(FailureKind.QUOTA, "per day", retry_after_s=GIVE_UP_S))
    assert driven.attempt(CallError(FailureKind.QUOTA, "per day", retry_after_s=8 * 3600))
    assert not driven.attempt(None)
    assert driven.now == 0.0
    message = "per day, which asks to wait 28,800 s, longer than give_up_after_s"
    assert str(driven.breaker.refusal()) == f"not asked: 2 attempts in a row failed, the last with: {message}"


def test_answers_of_attempts_in_flight_do_not_close_a_breaker_that_was_stopped() -> None:
    breaker = Breaker(GIVE_UP_S)
    breaker.answered()
    breaker.stop(CallError(FailureKind.QUOTA, "per day"), 5.0)
    assert breaker.is_open
    breaker.answered()
    assert (breaker.is_open, breaker.is_given_up(5.0), breaker.wait_until(5.0)) == (True, True, None)
    assert str(breaker.refusal()) == "not asked: its quota is exhausted for now: per day"
    assert breaker.report() == "its quota is exhausted for now: per day; no further call is made"


def of_steps(*steps: str) -> tuple[Breaker, list[Breaker]]:
    return Breaker(GIVE_UP_S), [Breaker(GIVE_UP_S) for _ in steps]


@pytest.mark.parametrize("kind", [*OF_THE_SERVICE, *OF_A_QUERY])
def test_malformed_answers_close_their_step_and_what_fails_the_service_closes_all(kind: FailureKind) -> None:
    service, (grade, claims) = of_steps("grade", "claims")
    for number in range(FAILURES_TO_OPEN):
        attempt = StepBreaker(service, grade, f"call {number}")
        attempt.failed(attempt.begin(), CallError(kind, f"no {number}"), 0.0)
    assert grade.is_open == (kind is FailureKind.MALFORMED)
    assert service.is_open == StepBreaker(service, claims, "call").is_open == (kind in OF_THE_SERVICE)


def test_a_probe_that_ends_without_evidence_leaves_its_place_to_another_one() -> None:
    service, (step,) = of_steps("grade")
    attempt = StepBreaker(service, step, "call")
    for _ in range(FAILURES_TO_OPEN):
        attempt.failed(attempt.begin(), DOWN, 0.0)
    assert attempt.wait_until(0.0) == 1.0
    probe = attempt.begin()
    assert attempt.wait_until(5.0) is None
    attempt.ended(probe, 5.0)  # its lane was stopped, say
    assert attempt.wait_until(5.0) == 5.0
    attempt.failed(attempt.begin(), DOWN, 6.0)
    assert attempt.wait_until(6.0) == 8.0


OUTCOMES = lists_up_to(120, st.sampled_from([None, *4 * OF_THE_SERVICE, *OF_A_QUERY]))


@given(OUTCOMES)
def test_a_service_that_dies_costs_no_more_after_its_last_answer_than_a_dead_one(
    outcomes: list[FailureKind | None],
) -> None:
    driven = Driven()
    for kind in outcomes:
        driven.attempt(None if kind is None else CallError(kind, "no"))
    driven.attempt(None)
    alive = len(driven.begun)
    while driven.attempt(DOWN):
        pass
    assert len(driven.begun) - alive <= 3 * FAILURES_TO_OPEN


@given(OUTCOMES)
def test_it_opens_at_the_twentieth_failure_in_a_row_and_not_before(outcomes: list[FailureKind | None]) -> None:
    driven, failures = Driven(), 0
    driven.attempt(None)
    for kind in outcomes:
        assert driven.breaker.is_open == (failures >= FAILURES_TO_OPEN)
        if not driven.attempt(None if kind is None else CallError(kind, "no")):
            return  # given up
        counts = kind in OF_THE_SERVICE and kind is not FailureKind.NOT_FOUND  # it has found others
        failures = 0 if kind is None else failures + counts


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_attempts_side_by_side_never_exceed_what_is_unconfirmed(data: st.DataObject) -> None:
    """Whatever ends in whichever order, no more than 40 attempts were begun since the last answer."""
    breaker, now, in_flight, since = Breaker(GIVE_UP_S), 0.0, list[StartedAttempt](), 0
    for _ in range(data.draw(st.integers(0, 150))):
        if breaker.wait_until(now) == now and data.draw(st.booleans()):
            in_flight.append(breaker.begin())
            since += 1
        elif in_flight:
            begun = in_flight.pop(data.draw(st.integers(0, len(in_flight) - 1)))
            if data.draw(st.integers(0, 9)) == 0:
                breaker.answered()
                since = 0
            else:
                breaker.failed(begun, DOWN, now)
        assert since <= MOST_UNCONFIRMED
