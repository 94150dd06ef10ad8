"""`rankbeam judge --prices … --max-cost …`: messages in options, and a run that stops at its limit and continues."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.standin_answers import cost, model
from support.standins import Standin, serve

from rankbeam.pipelines.results.find import find_run

ROWS = [
    {"question": f"Who pays invoice {number}?", "answer": f"Owner {number}.", "contexts": [f"Owner {number} pays."]}
    for number in range(5)
]
PRICES = "{input: 100, output: 4}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai") as server:
        yield server


def judged(folder: Path, server: Standin, *words: str) -> Any:
    path = write(folder / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in ROWS))
    service = ("--service", json.dumps(model(server, "openai")))
    return rankbeam("judge", path, "-m", "Faithfulness", *service, "--output", str(folder / "out"), *words)


@pytest.mark.long
def test_the_run_stops_at_the_limit_and_the_next_one_continues(tmp_path: Path, server: Standin) -> None:
    def command(limit: float) -> Any:
        return judged(tmp_path, server, "--prices", PRICES, "--max-cost", str(limit))

    whole = whole_cost(tmp_path / "whole", server)
    first = command(0.9 * whole)
    assert first.status == 3, first.stderr
    assert "cost" in first.stderr
    paid = latest_cost(tmp_path)
    assert 0 < paid <= 0.9 * whole
    second = command(whole)
    assert second.status == 0, second.stderr
    assert paid + latest_cost(tmp_path) == pytest.approx(whole)


def whole_cost(folder: Path, server: Standin) -> float:
    assert judged(folder, server, "--prices", PRICES).status == 0
    return latest_cost(folder)


def latest_cost(folder: Path) -> float:
    return cost(folder, find_run(str(folder / "out")).run_id)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-cost", "3"], "--max-cost needs --prices"),
        (["--prices", "0.4/1.6"], "--prices '0.4/1.6': write '{input: …, output: …}'"),
        (["--prices", "{input: 1, outptu: 2}"], "--prices outptu: unknown key; did you mean 'output'?"),
        (["--prices", "{input: 1}", "--max-cost", "3"], "--max-cost: needs the price of every call; give --prices"),
        (["--prices", PRICES, "--max-cost", "1e-9"], "rankbeam: --max-cost: is 1e-09, and the calls are planned"),
        (["--prices", PRICES, "--max-cost", "3", "-m", "AnswerSimilarity", "--embeddings", "SERVICE"],
         "--max-cost: needs the price of every call; an experiment can price --embeddings, too"),
    ],
)  # fmt: skip
def test_what_cannot_be_limited_is_refused_in_words_of_options(
    tmp_path: Path, server: Standin, words: list[str], message: str
) -> None:
    stated = json.dumps(model(server, "openai") | {"model": "embedder"})
    outcome = judged(tmp_path, server, *(stated if word == "SERVICE" else word for word in words))
    assert outcome.status == 2
    assert message in outcome.stderr
    assert server.stats().calls == 0
