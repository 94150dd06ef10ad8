"""A lane's own answers that the index lacks take memory by time, not by the number of calls."""

from pathlib import Path

import pytest
from support.services import Echo, make, task

from rankbeam.transforms.clients.calls import hits
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import SearchDepth


def test_many_answers_go_to_the_index_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most, added = 0, hits.Hits.added

    def counting(self: hits.Hits, key: str, depth: SearchDepth | None) -> None:
        nonlocal most
        added(self, key, depth)
        most = max(most, len(self._added))

    monkeypatch.setattr(hits, "_MOST_ADDED", 100)
    monkeypatch.setattr(hits.Hits, "added", counting)
    outcomes = make([task(f"q{number}") for number in range(1500)], Echo(), tmp_path, Quota(requests_per_minute=6000))
    assert len(outcomes) == 1500
    assert most < 600
