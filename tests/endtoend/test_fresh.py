"""`fresh: daily`: another day retrieves and answers anew, and buys no verdict on an equal text again."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.standin_answers import model, planned, write_experiment
from support.standins import serve

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run.evaluate import new_run, run
from rankbeam.pipelines.run.options import pipeline_options

QUERIES = 3


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def evaluated(path: str, run_id: str, started_at: datetime) -> None:
    loaded = load_experiment(path)
    run(loaded, replace(new_run(loaded, run_id), started_at=started_at), pipeline_options([]))


def test_another_day_answers_anew_and_verdicts_stay_bought(tmp_path: Path) -> None:
    with serve("gemini") as server:
        path = write_experiment(tmp_path, model(server, "gemini"), {}, QUERIES, fresh="daily")
        today = new_run(load_experiment(path), "now").started_at
        calls = []
        for run_id, day in (("first", 0), ("again", 0), ("later", 1)):
            before = server.stats().calls
            evaluated(path, run_id, today + timedelta(days=day))
            calls.append(server.stats().calls - before)
        steps = {step["step"]: step["calls"] for step in planned(path)["steps"]}
    assert calls[0] > 2 * QUERIES
    assert calls[1] == 0
    assert calls[2] == QUERIES  # answers; the stand-in's are the same as before, and so are their verdicts
    assert steps["answer"] == [QUERIES, QUERIES]
