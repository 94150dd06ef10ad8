"""The report in headless Chromium: what its tables put first, and links that hold in the report of a later run."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from playwright.sync_api import Page, expect
from support.browsers import launched, needs_chromium
from support.data import REPOSITORY
from support.inputs import trec_qrels, trec_run, write
from support.pages import ArrayRun
from support.runs import rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results

pytestmark = needs_chromium
STEPS = ArrayRun(
    queries=[(f"q{place}", "text") for place in range(3)],
    configurations=["base", "new"],
    metrics=["Steps"],
    values=np.array([[[3.0], [3.0], [3.0]], [[5.0], [1.0], [4.0]]]),
    documents=None,
    slices=("group", ["a", "b", "b"]),
    words="steps",
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with launched() as browser:
        yield browser.new_page()


def show(page: Page, results: Results, link: str = "") -> None:
    page.goto("about:blank")
    page.goto(Path(report.write(results)).as_uri() + link)
    page.wait_for_selector("[data-ready]")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Results:
    output = tmp_path_factory.mktemp("demo")
    example = REPOSITORY / "examples" / "helpdesk" / "experiment.yaml"
    assert rankbeam("evaluate", example, "--output", output, "--run-id", "demo").exit_code == 0
    return Results(str(output), "demo")


@pytest.mark.long
def test_a_metric_of_the_overview_sorts_by_its_means(page: Page, demo: Results) -> None:
    show(page, demo)
    page.locator("#overview th", has_text="nDCG@10").get_by_role("button").click()
    assert page.locator("#overview tbody th").all_inner_texts() == [row["name"] for row in demo.leaderboard()]


def test_the_worst_are_first_and_red_if_lower_is_better(page: Page, tmp_path: Path) -> None:
    show(page, STEPS.write(tmp_path))
    expect(page.locator("#query-rows tr")).to_have_count(3)
    rows = page.locator("#query-rows tr").all()
    assert [row.get_attribute("data-query") for row in rows] == ["0", "2", "1"]
    kinds = [row.locator("td").last.get_attribute("class") or "" for row in rows]
    assert [kind.split()[-1] for kind in kinds] == ["loss", "loss", "win"]


def test_a_link_leads_to_the_same_slice_of_a_later_run(page: Page, tmp_path: Path) -> None:
    show(page, STEPS.write(tmp_path / "one"))
    page.locator("#slice").select_option(label="group: b")
    link = "#" + page.url.partition("#")[2]
    later = replace(STEPS, slices=("group", ["b", "a", "a"])).write(tmp_path / "two")
    show(page, later, link)
    expect(page.locator("#slice option:checked")).to_have_text("group: b")
    expect(page.locator("#query-rows tr")).to_have_count(1)


@pytest.mark.long
def test_a_document_after_the_shown_ranks_is_not_said_to_be_retrieved(page: Page, tmp_path: Path) -> None:
    runs = {"one": [f"d{rank}" for rank in range(25)], "other": ["d1", *(f"x{rank}" for rank in range(22)), "d0"]}
    experiment = {
        "name": "ranks",
        "dataset": {"qrels": write(tmp_path / "qrels.txt", trec_qrels([("q", "d0", 1.0)]))},
        "configurations": [
            {"name": name, "retriever": {"type": "run_file", "path": write(tmp_path / f"{name}.run", trec_run(rows))}}
            for name, run in runs.items()
            if (rows := [("q", doc_id, -float(rank)) for rank, doc_id in enumerate(run)])
        ],
        "metrics": ["RR"],
        "output": {"path": str(tmp_path / "out"), "rankings": True},
    }
    assert rankbeam("evaluate", write(tmp_path / "e.yaml", yaml.safe_dump(experiment))).exit_code == 0
    show(page, find_run(str(tmp_path / "out")))
    cells = page.locator("#query-pane table.ranking", has_text="one: RR").locator("[data-label='other rank']")
    assert cells.all_inner_texts() == ["not in first 20", "#1", *["not in first 20"] * 18]
