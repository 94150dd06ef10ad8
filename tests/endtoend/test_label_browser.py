"""The page to label in, in headless Chromium: its keys, what it keeps, what it exports, and whom it shuts out."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browsers import TIMEOUT_MS, launched, needs_chromium, violations
from support.cli import rankbeam
from support.pages import ALL_HOSTILE, HOSTILE

from rankbeam.pipelines.labels.draw import LabelSample
from rankbeam.pipelines.labels.items import LabelTask
from rankbeam.pipelines.labels.tasks import write_tasks
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.records.labels import item_id_of, text_hash

pytestmark = needs_chromium

SUPPORT = ("contradicted", "not_stated", "supported")
GRADES = ("0", "1", "2", "3")
WORDS = ("Yes", "so so", "no")
LONG = "A paragraph about tides, glass and bees. " * 60


def task(number: int, decisions: tuple[str, ...], text: str, claim: str | None = None) -> LabelTask:
    """An item of one query each."""
    step = {SUPPORT: "support", GRADES: "grade"}.get(decisions, "criterion:Tone")
    left, right = None if claim is None else text_hash(claim), text_hash(text)
    item_id = item_id_of(step, f"q{number}", left, right)
    query, question = f"what of glass {number}", "" if step != "criterion:Tone" else "Is it polite?"
    return LabelTask(
        item_id, step, f"q{number}", query, None, None, left, claim, right, text, 0.5, question or None, decisions
    )


TASKS = [
    task(0, SUPPORT, LONG, "Glass is made of sand."),
    replace(task(1, SUPPORT, "Short.", "Bees dance."), history=f"user: Do bees sing?\nassistant: {HOSTILE[0]} {LONG}"),
    task(2, GRADES, LONG),
    task(3, WORDS, f"{ALL_HOSTILE} {LONG}"),
    task(4, WORDS, "Thank you.", HOSTILE[0]),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_tasks(str(tmp_path / "out"), TASKS, LabelSample("Faithfulness", ("one",)))
    return tmp_path / "out"


@pytest.fixture
def page(browser: Browser, out: Path) -> Iterator[Page]:
    """The page; at the end it must have said nothing, and asked for nothing but itself."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(TIMEOUT_MS)
    page, path = context.new_page(), out / "label-tasks" / "tasks-001.html"
    unwanted: list[str] = []
    page.on("console", lambda message: unwanted.append(message.text))
    page.on("pageerror", lambda error: unwanted.append(str(error)))
    page.on("dialog", lambda dialog: (unwanted.append(dialog.message), dialog.dismiss()))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or unwanted.append(request.url)
    )
    page.goto(path.as_uri())
    yield page
    assert unwanted == []
    context.close()


def test_earlier_turns_are_above_the_question_of_their_item_alone(page: Page) -> None:
    box = page.locator("#history-box")
    expect(box).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(box).to_contain_text("user: Do bees sing?")
    expect(box).to_be_visible()
    assert box.bounding_box()["y"] < page.locator("#query-box").bounding_box()["y"]
    page.keyboard.press("ArrowRight")
    expect(box).to_be_hidden()


def pressed(page: Page) -> list[str]:
    return page.locator("#decisions button[aria-pressed=true]").all_inner_texts()


def test_keys_decide_go_back_and_take_back(page: Page) -> None:
    state = page.locator("#state")
    expect(state).to_have_text("Item 1 of 5, 0 decided")
    page.keyboard.press("3")
    expect(state).to_have_text("Item 2 of 5, 1 decided")
    page.keyboard.press("4")  # there are three decisions
    expect(state).to_have_text("Item 2 of 5, 1 decided")
    page.keyboard.press("ArrowLeft")
    expect(state).to_have_text("Item 1 of 5, 1 decided")
    assert pressed(page) == ["3 · supported"]
    page.keyboard.press("Backspace")
    expect(state).to_have_text("Item 1 of 5, 0 decided")
    assert pressed(page) == []
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("0")  # of grades the keys are the grades
    page.keyboard.press("2")
    expect(state).to_have_text("Item 5 of 5, 2 decided")
    page.keyboard.press("ArrowLeft")
    assert pressed(page) == ["2 · so so"]
    page.keyboard.press("ArrowLeft")
    assert pressed(page) == ["0"]


