"""A conversation in the HTML report, in headless Chromium: all turns with their answers, and links between them."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browsers import launched, needs_chromium
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write

pytestmark = needs_chromium

TURNS = {  # of two conversations; ids are not in the order of turns
    "z1": ("c1", 1, "Who <b>pays</b>?", "Owners pay."),
    "a2": ("c1", 2, "And when?", "Each month."),
    "m3": ("c1", 3, "How?", None),
    "k1": ("c2", 1, "Where is it?", "In billing."),
}


def run(folder: Path) -> Path:
    """The report of an experiment whose queries are turns; the third turn has no answer."""
    history: list[dict[str, str]] = []
    queries, answers = [], []
    for name, (conversation, turn, text, answer) in TURNS.items():
        history = [] if turn == 1 else history
        metadata = {"conversation": conversation, "turn": turn, **({"history": list(history)} if history else {})}
        queries.append({"_id": name, "text": text, "metadata": metadata})
        history += [{"role": "user", "text": text}, {"role": "assistant", "text": (answer or "?") + " So it is." * 60}]
        if answer is not None:
            answers.append({"query_id": name, "answer": answer, "contexts": [{"doc_id": "d", "text": "Owners pay."}]})
    write(folder / "queries.jsonl", "".join(json.dumps(row) + "\n" for row in queries))
    write(folder / "answers.jsonl", "".join(json.dumps(row) + "\n" for row in answers))
    text = """
name: chat
dataset: {queries: queries.jsonl, conversations: true}
services: {judge: {type: lexical}}
configurations:
  - {name: bot, answers: {type: replay, path: answers.jsonl}}
judge: {service: judge}
metrics: [Faithfulness]
max_failure_rate: 1
output: {path: out}
"""
    done = rankbeam("evaluate", write(folder / "e.yaml", text))
    assert done.status == 0, done.stderr
    return folder / "out" / "report.html"


@pytest.mark.parametrize("width", [1440, *in_campaigns(400)])
def test_an_open_query_shows_its_conversation_and_links_to_the_neighbours(tmp_path: Path, width: int) -> None:
    messages: list[str] = []
    with launched() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        for event in ("console", "pageerror", "dialog"):
            page.on(event, lambda message: messages.append(str(message)))  # type: ignore[call-overload]  # one for each name
        page.goto(run(tmp_path).as_uri())
        page.wait_for_selector("[data-ready]")
        page.locator("button.open", has_text="And when?").click()
        conversation = page.locator("#query-pane .conversation")
        expect(conversation.locator("summary")).to_have_text("Conversation c1, 3 turns in this page")
        expect(conversation.locator("li")).to_contain_text(
            ["user: Who <b>pays</b>?bot: Owners pay.", "user: And when?bot: Each month.", "user: How?bot: failed"]
        )
        expect(conversation.locator("li.here")).to_have_count(1)
        expect(conversation.locator("li.here a")).to_have_count(0)
        expect(page.locator("#query-pane .attributes")).to_contain_text("assistant: Owners pay. So it is.")
        expect(page.locator("#query-pane .attributes")).not_to_contain_text('{"role"')
        assert page.evaluate("document.documentElement.scrollWidth") == width
        conversation.get_by_role("link", name="next turn").click()
        expect(page.locator("#query-pane .conversation li.here").nth(-1)).to_contain_text("How?")
        assert "query=m3" in page.url
        page.locator("button.open", has_text="Where is it?").click()
        expect(page.locator("#query-pane .conversation")).to_have_count(0)  # one turn alone is no conversation
        page.screenshot(path=str(tmp_path / "page.png"), full_page=True)
    assert messages == []
