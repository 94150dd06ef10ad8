"""Errors that a connection did not mean to raise fail one call each, and leave one traceback."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.services import Echo, Script, run_all, task

from rankbeam.transforms.clients.calls import fake
from rankbeam.transforms.clients.calls.fake import FakeService
from rankbeam.transforms.clients.calls.fanout import FanOut, SingleService
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.survey import clear
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask
from rankbeam.transforms.records.errors import FailureKind, InputError

QUOTA = Quota(requests_per_minute=60_000)
RAISES: dict[str, Callable[[], object]] = {
    "AttributeError": lambda: "text".get("content"),  # type: ignore[attr-defined]
    "RecursionError": lambda: json.loads("[" * 100_000),
    "UnicodeDecodeError": lambda: b"\xff".decode(),
    "OverflowError": lambda: int(float("inf")),
    "KeyError": lambda: {}["choices"],
    "ExceptionGroup": lambda: _group(),
}


def _group() -> None:
    raise ExceptionGroup("sk" * 3, [ValueError("inner")])


def _fails(raises: Callable[[], object], *questions: str) -> Script:
    async def script(question: str, _: int) -> str | None:
        if question in questions:
            raises()
        return None

    return script


def _outcomes(service: Echo, folder: Path) -> tuple[dict[str, CallAnswer | FailedTask], FanOut]:
    outcomes, fan_out = run_all({"echo": service}, [[task(f"q{i}") for i in range(30)]], folder, QUOTA)
    of = {
        (outcome.subjects[0] if isinstance(outcome, CallAnswer) else outcome.subject).query_id: outcome
        for outcome in outcomes
    }
    return of, fan_out


@pytest.mark.parametrize("name", RAISES)
def test_an_error_of_a_connection_fails_its_call_alone(name: str, tmp_path: Path) -> None:
    outcomes, _ = _outcomes(Echo(_fails(RAISES[name], "q3", "q7")), tmp_path)
    failed = {query: outcome.failure for query, outcome in outcomes.items() if isinstance(outcome, FailedTask)}
    assert sorted(failed) == ["q3", "q7"]
    assert {(outcome.kind, outcome.attempts) for outcome in failed.values()} == {(FailureKind.MALFORMED, 3)}
    assert all(outcome.message.startswith(f"an unexpected {name} at ") for outcome in failed.values())


def test_one_traceback_is_kept_and_a_warning_names_it(tmp_path: Path) -> None:
    _, fan_out = _outcomes(Echo(_fails(RAISES["KeyError"], "q3", "q7")), tmp_path)
    (log,) = tmp_path.glob("uses/error-*.log")
    (warning,) = fan_out.warnings()
    assert warning.startswith("echo: an unexpected KeyError at ")
    assert str(log) in warning
    assert "KeyError" in log.read_text()
    assert "test_unexpected" in log.read_text()


def test_a_second_run_writes_no_second_log_and_clearing_the_ledger_deletes_it(tmp_path: Path) -> None:
    for _ in range(2):
        _outcomes(Echo(_fails(RAISES["KeyError"], "q3")), tmp_path)
    assert len(list(tmp_path.glob("uses/error-*.log"))) == 1
    clear(str(tmp_path))
    assert not list(tmp_path.glob("uses/*"))


def test_no_message_of_an_unexpected_error_is_kept_since_it_may_hold_a_secret(tmp_path: Path) -> None:
    outcomes, fan_out = _outcomes(Echo(_fails(_group, "q3")), tmp_path)
    (log,) = tmp_path.glob("uses/error-*.log")
    failed = outcomes["q3"]
    assert isinstance(failed, FailedTask)
    assert "sksksk" not in "".join([log.read_text(), failed.failure.message, *fan_out.warnings()])


def test_an_error_of_a_reader_fails_its_call_alone(tmp_path: Path) -> None:
    def read(answer: dict[str, str]) -> str:
        return answer["query"] if answer["query"] != "q3" else str(answer["nothing"])

    outcomes, _ = _outcomes(Echo(reader=read), tmp_path)
    assert [query for query, outcome in outcomes.items() if isinstance(outcome, FailedTask)] == ["q3"]


def test_what_is_answered_beside_an_unexpected_error_is_paid_once(tmp_path: Path) -> None:
    service = Echo(_fails(RAISES["KeyError"], "q3"))
    _outcomes(service, tmp_path)
    service.script = None
    begun = len(service.begun)
    outcomes, _ = _outcomes(service, tmp_path)
    assert all(isinstance(outcome, CallAnswer) for outcome in outcomes.values())
    assert [question for question, _ in service.begun[begun:]] == ["q3"]


def test_input_that_cannot_be_used_still_ends_the_run(tmp_path: Path) -> None:
    def refuse() -> None:
        raise InputError("no credentials")

    with pytest.raises(InputError, match="no credentials"):
        _outcomes(Echo(_fails(refuse, "q3")), tmp_path)


def test_a_process_that_calls_alone_passes_warnings_on(tmp_path: Path) -> None:
    (tmp_path / f"calls-{'f' * 32}.parquet").write_bytes(b"torn")
    service = FakeService(answer=lambda request: {"echo": request.payload})
    alone = SingleService(service, "fake", QUOTA, Ledger(str(tmp_path)))
    assert alone.one(fake._OneCall(service), Call("service", "key", json.dumps("text"))) == {"echo": "text"}
    [warning] = alone.warnings
    assert "cannot be read, and are paid for again" in warning
