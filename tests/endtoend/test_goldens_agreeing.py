"""A checking model that says yes to everything: its users are warned, and those of an honest one are not."""

from pathlib import Path
from typing import Any

import pytest
from support.cli import Outcome, rankbeam
from support.goldens import corpus, documents, goldens_file, lines
from support.standin_models import KEY, service
from support.standins import Standin, serve


def generated(folder: Path, server: Standin, checker: str) -> Outcome:
    """A benchmark of documents of which every third makes the writer add to its answers."""
    rows = documents(42)
    for row in rows[::3]:
        row["text"] += " lie=outside."
    models: dict[str, Any] = {name: {**service("openai", server), "model": name} for name in ("writes-1", checker)}
    path = goldens_file(
        folder,
        checker,
        documents=corpus(folder, rows),
        services=models,
        writer="writes-1",
        checker=checker,
        items=24,
        types=["lookup"],
        reviews={"pool": 0, "closed_book": False},
        quotas={"openai": {"requests_per_minute": 60_000}},
        output=checker,
    )
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    return outcome


@pytest.mark.campaign
def test_a_checker_that_accepts_everything_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        honest, agreeing = generated(tmp_path, server, "honest-1"), generated(tmp_path, server, "yes-1")
    assert "(100%)" not in honest.stderr
    assert {row["reason"] for row in lines(tmp_path / "honest-1" / "rejected.jsonl")} >= {"checks"}
    assert "warning: checker yes-1 accepted all of 24 questions (100%): it may say yes to everything" in agreeing.stderr
    assert "look at a sample with `rankbeam goldens review`, or name another model" in agreeing.stderr
    answers = [item["made"]["answer"] for item in lines(tmp_path / "yes-1" / "items.jsonl")]
    assert any("on the moon" in answer for answer in answers)  # what an honest checker rejects
