"""Rewrites links that GitHub understands and Python-Markdown does not. ProperDocs calls the hook for every page.

A page says `../deploy/README.md`, which is right in a clone and on GitHub, and which a test checks: on the site such
links lead to the repository. Behind the language of an example a page names the file that it is, for the tests of the
examples: Python-Markdown would take that for text.
"""

import re
from typing import Any

_OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")
_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)


def on_page_markdown(markdown: str, config: Any, **_: object) -> str:
    """The page with absolute links where they leave the folder, and with plain fences."""
    plain = _FENCE.sub(r"\1", markdown)
    return _OUTSIDE.sub(rf"]({config['repo_url']}/blob/main/\1)", plain)


def on_post_page(output: str, **_: object) -> str:
    """The page for people who use a keyboard or a screen reader: what scrolls can be focused, the bar is a landmark."""
    for name in ("pre", "table"):
        output = output.replace(f"<{name}>", f'<{name} tabindex="0">')
    return output.replace(
        '<div class="navbar fixed-top', '<div role="navigation" aria-label="Site" class="navbar fixed-top', 1
    )
