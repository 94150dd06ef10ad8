"""Quotas and limits that models report, through the command line."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.remote import failure_rows
from support.standin_answers import model, write_experiment
from support.standins import Faults, serve

from rankbeam.pipelines.results.run import Results


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_quota_of_the_day_stops_the_pool_whatever_else_is_answered_and_the_next_run_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve(kind, faults=Faults(kinds=("quota_day",), after=10, first=1), latency_s=0.02) as server:
        path = write_experiment(tmp_path, model(server, kind), {"concurrent_calls": 4})
        stopped = rankbeam("evaluate", path, "--run-id", "r1")
        first = server.stats()
        resumed = rankbeam("evaluate", path, "--run-id", "r2")
        both = server.stats()
    assert stopped.status == 3, stopped.stderr
    assert "its quota is exhausted for now" in stopped.stderr
    assert first.calls <= 10 + 4  # those in flight were answered, and none was begun after them
    rows = failure_rows(tmp_path / "out", "r1")
    kinds = {(row["kind"], row["message"].startswith("not asked: its quota")) for row in rows}
    assert ("quota", True) in kinds
    assert {kind for kind, _ in kinds} <= {"quota", "unavailable"}
    assert resumed.status == 0, resumed.stderr
    assert both.answered == both.calls - 1
    assert max(both.queries.values()) <= 2
    assert sum(both.queries.values()) == len(both.queries) + 1  # only the refused one was asked twice


@pytest.mark.long
def test_what_a_service_cannot_do_is_a_warning_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai", faults=Faults(rate=1.0, kinds=("no_json_schema",))) as server:
        path = write_experiment(tmp_path, model(server, "openai"), {})
        run = rankbeam("evaluate", path, "--run-id", "r1")
    assert run.status == 0, run.stderr
    (warning,) = (text for text in Results(str(tmp_path / "out"), "r1").run["warnings"] if "JSON schemas" in text)
    assert f"warning: {warning}" in run.stderr
