"""Links of the site that leave docs/ lead to the repository. ProperDocs calls the hook for every page.

A page says `../deploy/README.md`, which is right in a clone and on GitHub, and which a test checks.
"""

import re
from typing import Any

_OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")


def on_page_markdown(markdown: str, config: Any, **_: object) -> str:
    """The page with absolute links where they leave the folder."""
    return _OUTSIDE.sub(rf"]({config['repo_url']}/blob/main/\1)", markdown)
