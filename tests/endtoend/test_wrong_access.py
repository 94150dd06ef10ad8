"""A wrong address or key: the run ends after one call and says what to check."""

import socket
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.standin_answers import model, write_experiment
from support.standins import Faults, serve

QUOTA = {"attempts": 3, "give_up_after_s": 240}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.mark.long
def test_a_wrong_key(tmp_path: Path) -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("permission",))) as server:
        outcome = rankbeam("evaluate", write_experiment(tmp_path, model(server, "openai"), QUOTA), "--run-id", "r1")
        calls = server.stats().calls
    assert outcome.status == 2, outcome.stderr
    assert "refused the first call: HTTP 403" in outcome.stderr
    assert "check ${env:RANKBEAM_TEST_KEY}" in outcome.stderr
    assert calls == 1


@pytest.mark.long
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


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_service_is_tested_without_cost(kind: str, tmp_path: Path) -> None:
    with serve(kind) as server:
        outcome = rankbeam("validate", write_experiment(tmp_path, model(server, kind), QUOTA), "--online")
    assert outcome.status == 0, outcome.stderr
    last = outcome.stdout.splitlines()[-1]
    assert last.startswith("m: ")
    assert last.endswith("lists the model 'm-001'" if kind == "openai" else "the model exists: models/m-001")


def test_a_model_that_is_not_listed(tmp_path: Path) -> None:
    with serve("openai") as server:
        path = write_experiment(tmp_path, model(server, "openai") | {"model": "m-01"}, QUOTA)
        outcome = rankbeam("validate", path, "--online")
    assert outcome.status == 0, outcome.stderr
    assert "lists 2 models, but not 'm-01'; did you mean 'm-001'?" in outcome.stdout


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_free_request_is_refused(kind: str, tmp_path: Path) -> None:
    with serve(kind, faults=Faults(rate=1.0, kinds=("permission",))) as server:
        outcome = rankbeam("validate", write_experiment(tmp_path, model(server, kind), QUOTA), "--online")
    assert outcome.status == 2, outcome.stderr
    assert "m: " in outcome.stderr
    assert "check ${env:RANKBEAM_TEST_KEY}" in " ".join(outcome.stderr.split())


def test_a_service_without_a_list(tmp_path: Path) -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("not_found",))) as server:
        priced = QUOTA | {"price_per_million": {"input": 2.0, "cached": 1.0, "output": 8.0}}
        outcome = rankbeam("validate", write_experiment(tmp_path, model(server, "openai"), priced), "--online")
    assert outcome.status == 0, outcome.stderr
    assert "m: not tested, because it has no free request; the first call of a run tests it" in outcome.stdout
    assert "a million tokens cost 2 (input) and 8 (output)" in outcome.stdout
