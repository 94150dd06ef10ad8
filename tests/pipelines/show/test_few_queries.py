"""Over fewer than 20 queries every interval is marked as unreliable, wherever it is shown."""

import json
from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.pages import Page

import rankbeam as api
from rankbeam.pipelines import report, show
from rankbeam.pipelines.results.find import find_run

UNRELIABLE = "‡ fewer than 20 queries or clusters: the interval is unreliable"


def scored(folder: Path, queries: int) -> tuple[str, str, str, str]:
    """The arguments of `score` for so many judged queries and two runs of them."""
    names = [f"q{number}" for number in range(queries)]
    qrels = write(folder / "qrels", trec_qrels([(name, "d", 1.0) for name in names]))
    ranks = [
        [(name, "d" if place % modulus else "other", 1.0) for place, name in enumerate(names)] for modulus in (2, 3)
    ]
    runs = [write(folder / f"{number}.run", trec_run(rows)) for number, rows in enumerate(ranks)]
    return "score", qrels, *runs


@pytest.mark.parametrize(("queries", "is_marked"), [(19, True), *in_campaigns((20, False))])
def test_intervals_are_marked_everywhere(tmp_path: Path, queries: int, is_marked: bool) -> None:
    arguments = [*scored(tmp_path, queries), "-m", "RR", "--output", str(tmp_path / "out")]
    table = rankbeam(*arguments).stdout
    run = find_run(str(tmp_path / "out"))
    shown = [
        table,
        show.as_markdown(run),
        rankbeam("compare", str(tmp_path / "out")).stdout,
        rankbeam("compare", str(tmp_path / "out"), "--format", "markdown").stdout,
        Page.of(report.build(run)).text,
    ]
    assert [UNRELIABLE in text for text in shown] == [is_marked] * len(shown)
    assert [text.count("‡") > 1 for text in shown] == [is_marked] * len(shown)
    assert ("fewer than 20 queries" in show.as_latex(run)) == is_marked
    document = json.loads("".join(show.as_json(run)))
    assert document["leaderboard"][0]["slices"]["all"]["RR"]["few_queries"] == is_marked
    result = api.score(arguments[1], arguments[2:4], ["RR"])
    assert result.leaderboard()["few_queries"].to_pylist() == [is_marked] * 2
    assert (UNRELIABLE in result._repr_html_()) == is_marked
    compared = json.loads(rankbeam("compare", str(tmp_path / "out"), "--format", "json").stdout)
    assert compared["comparisons"][0]["few_queries"] == is_marked
    gates = write(tmp_path / "gates.yaml", "gates: [{metric: RR, value: low, at_least: 0}]")
    checks = json.loads(rankbeam("gate", str(tmp_path / "out"), "--experiment", gates, "--format", "json").stdout)
    reason = "fewer than 20 queries or clusters: the interval is unreliable" if is_marked else ""
    assert [check["reason"] for check in checks["checks"]] == [reason] * 2
