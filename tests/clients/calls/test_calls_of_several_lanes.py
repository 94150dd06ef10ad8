"""Equal calls of tasks in different lanes of one process are one call."""

from collections import Counter as Tally
from dataclasses import replace
from pathlib import Path

import pytest
from support.services import Echo, WorkerGone, failing, run_all, taking, task

from rankbeam.transforms.records.calls.outcomes import CallAnswer, FailedTask
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.failures import FailureKind

QUOTA = Quota(requests_per_minute=6000)


def asking(question: str, name: str) -> Task:
    """A task whose call is whole, as those of models are."""
    one = task(question, name)
    return one._replace(name=name, item=replace(one.item, reach=None))


def lanes(number: int, tasks: int, questions: int) -> list[list[Task]]:
    """Tasks dealt to lanes, in which the same questions come again and again."""
    every = [asking(f"q{place * 7 % questions}", f"t{place}") for place in range(tasks)]
    return [every[lane::number] for lane in range(number)]


@pytest.mark.parametrize("latency_s", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("number", [2, 4])
def test_equal_calls_in_several_lanes_are_made_once(latency_s: float, number: int, tmp_path: Path) -> None:
    service = Echo(taking(latency_s))
    outcomes, fan_out = run_all({"echo": service}, lanes(number, 600, 45), tmp_path, QUOTA)
    assert Tally(question for question, _ in service.begun) == {f"q{place}": 1 for place in range(45)}
    assert [type(outcome) for outcome in outcomes] == [CallAnswer] * 600
    totals = fan_out.totals()
    assert totals[Counter.CALLS_MADE, "pool"] == 45


def test_a_call_that_fails_fails_in_every_lane_that_wants_it(tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.INVALID, times=99))
    outcomes, _ = run_all({"echo": service}, [[asking("q", "a")], [asking("q", "b")]], tmp_path, QUOTA)
    assert [type(outcome) for outcome in outcomes] == [FailedTask] * 2
    assert len(service.begun) == 1


def test_a_killed_run_pays_for_no_call_again_that_its_lanes_shared(tmp_path: Path) -> None:
    async def script(_: str, __: int) -> str | None:
        if len(service.begun) == 30:
            raise WorkerGone
        return None

    service = Echo(script)
    with pytest.raises(WorkerGone):
        run_all({"echo": service}, lanes(4, 300, 45), tmp_path, replace(QUOTA, concurrent_calls=4))
    answered = len(service.begun)
    service.script = None
    outcomes, _ = run_all({"echo": service}, lanes(4, 300, 45), tmp_path, QUOTA)
    assert len(outcomes) == 300
    assert len(service.begun) - answered <= 45 - 30 + 4
    assert max(Tally(question for question, _ in service.begun[:answered]).values()) == 1
