"""Progress in a notebook: one output of the cell, a bar and a line of text, which is replaced as the work goes on."""

import html
import sys
from collections.abc import Callable
from threading import Event

State = tuple[str, float | None]
"""Text of the progress, and the share of the work that is done, if known."""
Current = Callable[[], State]

_INTERVAL_S = 0.5
_STYLE = "white-space: pre-line; font-variant-numeric: tabular-nums"


def is_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this process, and not only IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar(text: str, share: float | None) -> str:
    """A bar that is filled to a share, or that only moves where none is known, with lines of text below it.

    >>> bar("scored 1/2", 0.5).partition("<div")[0]
    '<progress max="1" value="0.5" aria-label="progress"></progress>'
    """
    value = "" if share is None else f' value="{share:.4g}"'
    return f'<progress max="1"{value} aria-label="progress"></progress><div style="{_STYLE}">{html.escape(text)}</div>'


def follow(stop: Event, current: Current) -> None:
    """Show text and share until the event is set, and once more then."""
    from IPython.display import HTML, display

    shown = display(HTML(bar(*current())), display_id=True)
    while not stop.wait(_INTERVAL_S):
        shown.update(HTML(bar(*current())))
    shown.update(HTML(bar(*current())))
