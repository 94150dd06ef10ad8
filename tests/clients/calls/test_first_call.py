"""The first call to a service goes alone, and its refusal ends the run before any other call is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.services import Echo, failing, feed, stage, task

from rankbeam.testing import FakeRequest, FakeService, Quota, VirtualClock, call_all
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, Unreachable

QUOTA = Quota(requests_per_minute=6000, attempts=2)
ACCESS = Access("http://search.test:9200/q", ("${env:SEARCH_KEY}",))
CALLS = 50


@dataclass
class Service(FakeService):
    """A service that says where it is."""

    access: Access | None = ACCESS


def always(error: CallError) -> Callable[[FakeRequest], Any]:
    def answer(_: FakeRequest) -> Any:
        raise error

    return answer


def called(service: FakeService, ledger: Path, first: int = 0) -> list[Any]:
    payloads = [{"query": number} for number in range(first, first + CALLS)]
    with VirtualClock() as clock:
        return call_all(service, payloads, QUOTA, str(ledger), clock)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            Unreachable("ConnectError: refused"),
            "service: cannot connect to http://search.test:9200/q: ConnectError: refused; check the address",
        ),
        (
            CallError(FailureKind.PERMISSION, "HTTP 401"),
            "service: http://search.test:9200/q refused the first call: HTTP 401; check ${env:SEARCH_KEY}",
        ),
        (
            CallError(FailureKind.NOT_FOUND, "HTTP 404"),
            "service: http://search.test:9200/q refused the first call: HTTP 404; check the address and its names",
        ),
    ],
)
def test_a_refused_first_call_ends_the_run(error: CallError, message: str, tmp_path: Path) -> None:
    service = Service(always(error), latency_s=1.0)
    with pytest.raises(InputError) as raised:
        called(service, tmp_path)
    assert str(raised.value) == message
    assert len(service.requests) == 1


def test_the_calls_that_wait_behind_a_refused_first_one_do_not_fail(tmp_path: Path) -> None:
    @dataclass(eq=False)
    class Refusing(Echo):
        access: Access = ACCESS

    service, outcomes = Refusing(failing(FailureKind.PERMISSION, 1)), list[Any]()
    with VirtualClock() as clock:
        fan_out = FanOut(stage({"echo": service}, QUOTA), Ledger(str(tmp_path)), clock)
        fan_out.begin(("pool",), 0, feed([task(f"q{number}") for number in range(CALLS)]))
        with pytest.raises(InputError, match="refused the first call"):
            outcomes.extend(filter(None, fan_out.outcomes()))
    assert outcomes == []  # as failures they would be reported, as if the run went on


@pytest.mark.parametrize("kind", [FailureKind.QUOTA, FailureKind.UNAVAILABLE, FailureKind.TIMEOUT, FailureKind.INVALID])
def test_a_busy_or_broken_service_has_refused_nothing(kind: FailureKind, tmp_path: Path) -> None:
    def answer(request: FakeRequest) -> Any:
        if request.number == 1:
            raise CallError(kind, "not now")
        return request.payload["query"]

    service = Service(answer, latency_s=0.5)
    values = called(service, tmp_path)
    failed = [value for value in values if isinstance(value, CallError)]
    assert len(failed) == (0 if kind.is_transient else 1)


def test_others_begin_once_the_first_is_answered(tmp_path: Path) -> None:
    service = Service(lambda request: request.payload["query"], latency_s=2.0)
    assert called(service, tmp_path) == list(range(CALLS))
    assert [request.at_s < 2.0 for request in service.requests].count(True) == 1
    assert service.most_in_flight > 10
    assert len(service.requests) == CALLS  # the first one is kept, not a probe beside the others


def test_nothing_is_tried_where_the_ledger_answers_everything(tmp_path: Path) -> None:
    called(Service(lambda request: request.payload["query"]), tmp_path)
    dead = Service(always(Unreachable("refused")))
    assert called(dead, tmp_path) == list(range(CALLS))
    assert not dead.requests


def test_the_answers_of_other_runs_are_kept(tmp_path: Path) -> None:
    called(Service(lambda request: request.payload["query"]), tmp_path)
    with pytest.raises(InputError, match="SEARCH_KEY"):
        called(Service(always(CallError(FailureKind.PERMISSION, "HTTP 403"))), tmp_path, first=CALLS)
    assert called(Service(always(Unreachable("refused"))), tmp_path) == list(range(CALLS))


def test_a_service_that_does_not_say_where_it_is_may_answer_404(tmp_path: Path) -> None:
    service = Service(always(CallError(FailureKind.NOT_FOUND, "HTTP 404")), access=None)
    assert all(isinstance(value, CallError) for value in called(service, tmp_path))
    assert len(service.requests) > 1


@pytest.mark.long
@given(
    first=st.sampled_from(["ok", "unreachable", "permission", "not_found", "quota", "unavailable", "malformed"]),
    knows_address=st.booleans(),
    shares_404=st.booleans(),
)
def test_only_refusals_that_all_calls_share_end_a_run(
    first: str, knows_address: bool, shares_404: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = {FailureKind.PERMISSION} | ({FailureKind.NOT_FOUND} if shares_404 else set())
    access = Access("http://a", refusals=frozenset(shared)) if knows_address else None

    def answer(request: FakeRequest) -> Any:
        if request.number > 1 or first == "ok":
            return request.payload["query"]
        raise Unreachable("refused") if first == "unreachable" else CallError(FailureKind(first), "no")

    service = Service(answer, latency_s=0.1, access=access)
    ends = knows_address and (first in ("unreachable", "permission") or (first == "not_found" and shares_404))
    try:
        values = called(service, tmp_path_factory.mktemp("ledger"))
    except InputError:
        assert ends
        assert len(service.requests) == 1
    else:
        assert not ends
        assert len(values) == CALLS
