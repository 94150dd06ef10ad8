"""The page on the coverage of a benchmark, in headless Chromium."""

from pathlib import Path

from support.browsers import launched, needs_chromium, violations
from support.data import REPOSITORY
from support.runs import rankbeam

pytestmark = needs_chromium


def test_it_fits_a_phone_and_axe_finds_nothing(tmp_path: Path) -> None:
    example = REPOSITORY / "examples" / "goldens" / "helpdesk.yaml"
    assert rankbeam("goldens", example, "--output", tmp_path / "out").exit_code == 0
    with launched() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.goto((tmp_path / "out" / "coverage.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert violations(page) == []
