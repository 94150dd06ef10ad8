"""The words of the command that this process carries out: the threads of a run have no context of click's."""

import re
import shlex
from collections.abc import Sequence

_SECRET = re.compile(r"(--[\w-]*(?:key|token|secret|password)[\w-]*=)(.+)", re.IGNORECASE)
_words: list[str] = []


def remember(words: Sequence[str]) -> None:
    """Keep the words behind the program's name."""
    _words[:] = words


def written() -> str:
    """The command as a shell takes it, without secrets; empty where Python code began the work.

    >>> remember(["evaluate", "my file.yaml", "--api_key=abc"]); written()
    "rankbeam evaluate 'my file.yaml' '--api_key=…'"
    >>> remember([]); written()
    ''
    """
    return shlex.join(["rankbeam", *(_SECRET.sub(r"\1…", word) for word in _words)]) if _words else ""
