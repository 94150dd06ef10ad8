"""A job is followed to its end, through failures of its engine that pass."""

from collections.abc import Iterator

import pytest

from rankbeam.pipelines.manage.job_progress import JobSnapshot, follow, pauses
from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import RankbeamError


class Script:
    """An engine whose answers are given, and a clock that only pauses move."""

    def __init__(self, *answers: str) -> None:
        self.now, self.shown = 0.0, list[str]()
        self._answers: Iterator[str] = iter(answers)

    def look(self) -> JobSnapshot:
        if (answer := next(self._answers)) == "lost":
            raise RankbeamError("no answer")
        return JobSnapshot(answer, Counts())

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def follow(self) -> str:
        return follow(self.look, lambda one: self.shown.append(one.state), self.sleep, lambda: self.now).state


@pytest.mark.parametrize("last", ["done", "finished", "failed", "canceled", "gone"])
def test_each_state_is_shown_to_the_end(last: str) -> None:
    script = Script("pending", "lost", "running", "lost", last, "never asked")
    assert script.follow() == last
    assert script.shown == ["pending", "running", last]


def test_an_engine_that_never_answers_is_an_error_at_once() -> None:
    script = Script("lost", "running")
    with pytest.raises(RankbeamError, match="no answer"):
        script.follow()
    assert script.now == 0.0


def test_an_engine_that_is_lost_for_ten_minutes_is_an_error() -> None:
    script = Script("running", *["lost"] * 1000)
    with pytest.raises(RankbeamError, match="no answer"):
        script.follow()
    assert 600 < script.now < 640


def test_pauses_grow_to_twenty_seconds() -> None:
    some = [pause for pause, _ in zip(pauses(), range(12), strict=False)]
    assert (some[0], some[-1], some) == (1.0, 20.0, sorted(some))
