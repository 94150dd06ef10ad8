"""The picture of the report in the README: `make picture` evaluates the demo and takes it anew.

python tests/support/picture.py REPORT.html PICTURE.webp
"""

import base64
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTH, HEIGHT = 1280, 860
QUALITY = 60  # of WebP: text stays sharp at 60 kB


def take(report: Path, picture: Path) -> None:
    """Write what a reader of the report sees first."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.absolute().as_uri())
        shot = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        picture.write_bytes(base64.b64decode(shot["data"]))
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