def test_letters_of_names_and_comments_decide_nothing(page: Page) -> None:
    page.locator("#annotator").fill("Ann 3")
    page.locator("#comment").focus()
    page.keyboard.type("12 of 3")
    page.keyboard.press("Backspace")
    expect(page.locator("#state")).to_have_text("Item 1 of 5, 0 decided")
    expect(page.locator("#comment")).to_have_value("12 of ")


def test_whoever_uses_tab_and_enter_keeps_the_place(page: Page) -> None:
    button = page.locator("#decisions button")
    button.nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Item 2 of 5, 1 decided")
    expect(button.nth(1)).to_be_focused()


def test_progress_is_kept_and_the_export_is_read_by_apply(page: Page, out: Path) -> None:
    page.locator("#annotator").fill("Ann")
    page.locator("#comment").fill("clear")
    page.locator("#comment").blur()
    for key in "31":
        page.keyboard.press(key)
    expect(page.locator("#state")).to_have_text("Item 3 of 5, 2 decided")
    for _ in range(20):  # what one process of a browser stores, the next one sees only after a moment
        page.reload()
        if page.locator("#state").text_content() == "Item 3 of 5, 2 decided":
            break
        page.wait_for_timeout(250)
    expect(page.locator("#state")).to_have_text("Item 3 of 5, 2 decided")
    expect(page.locator("#annotator")).to_have_value("Ann")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    page.locator("#open").click()
    expect(page.locator("#state")).to_have_text("Item 3 of 5, 3 decided")
    with page.expect_download() as download:
        page.locator("#export").click()
    assert download.value.suggested_filename == "tasks-001-Ann.jsonl"
    path = out.parent / "exported.jsonl"
    download.value.save_as(path)
    applied = rankbeam("label", str(out), "--apply", str(path))
    assert applied.status == 0, applied.stderr
    assert "3 of 5 drawn queries are completely labelled" in applied.stdout
    labels = {row.item_id: row for row in read_labels(str(out / "labels")).rows}
    expected = {0: "supported", 1: "contradicted", 3: "so so"}
    assert {item: row.decision for item, row in labels.items()} == {
        TASKS[number].item_id: decision for number, decision in expected.items()
    }
    assert {row.annotator for row in labels.values()} == {"Ann"}
    assert labels[TASKS[0].item_id].comment == "clear"


def test_two_tabs_lose_no_decision_of_each_other(page: Page) -> None:
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#state")).to_have_text("Item 1 of 5, 0 decided")
    assert other.evaluate("localStorage.length") == 0, "a page that only opens stores nothing"
    page.locator("#annotator").fill("Ann")
    page.locator("#annotator").blur()
    for key in "31":
        page.keyboard.press(key)
    expect(other.locator("#state")).to_have_text("Item 1 of 5, 2 decided")
    expect(other.locator("#annotator")).to_have_value("Ann")
    other.locator("#open").click()
    other.keyboard.press("2")
    expect(other.locator("#state")).to_have_text("Item 4 of 5, 3 decided")
    expect(page.locator("#state")).to_have_text("Item 3 of 5, 3 decided")
    page.keyboard.press("ArrowLeft")
    assert pressed(page) == ["1 · contradicted"]


def test_texts_are_shown_as_they_are(page: Page) -> None:
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#text").text_content() == TASKS[3].right_text
    page.keyboard.press("ArrowRight")
    assert page.locator("#claim").text_content() == HOSTILE[0]


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, out: Path) -> None:
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('none'); }})")
    page = context.new_page()
    page.goto((out / "label-tasks" / "tasks-001.html").as_uri())
    page.keyboard.press("1")
    expect(page.locator("#state")).to_have_text(
        "Item 2 of 5, 1 decided. This browser keeps nothing: export before you close the page."
    )
    context.close()


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, scheme: Literal["light", "dark"], width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    for number in range(len(TASKS)):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        page.keyboard.press("1" if number % 2 else "ArrowRight")
