"""The HTML report in headless Chromium: it works, is quick, loads nothing, and runs nothing that users wrote."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from support.browsers import TIMEOUT_MS, launched, needs_chromium, violations
from support.data import REPOSITORY
from support.pages import HOSTILE, degenerate_run, hostile_run, large_run
from support.runs import rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.labels.tasks import chosen_queries
from rankbeam.pipelines.results.run import Results

EXAMPLE = REPOSITORY / "examples" / "helpdesk" / "experiment.yaml"
pytestmark = needs_chromium


@dataclass
class Opened:
    """A page, and everything that it should not do.

    Attributes:
        page: the page.
        requests: addresses that were asked for.
        messages: messages of the console, errors, and dialogs.
    """

    page: Page
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Locator:
        """The buttons that open a query each."""
        return self.page.locator("button.open")

    def column(self, number: int) -> list[float]:
        """The values in a column of the table of queries; those that are missing are left out."""
        cells = self.page.locator(f"#query-rows > tr > td:nth-child({number})").all_inner_texts()
        return [float(cell.replace("−", "-").split()[0]) for cell in cells if cell[:1] in "+−0123456789"]

    def took_ms(self, name: str) -> float:
        """The last duration of an action in the page."""
        script = "name => performance.getEntriesByName(name).at(-1).duration"
        return float(self.page.evaluate(script, f"rankbeam:{name}"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    """The page in which one report after the other is opened: a new one costs more than most tests do in it."""
    tab = browser.new_context().new_page()
    tab.set_default_timeout(TIMEOUT_MS)
    return tab


@pytest.fixture
def opened(tab: Page, path: Path) -> Iterator[Opened]:
    """The report at `path`, opened; at the end it must have said nothing, and asked for nothing but itself."""
    opened_page = Opened(tab)
    listeners: dict[str, Callable[..., object]] = {
        "request": lambda request: opened_page.requests.append(request.url),
        "console": lambda message: opened_page.messages.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: opened_page.messages.append(str(error)),
        "dialog": lambda dialog: (opened_page.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)  # type: ignore[call-overload]  # one for each name
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.emulate_media(media="screen", color_scheme="light")
    tab.goto(path.as_uri())
    tab.wait_for_selector("[data-ready]")
    yield opened_page
    assert opened_page.messages == []
    assert [url for url in opened_page.requests if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    tab.evaluate("localStorage.clear()")
    tab.goto("about:blank")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Path:
    assert rankbeam("evaluate", EXAMPLE, "--output", folder / "demo", "--run-id", "demo").exit_code == 0
    return Path(report.write(Results(str(folder / "demo"), "demo")))


@pytest.fixture(scope="module")
def hostile(folder: Path) -> Path:
    return Path(report.write(hostile_run(folder / "hostile")))


@pytest.fixture(scope="module")
def large(folder: Path) -> Path:
    return Path(report.write(large_run(folder / "large", 10_000)))


@pytest.fixture(scope="module")
def without_values(folder: Path) -> Path:
    return Path(report.write(degenerate_run(folder / "without", float("nan"), queries=3)))


@pytest.fixture(scope="module")
def all_equal(folder: Path) -> Path:
    return Path(report.write(degenerate_run(folder / "equal", 0.63, queries=1)))


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Path:
    page_path: Path = request.getfixturevalue(getattr(request, "param", "demo"))
    return page_path


@pytest.mark.long
def test_queries_are_sorted_by_any_column(opened: Opened) -> None:
    assert len(opened.column(5)) == 20
    assert opened.column(5) == sorted(opened.column(5))  # the worst regressions come first
    heads = opened.page.locator("#query-head > *")
    for number, name in ((3, "bm25-body-only"), (4, "bm25"), (5, "Difference")):
        for direction in ("ascending", "descending"):
            heads.nth(number - 1).get_by_role("button").click()
            expect(heads.nth(number - 1)).to_have_attribute("aria-sort", direction)
            expect(heads.nth(number - 1).get_by_role("button")).to_be_focused()
            assert opened.column(number) == sorted(opened.column(number), reverse=direction == "descending")
        assert name in heads.nth(number - 1).inner_text()


def test_search_finds_words_and_ids(opened: Opened) -> None:
    opened.page.locator("#search").fill("PASSWORD")
    texts = opened.rows.all_inner_texts()
    assert 0 < len(texts) < 20
    assert all("password" in text.lower() for text in texts)
    assert f"{len(texts)} of 64 queries" in opened.page.locator("#found").inner_text()
    opened.page.locator("#search").fill("h052")
    expect(opened.rows).to_have_count(1)
    opened.page.locator("#search").fill("no query has these words")
    expect(opened.rows).to_have_count(0)
    opened.page.locator("#search").fill("")
    opened.page.locator("#outcome").select_option("worse")
    assert all(value < 0 for value in opened.column(5))
    assert "32 of 64 queries" in opened.page.locator("#found").inner_text()


def test_a_slice_is_chosen(opened: Opened) -> None:
    opened.page.locator("#slice").select_option(label="intent: policy")
    expect(opened.rows).to_have_count(13)


def test_pages_are_turned(opened: Opened) -> None:
    opened.page.locator("#last").click()
    expect(opened.page.locator("#page")).to_have_text("Page 4 of 4")
    expect(opened.rows).to_have_count(4)
    expect(opened.page.locator("#next")).to_be_disabled()


def test_the_metric_changes_everything_that_depends_on_it(opened: Opened) -> None:
    boards = opened.page.locator("#leaderboard [data-metric]")
    expect(boards.nth(0)).to_be_visible()
    expect(boards.nth(2)).to_be_hidden()
    opened.page.locator("#metric").select_option(label="RR@10")
    expect(boards.nth(2)).to_be_visible()
    expect(opened.page.locator("[data-metric]:visible")).to_have_count(3)  # leaderboard, comparisons, slices
    expect(boards.nth(0)).to_be_hidden()
    assert opened.page.locator("#distribution").inner_text().startswith("RR@10 of bm25-body-only minus bm25:")
    assert "RR@10" in opened.page.locator("#found").inner_text()


def test_another_pair_is_compared(opened: Opened) -> None:
    before = opened.page.locator("#distribution").inner_text()
    opened.page.locator("#swap").click()
    after = opened.page.locator("#distribution").inner_text()
    assert "worse at 32" in before
    assert "better at 32" in after
    opened.page.locator("#other").select_option(label="bm25-exact-words")
    assert "bm25 minus bm25-exact-words" in opened.page.locator("#distribution").inner_text()
    opened.page.locator("#one").select_option(label="bm25-exact-words")
    assert "two different" in opened.page.locator("#distribution").inner_text()


def test_the_theme_is_remembered(opened: Opened) -> None:
    def background() -> str:
        return str(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    opened.page.locator("#theme").click()
    dark = background()
    assert light != dark
    opened.page.reload()
    opened.page.wait_for_selector("[data-ready]")
    assert background() == dark
    opened.requests.pop()


def test_the_keyboard_reaches_regressions_and_opens_both_rankings(opened: Opened) -> None:
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.className") == "skip"
    opened.page.locator("#search").focus()
    for _ in range(20):
        opened.page.keyboard.press("Tab")
        if opened.page.evaluate("document.activeElement.matches('button.open')"):
            break
    expect(opened.rows.first).to_be_focused()
    opened.page.keyboard.press("Enter")
    expect(opened.page.locator("#query-pane")).to_be_focused()
    expect(opened.rows.first).to_have_attribute("aria-current", "true")
    rankings = opened.page.locator("#query-pane table.ranking")
    expect(rankings).to_have_count(2)
    assert rankings.nth(0).locator("tbody tr").count() == 20
    grades = [rankings.nth(side).locator("tbody tr .grade").all_inner_texts()[0] for side in (0, 1)]
    assert grades == ["0", "3"]  # of the worst regression, and of the baseline
    opened.page.get_by_role("button", name="Next query").click()
    expect(opened.rows.nth(1)).to_have_attribute("aria-current", "true")
    expect(opened.page.locator("#query-pane")).to_contain_text("2 of 64")
    opened.page.get_by_role("link", name="Back to the list").click()
    expect(opened.rows.nth(1)).to_be_focused()


def test_marks_and_comments_are_remembered_filtered_and_exported_for_labels(opened: Opened) -> None:
    page = opened.page
    assert page.locator("#export-marked").is_disabled()
    page.get_by_role("button", name="Mark h009").click()
    opened.rows.first.click()
    page.locator("#comment").fill('which <b>types</b>?\n"all"')
    expect(page.get_by_role("button", name="Mark h021").first).to_have_attribute("aria-pressed", "true")
    page.reload()
    page.wait_for_selector("[data-ready]")
    page.locator("#only-marked").check()
    expect(opened.rows).to_have_count(2)
    assert page.locator("#comment").input_value() == 'which <b>types</b>?\n"all"'
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export 2 marked queries").click()
    assert waiting.value.suggested_filename == "marked-demo.jsonl"
    rows = [json.loads(line) for line in Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()]
    assert {row["query_id"]: row["comment"] for row in rows} == {"h021": 'which <b>types</b>?\n"all"', "h009": ""}
    assert chosen_queries(str(waiting.value.path())) == [row["query_id"] for row in rows]
    page.get_by_role("button", name="Mark h009").click()
    expect(page.locator("#export-marked")).to_have_text("Export 1 marked query")
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("[data-ready]")
    page.get_by_role("button", name="Mark h009").click()
    expect(other.locator("#export-marked")).to_have_text("Export 2 marked queries")
    other.close()
    opened.requests.pop()


@pytest.mark.parametrize("width", [1440, 800, 400])
def test_no_comparison_is_cut(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    for table in opened.page.locator("#comparisons table:visible").all():
        assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth + 1")


def test_leaderboards_are_sorted(opened: Opened) -> None:
    head = opened.page.locator("#leaderboard [data-metric='0'] th", has_text="Mean")
    head.get_by_role("button").click()
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    cells = opened.page.locator("#leaderboard [data-metric='0'] tbody td.strong").all_inner_texts()
    assert cells == sorted(cells)


def test_the_page_fits_a_narrow_window_and_paper(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 400, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.emulate_media(media="print")
    expect(opened.page.locator(".toolbar")).to_be_hidden()
    expect(opened.page.locator("#leaderboard")).to_be_visible()


def download(opened: Opened, name: str) -> list[list[str]]:
    with opened.page.expect_download() as waiting:
        opened.page.get_by_role("button", name=name).click()
    assert waiting.value.suggested_filename == name
    content = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(content, newline="")))


def test_csv_files_hold_the_values_of_the_tables(opened: Opened, demo: Path) -> None:
    results = Results(str(demo.parent), "demo")
    head, *rows = download(opened, "per_query.csv")
    assert head == ["configuration", "query_id", "text", "status", "difficulty", "intent", *results.metrics]
    values = {(row[0], row[1]): [float(cell) for cell in row[6:]] for row in rows}
    assert values == {
        (row["name"], query["query_id"]): list(query["metrics"].values())
        for row in results.configurations
        for query in results.query_metrics(row["config_id"])
    }
    head, *rows = download(opened, "leaderboard.csv")
    assert len(rows) == results.table("configuration_metrics").num_rows
    assert {"configuration", "slice", "metric", "mean", "ci_low", "ci_high"} <= set(head)
    head, *rows = download(opened, "comparisons.csv")
    assert len(rows) == results.table("comparisons").num_rows


@pytest.mark.parametrize("path", ["hostile"], indirect=True)
def test_hostile_texts_are_shown_and_never_run(opened: Opened) -> None:
    for place in range(len(HOSTILE)):
        opened.rows.nth(place).click()
        opened.page.locator("#comment").fill(HOSTILE[place])
    opened.page.locator("#swap").click()
    opened.page.locator("#metric").select_option("1")
    for summary in opened.page.locator("summary:visible").all():
        summary.click()
    opened.page.locator("#search").fill("<script>alert(1)")
    expect(opened.rows).to_have_count(1)
    assert "<script>alert(1)</script>" in opened.rows.first.inner_text()
    opened.page.locator("#search").fill("")
    shown = opened.page.locator("body").inner_text()
    for words in (*HOSTILE[:5], *HOSTILE[6:8]):
        assert words in shown
    assert opened.page.locator("img, iframe, body style, body script:not(#data)").count() == 0
    assert opened.page.locator("svg[onload]").count() == 0


@pytest.mark.parametrize("path", ["hostile"], indirect=True)
def test_a_spreadsheet_runs_no_formula(opened: Opened) -> None:
    rows = download(opened, "per_query.csv")
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "@", "\t", "\r")]
    assert "'-->]]><!--<style>*{display:none}</style>" in {cell for row in rows for cell in row}


@pytest.mark.parametrize("path", ["large"], indirect=True)
def test_ten_thousand_queries_answer_at_once(opened: Opened, record_property: Callable[[str, object], None]) -> None:
    assert "10,000 queries" in opened.page.locator("#found").inner_text()
    opened.page.locator("#search").fill("number 9999 ")
    expect(opened.rows).to_have_count(1)
    opened.page.locator("#search").fill("")
    opened.page.locator("#query-head th").nth(1).get_by_role("button").click()
    assert opened.column(3) == sorted(opened.column(3))
    opened.page.locator("#metric").select_option("3")
    assert opened.page.locator("#query-rows > tr").count() == 20
    for name in ("start", "search", "sort", "choose"):
        record_property(f"{name}_ms", opened.took_ms(name))
        assert opened.took_ms(name) < 5_000  # a generous bound: it is some tens of milliseconds


@pytest.mark.parametrize("path", ["without_values", "all_equal"], indirect=True)
def test_the_histogram_of_a_run_without_any_difference(opened: Opened) -> None:
    assert opened.page.locator("#histogram svg").count() == 1
    drawn = opened.page.locator("#histogram").inner_html()
    assert "NaN" not in drawn
    assert "Infinity" not in drawn
    opened.page.locator("#swap").click()
    assert "better at 0 queries" in opened.page.locator("#distribution").inner_text()


def test_the_address_leads_to_the_same_choice_and_to_a_query(opened: Opened) -> None:
    page = opened.page
    page.locator("#metric").select_option(label="R@10")
    page.locator("#other").select_option(label="bm25-body-only")
    page.locator("#search").fill("invoice")
    opened.rows.first.click()
    link = page.locator("#query-pane a.anchor").get_attribute("href")
    assert link is not None
    shown = page.locator("#query-pane h3").inner_text()
    page.goto("about:blank")
    page.goto(opened.requests[0].partition("#")[0] + link)
    page.wait_for_selector("[data-ready]")
    expect(page.locator("#metric option:checked")).to_have_text("R@10")
    expect(page.locator("#other option:checked")).to_have_text("bm25-body-only")
    expect(page.locator("#search")).to_have_value("invoice")
    assert page.locator("#query-pane h3").inner_text() == shown
    del opened.requests[1:]


def test_configurations_are_filtered_by_parameter_and_a_phone_scrolls_no_page_sideways(opened: Opened) -> None:
    page = opened.page
    page.locator("[data-parameter]").nth(1).select_option(label="none")
    expect(page.locator("#overview tbody tr:visible")).to_have_count(1)
    expect(page.locator("#filtered")).to_have_text("1 of 3 configurations")
    for width in (1440, 400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
@pytest.mark.parametrize("path", ["demo"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opened, scheme: Literal["light", "dark"]) -> None:
    opened.page.emulate_media(color_scheme=scheme)
    assert not violations(opened.page)
