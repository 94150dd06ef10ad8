"""A lane's own answers that the index lacks take memory by time, not by the number of calls."""

from pathlib import Path
from typing import Any

import pytest
from support.services import Echo, make, task

from rankbeam.transforms.clients.calls import hits
from rankbeam.transforms.clients.calls.lanes import LaneRun
from rankbeam.transforms.records.calls.quota import Quota


def test_many_answers_go_to_the_index_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most, answered = 0, LaneRun.answered

    def counting(self: LaneRun, *arguments: Any) -> None:
        nonlocal most
        answered(self, *arguments)
        most = max(most, len(self.shared.added))

    monkeypatch.setattr(hits, "_MOST_ADDED", 100)
    monkeypatch.setattr(LaneRun, "answered", counting)
    outcomes = make([task(f"q{number}") for number in range(1500)], Echo(), tmp_path, Quota(requests_per_minute=6000))
    assert len(outcomes) == 1500
    assert 0 < most < 600
