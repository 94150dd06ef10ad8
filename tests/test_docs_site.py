"""The site of docs/: every page is built without a warning, and its examples are shown as examples."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    shown = {name: sign for name, text in prose.items() for sign in ("```", "**", "](", "\n| ", "\n- ") if sign in text}
    assert shown == {}
