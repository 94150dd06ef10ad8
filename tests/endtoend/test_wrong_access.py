"""A wrong address or key: the run ends after one call and says what to check."""

import socket
from pathlib import Path

import pytest
from support.answering import model, write_experiment
from support.cli import rankbeam
from support.standins import Faults, serve

QUOTA = {"attempts": 3, "give_up_after_s": 240}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def test_a_wrong_key(tmp_path: Path) -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("permission",))) as server:
        outcome = rankbeam("evaluate", write_experiment(tmp_path, model(server, "openai"), QUOTA), "--run-id", "r1")
        calls = server.stats().calls
    assert outcome.status == 2, outcome.stderr
    assert "refused the first call: HTTP 403" in outcome.stderr
    assert "check ${env:RANKBEAM_TEST_KEY}" in outcome.stderr
    assert calls == 1


def test_a_wrong_port(tmp_path: Path) -> None:
    with serve("openai") as server, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound without listening: connections are refused
        port = unused.getsockname()[1]
        wrong = model(server, "openai") | {"base_url": f"http://127.0.0.1:{port}/v1"}
        outcome = rankbeam("evaluate", write_experiment(tmp_path, wrong, QUOTA), "--run-id", "r1")
    assert outcome.status == 2, outcome.stderr
    assert f"cannot connect to http://127.0.0.1:{port}/v1" in outcome.stderr
    assert "check the address" in outcome.stderr


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_an_unset_variable_is_named_with_its_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKBEAM_TEST_KEY")
    with serve("openai") as server:
        path = write_experiment(tmp_path, model(server, "openai"), QUOTA)
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "${env:RANKBEAM_TEST_KEY}" in text)
    outcome = rankbeam(command, path)
    assert outcome.status == 0, outcome.stderr
    words = " ".join(outcome.stderr.split())
    assert f"{path}:{line}: " in words
    assert "needs the environment variable RANKBEAM_TEST_KEY, which is not set here" in words
