"""The example of a deployed application: asked over HTTP, its prompts compared, its worst answers shown."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.cli import rankbeam
from support.data import REPOSITORY
from support.example_application import served, stop_all


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    queries = tmp_path / "examples" / "helpdesk" / "queries.jsonl"
    queries.write_text("".join(queries.read_text(encoding="utf-8").splitlines(keepends=True)[:20]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield served("examples/app/app.py").removeprefix("listening on ").strip()
    stop_all()


@pytest.mark.long
def test_its_prompts_are_compared_and_its_worst_answers_shown_and_wrong_options_refused(url: str) -> None:
    assert len((REPOSITORY / "examples" / "app" / "app.py").read_text(encoding="utf-8").splitlines()) < 150
    assert url.endswith("/ask")
    done = rankbeam("evaluate", "examples/app/experiment.yaml", "--output", "out")
    assert done.status == 0, done.stderr
    board = done.stdout.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in board[2:]] == ["app:body=detailed", "app:body=brief"]
    shown = json.loads(rankbeam("worst", "out", "-n", "3", "--format", "json").stdout)
    assert (shown["configuration"], shown["metric"]) == ("app:body=detailed", "ClaimRecall(judge=lexical)")
    values = [row["value"] for row in shown["rows"]]
    assert (len(values), values) == (3, sorted(values))
    for row in shown["rows"]:
        request = {"question": row["query"], "prompt": "Answer with all steps."}
        assert row["answer"] == httpx.post(url, json=request).json()["answer"]
        assert row["reference"]
    text = rankbeam("worst", "out", "-m", "Faithfulness", "--configuration", "app:body=brief").stdout
    assert text.startswith("app:body=brief: lowest Faithfulness(judge=lexical)")
    assert len(text.split("\n\n")) == 6
    for options, problem in {
        ("-m", "Faithfulnes"): "Faithfulness",
        ("-m", "nDCG@10"): "the run has no metric nDCG@10; did you mean 'nDCG@3'?",
        ("--configuration", "bref"): "no configuration has this name",
        ("-n", "0"): "0 is not in the range",
    }.items():
        done = rankbeam("worst", "out", *options)
        assert done.status == 2
        assert problem in done.stderr


def test_it_says_what_is_wrong_with_a_request(url: str) -> None:
    reply = httpx.post(url, json={"prompt": "no question"})
    assert (reply.status_code, "question" in reply.json()["error"]) == (400, True)
