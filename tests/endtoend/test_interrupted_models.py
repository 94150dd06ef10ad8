"""Ctrl-C while models answer and judge: what is in flight ends, is kept, and is not paid again."""

import signal
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.remote import signalled
from support.standin_answers import model, write_experiment
from support.standins import serve


@pytest.mark.campaign
def test_an_interrupted_run_of_models_goes_on_without_paying_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai", latency_s=0.3) as server:
        path = write_experiment(tmp_path, model(server, "openai"), {"concurrent_calls": 4})
        started = lambda: server.stats().calls >= 20  # noqa: E731
        ended = signalled(["evaluate", path, "--run-id", "r1"], signal.SIGINT, started, tmp_path)
        before = server.stats()
        resumed = rankbeam("evaluate", path, "--run-id", "r2")
        after = server.stats()
    assert (ended.status, resumed.status) == (130, 0), ended.stderr
    assert f"all answers are in {tmp_path}/out/ledger, and the same command continues from there" in ended.stderr
    assert before.answered == before.calls
    assert after.calls == len(after.queries)  # every call was made once
