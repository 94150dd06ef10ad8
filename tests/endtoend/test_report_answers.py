"""Answers in the HTML report, in headless Chromium: side by side, with what each claim rests on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browsers import launched, needs_chromium
from support.campaigns import in_campaigns
from support.offline_experiment import DOCUMENTS, QUESTIONS, answered
from support.runs import run_experiment

from rankbeam.pipelines import report

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose answers cite and hold markup."""
    folder = tmp_path_factory.mktemp("answered")
    experiment = answered(folder)
    corpus = folder / "answered-corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("An admin", "<b onclick=alert(1)>An admin"))
    return Path(report.write(run_experiment(folder, experiment)))


@pytest.fixture(params=[1440, *in_campaigns(400)])
def page(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    messages: list[str] = []
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    for event in ("console", "pageerror", "dialog"):
        page.on(event, lambda message: messages.append(str(message)))  # type: ignore[call-overload]  # one for each name
    page.goto(path.as_uri())
    page.wait_for_selector("[data-ready]")
    yield page
    page.close()
    assert messages == []


def test_a_claim_shows_what_supports_it_when_it_is_opened(page: Page) -> None:
    page.locator("button.open", has_text="When do keys expire").click()
    detail = page.locator("#query-pane")
    expect(detail.locator(".answers h4")).to_have_text(["first-3", "first-1"])
    expect(detail).to_contain_text("Reference answer: Keys expire after ninety days.")
    expect(detail).to_contain_text("judge=lexical: word overlap, no language model")
    expect(detail.locator("mark.claim-supported").first).to_contain_text("Keys expire after ninety days [1].")
    evidence = detail.locator(".claims .evidence blockquote").first
    expect(evidence).to_be_hidden()
    detail.locator(".claims summary").first.click()
    expect(evidence).to_be_visible()
    expect(evidence).to_contain_text(DOCUMENTS["keys"].replace("An", "<b onclick=alert(1)>An"))
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]  # type: ignore[index]


@pytest.mark.long
@pytest.mark.parametrize("names", [("logged",), *in_campaigns((("one", "twin"),))])
def test_contexts_without_ids_are_no_empty_ranking(browser: Browser, tmp_path: Path, names: tuple[str, ...]) -> None:
    """Two configurations with equal values are one, and there is nothing to compare."""
    contexts = [{"text": "Keys expire."}, {"text": "Bills are sent."}, {"text": "Seats are not paid back."}]
    steps = [{"tool": "find", "args": {"q": "<b>é</b>"}, "status": "ok"}, {"tool": "tell"}]
    row = {"answer": "Keys expire.", "contexts": contexts, "steps": steps}
    rows = [{"query_id": name, **row} for name in QUESTIONS]
    for name in names:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    experiment = answered(tmp_path) | {
        "configurations": [
            {"name": name, "answers": {"type": "replay", "path": str(tmp_path / f"{name}.jsonl")}} for name in names
        ],
        "metrics": ["Faithfulness"],
    }
    report_path = Path(report.write(run_experiment(tmp_path, experiment)))
    page = browser.new_page()
    page.goto(report_path.as_uri())
    page.locator("button.open").first.click()
    detail = page.locator("#query-pane")
    expect(detail).to_contain_text("3 contexts")
    expect(detail).not_to_contain_text("Nothing was retrieved")
    expect(detail).to_contain_text("The contexts of the answer have no doc_id, so they are not a ranking.")
    expect(detail).to_contain_text("[1] (no doc_id)")
    detail.locator("summary", has_text="2 calls of tools").first.click()
    expect(detail).to_contain_text('find({"q": "<b>é</b>"}) · ok')
    expect(detail).to_contain_text("tell({})")
    page.close()
