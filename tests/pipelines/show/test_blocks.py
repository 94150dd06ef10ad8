"""In a narrow terminal a wide leaderboard is split into blocks that fit; elsewhere it stays whole."""

import io
import re
import sys
from pathlib import Path

import pytest
from support.answered import answered
from support.runs import run_experiment

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.terminal import print_table


class Terminal(io.StringIO):
    """What a terminal is to a program that writes to it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder: Path = tmp_path_factory.mktemp("answered")
    return run_experiment(folder, answered(folder))


def printed(results: Results, monkeypatch: pytest.MonkeyPatch, output: io.StringIO, columns: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", output)
    print_table(results)
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue()).splitlines()]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_of_a_table_is_longer_than_the_terminal(
    results: Results, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    lines = printed(results, monkeypatch, Terminal(), columns)
    table = [line for line in lines if line.startswith(("first-", "configuration", "─", " "))]
    assert max(map(len, table)) <= columns
    whole = printed(results, monkeypatch, io.StringIO(), columns)
    numbers = r"\d\.\d{4} ±\d\.\d{3}|\b\d+$"
    for name in ("first-1", "first-3"):
        of_blocks = [number for line in lines if line.startswith(name) for number in re.findall(numbers, line)]
        (line,) = [line for line in whole if line.startswith(name)]
        assert of_blocks == re.findall(numbers, line)


def test_a_pipe_gets_the_whole_table_and_says_who_judged(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(results, monkeypatch, io.StringIO(), 40)
    assert "Faithfulness(judge=lexical)   ClaimRecall(judge=lexical)" in lines[0]
    assert lines.count("judge=lexical: word overlap, no language model") == 1
