"""Headless Chromium, and axe-core, which finds what keeps people from using a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TIMEOUT_MS = 30_000
expect.set_options(timeout=TIMEOUT_MS)  # not 5 s: the machine may be busy
_AXE = Path.home() / ".cache" / "rankbeam" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"),
    reason="there is no Chromium; install one, such as with apt-get install chromium",
)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser."""
    assert CHROMIUM is not None, "CI is set, and there is no Chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def violations(page: Page) -> list[str]:
    """The rules of axe that a page breaks, each with the elements; skips the test where axe is not installed."""
    if not _AXE.exists():
        how = "make axe installs it" if shutil.which("npm") else "install npm, then run make axe"
        pytest.skip(f"axe-core is missing: {how}")
    page.evaluate(_AXE.read_text("utf-8"))
    broken = page.evaluate("axe.run().then(result => result.violations)")
    return [f"{rule['id']}: {[node['html'] for node in rule['nodes']]}" for rule in broken]
