"""The site of docs/: every page is built without a warning, and its examples are shown as examples."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from support.browsers import launched, needs_chromium, violations
from support.campaigns import in_campaigns
from support.site_versions import LATEST, add

REPOSITORY = Path(__file__).parents[1]


_EXAMPLE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        [*command, "--config-file", "mkdocs.yml"], cwd=REPOSITORY, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_no_page_shows_markdown(built_site: Path) -> None:
    pages = {path.parent.name: path.read_text(encoding="utf-8") for path in built_site.glob("*/index.html")}
    prose = {name: _TAG.sub("", _EXAMPLE.sub("", page)) for name, page in pages.items()}
    assert "gates" in pages
    shown = {
        name: sign
        for name, text in prose.items()
        for sign in ("```", "**", "](", "\n| ", "\n- ", "\n## ", "\n### ")
        if sign in text
    }
    assert shown == {}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address(built_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site as it is published: the latest version beside two releases, over HTTP."""
    pages = tmp_path_factory.mktemp("pages")
    assert add(built_site, pages, "v0.9.0") == ["v0.9.0"]
    assert add(built_site, pages, LATEST) == [LATEST, "v0.9.0"]
    assert add(built_site, pages, "v0.10.0") == [LATEST, "v0.10.0", "v0.9.0"]
    assert json.loads((pages / "versions.json").read_text()) == [LATEST, "v0.10.0", "v0.9.0"]
    assert "url=v0.10.0/" in (pages / "index.html").read_text()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(pages))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{LATEST}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


def test_a_version_that_is_neither_latest_nor_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="neither latest nor a release"):
        add(tmp_path, tmp_path / "pages", "../elsewhere")


def from_elsewhere(page: Page) -> list[str]:
    """The addresses of other sites that a page asks for from now on."""
    addresses: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:")):
            addresses.append(request.url)

    page.on("request", note)
    return addresses


@needs_chromium
@pytest.mark.parametrize("scripts", [False, *in_campaigns(True)])
def test_every_page_fits_a_phone_and_loads_nothing_from_elsewhere(
    built_site: Path, address: str, browser: Browser, *, scripts: bool
) -> None:
    """Without scripts a page takes half the time; they are the same on every page."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, java_script_enabled=scripts)
    page = context.new_page()
    elsewhere, wide = from_elsewhere(page), {}
    for path in sorted(built_site.glob("*/index.html")):
        page.goto(f"{address}{path.parent.name}/")
        if (width := page.evaluate("document.documentElement.scrollWidth")) > 390:
            wide[path.parent.name] = width
    assert (wide, elsewhere) == ({}, [])
    context.close()


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["start", *in_campaigns("", "experiment", "report", "beside", "tables", "python")])
def test_axe_finds_nothing(address: str, browser: Browser, name: str, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{address}{name}/".replace("//", "/").replace(":/", "://"))
    assert violations(page) == []
    context.close()


@needs_chromium
def test_versions_can_be_chosen_and_pages_searched(address: str, browser: Browser) -> None:
    page = browser.new_page()
    elsewhere = from_elsewhere(page)
    page.goto(f"{address}gates/")
    page.locator("#versions").select_option("v0.9.0")
    page.wait_for_url("**/v0.9.0/")
    expect(page.locator("#versions")).to_have_value("v0.9.0")
    with page.expect_console_message(lambda message: "search ready" in message.text):
        page.goto(f"{address}gates/")
    page.locator('[data-bs-target="#properdocs_search_modal"]').first.click()
    page.locator("#properdocs-search-query").press_sequentially("bootstrap")
    expect(page.locator("#properdocs-search-results article").first).to_be_visible()
    assert elsewhere == []
    page.close()
