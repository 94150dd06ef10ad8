"""Suggestions are shown in the terminal, in JSON, in Python and in the report; where no rule holds, nowhere."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.pages import Page

import rankbeam as api
from rankbeam.pipelines import report, show
from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.results.find import find_run

QUERIES = [f"q{number}" for number in range(40)]


def arguments(folder: Path, *ranks: int) -> tuple[list[str], list[str]]:
    """Judgements of one document a query, and for each rank a run that has it there."""
    qrels = write(folder / "qrels", trec_qrels([(name, "d", 1.0) for name in QUERIES]))
    runs = []
    for rank in ranks:
        rows = [
            (name, "d" if place == rank else f"x{place}", -float(place)) for name in QUERIES for place in range(1, 60)
        ]
        runs.append(write(folder / f"rank{rank}.run", trec_run(rows)))
    return [qrels, *runs], ["-m", "R@10", "-m", "R@50"]


@pytest.mark.campaign
def test_advice_is_shown_everywhere(tmp_path: Path) -> None:
    (qrels, *runs), metrics = arguments(tmp_path, 30, 31, 1)
    command = ["score", qrels, *runs, *metrics]
    table = rankbeam(*command, "--output", str(tmp_path / "out")).stdout
    line = (
        "- the relevant contexts are retrieved, but rank too low: rerank, or raise top_k and the number of contexts "
        "(R@10 is low, and R@50 is high: rank30 = rank31)\n"
    )
    assert f"\n\nwhat to try next\n{line}" in table
    (one,) = json.loads(rankbeam(*command, "--format", "json").stdout)["advice"]
    assert (one["configuration"], one["rule"], list(one["metrics"])) == (
        "rank30 = rank31",
        "rank_higher",
        ["R@10", "R@50"],
    )
    assert one["metrics"]["R@10"][0] == 0.0
    assert one["metrics"]["R@50"][0] == 1.0
    page = Page.of(report.build(find_run(str(tmp_path / "out"))))
    assert "What to try next" in page.text
    assert "R@10 is low, and R@50 is high: R@10 0.0000" in page.text
    result = api.score(qrels, runs, ["R@10", "R@50"])
    assert result.advice()["because"].to_pylist() == ["R@10 is low, and R@50 is high"]


@pytest.mark.parametrize("ranks", [(1,), (2, 3)])
def test_without_a_rule_that_holds_nothing_is_shown(tmp_path: Path, ranks: tuple[int, ...]) -> None:
    (qrels, *runs), metrics = arguments(tmp_path, *ranks)
    shown = rankbeam("score", qrels, *runs, *metrics, "--output", str(tmp_path / "out")).stdout
    run = find_run(str(tmp_path / "out"))
    for text in (shown, Page.of(report.build(run)).text):
        assert "R@10" in text
        assert "try next" not in text
    assert json.loads("".join(show.as_json(run)))["advice"] == []
    assert Result(run).advice().num_rows == 0
