"""Calls that a lane leaves to batch jobs: they are written down and not made, unless it is decided otherwise."""

from dataclasses import replace
from pathlib import Path

from support.services import Echo, feed, stage, task

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import BatchRound
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask

TASKS = [task(f"q{number}") for number in range(5)]


class Patient(Echo):
    """A service whose questions can wait for a batch job, but for the last."""

    def waits(self, payload: str) -> bool:
        return "q4" not in payload


def ran(batch: BatchRound, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The questions that were asked in one lane, and the failures by query."""
    service = Patient()
    with VirtualClock() as clock:
        fan_out = FanOut(replace(stage({"echo": service}), batch=batch), Ledger(str(folder)), clock)
        fan_out.begin(("pool",), 0, feed(TASKS))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    failed = {
        outcome.failure.query_id: outcome.failure.message for outcome in outcomes if isinstance(outcome, FailedTask)
    }
    assert len(failed) + sum(isinstance(outcome, CallAnswer) for outcome in outcomes) == len(TASKS)
    return [question for question, _ in service.begun], failed


def test_calls_that_can_wait_are_written_down_when_the_lane_ends(tmp_path: Path) -> None:
    batch = BatchRound(str(tmp_path / "round"))
    assert ran(batch, tmp_path) == (["q4"], dict.fromkeys(["q0", "q1", "q2", "q3"], "waits for a batch job"))
    with batch.pending() as pending:
        assert pending.sizes == {("echo", ""): 4}
        calls = {call.key: (call.payload, call.positions, call.stage) for _, _, of in pending.steps() for call in of}
    assert calls == {planned.item.key: (planned.item.payload, (0,), "retrieve") for planned in TASKS[:4]}


def test_a_call_that_no_job_answered_fails_or_is_made_as_was_decided(tmp_path: Path) -> None:
    batch = BatchRound(str(tmp_path / "round"))
    batch.decide({str(TASKS[1].item.key): "no answer within a day", str(TASKS[2].item.key): ""})
    begun, failed = ran(batch, tmp_path)
    assert sorted(begun) == ["q2", "q4"]
    waiting = dict.fromkeys(["q0", "q3"], "waits for a batch job")
    assert failed == {"q1": "no answer within a day", **waiting}


def test_the_last_round_leaves_nothing_to_jobs(tmp_path: Path) -> None:
    begun, failed = ran(BatchRound(str(tmp_path / "round"), parks=False), tmp_path)
    assert (len(begun), failed) == (5, {})
