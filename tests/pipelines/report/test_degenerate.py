"""Reports of runs in which there is little to draw: every picture has an axis, and every number of it is finite."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import trec_qrels, write
from support.pages import Page, degenerate_run
from support.runs import rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.report.svg import ticks, values_scale

NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "points", "viewBox")
SECOND_OF_TWO = 1 / math.log2(3)


def coordinates(page: Page) -> list[float]:
    """Every number that says where something is drawn."""
    words = [
        value for _, attributes in page.elements for name, value in attributes.items() if name in NUMBERS and value
    ]
    return [float(word) for value in words for word in re.split("[ ,]+", value)]


def axes(page: Page) -> list[str]:
    """The labels for screen readers of every axis of a leaderboard."""
    return [
        attributes["aria-label"] or "" for name, attributes in page.elements if attributes.get("class") == "bar axis"
    ]


@pytest.mark.long
@pytest.mark.parametrize("value", [0.0, 0.05, SECOND_OF_TWO, 0.5, 1.0, 5e-324, 12_000.0, math.nan])
@pytest.mark.parametrize("half_width", [0.0, 0.01])
@pytest.mark.parametrize(("queries", "configurations", "metrics"), [(1, 1, 1), (30, 3, 2)])
def test_values_that_are_all_equal(
    tmp_path: Path, value: float, half_width: float, queries: int, configurations: int, metrics: int
) -> None:
    results = degenerate_run(tmp_path, value, queries, configurations, metrics, half_width)
    page = Page.of(report.build(results))
    assert all(map(math.isfinite, coordinates(page)))
    if math.isnan(value):
        assert axes(page) == []
        assert "failed" in page.text
    else:
        assert len(axes(page)) == metrics
        assert all(len(set(re.findall(r"from (\S+) to (\S+)", label)[0])) == 2 for label in axes(page))


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=4))
def test_an_axis_holds_all_values_between_two_ticks_at_least(values: list[float]) -> None:
    scale = values_scale(values, 0.0, 100.0)
    marks = ticks(scale)
    assert 2 <= len(marks) <= 12
    slack = 1e-4 * max(1e-300, *values)
    assert scale.low - slack <= min(values) <= max(values) <= scale.high + slack


def test_a_run_in_which_every_query_has_its_only_document_at_rank_two(tmp_path: Path) -> None:
    queries = [f"q{number}" for number in range(40)]
    write(tmp_path / "qrels", trec_qrels([(query, "d", 1.0) for query in queries]))
    for name in ("a", "b"):
        rows = [f"{query} Q0 {doc} 1 {score} t\n" for query in queries for doc, score in (("other", 2), ("d", 1))]
        write(tmp_path / f"{name}.run", "".join(rows))
    write(
        tmp_path / "e.yaml",
        "name: e\ndataset: {qrels: qrels}\nmetrics: [nDCG@10, P@20]\noutput: {path: out}\nconfigurations:\n"
        "  - {name: a, retriever: {type: run_file, path: a.run}}\n"
        "  - {name: b, retriever: {type: run_file, path: b.run}}\n",
    )
    outcome = rankbeam("evaluate", tmp_path / "e.yaml")
    assert outcome.exit_code == 0, outcome.stderr
    assert (
        axes(Page.of((tmp_path / "out" / "report.html").read_text()))[1] == "Axis from 0.02 to 0.12"
    )  # the interval of equal values reaches further
