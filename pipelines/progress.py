"""Live progress on stderr: a moving line on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from transforms.records.counters import Counter, tallying

_TERMINAL_INTERVAL_S = 0.1
_PLAIN_INTERVAL_S = 5.0


@contextmanager
def shown(sources: int, configurations: int, stream: TextIO | None = None) -> Iterator[None]:
    """Show progress while the block runs, and the totals when it ends well.

    Args:
        sources: how many retrievers are asked.
        configurations: how many configurations are scored.
        stream: where; stderr by default.
    """
    out = sys.stderr if stream is None else stream
    if out is None:  # stderr is closed, as cron and daemons have it
        yield
        return
    began = time.monotonic()
    with tallying() as tally:

        def current() -> str:
            return line(tally(), sources, configurations, time.monotonic() - began)

        stop = threading.Event()
        show = _on_terminal if out.isatty() else _plain
        thread = threading.Thread(target=show, args=(out, stop, current), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        print(current(), file=out, flush=True)


def line(counts: dict[Counter, int], sources: int, configurations: int, seconds: float) -> str:
    """What is known, in one line.

    >>> line({Counter.JUDGED_QUERIES: 10, Counter.QUERIES_ASKED: 4}, 1, 2, 2.0)
    'asked 4/10 queries · scored 0/20 · 2/s · 0 failures · 2 s'
    """
    judged, asked = counts.get(Counter.JUDGED_QUERIES, 0), counts.get(Counter.QUERIES_ASKED, 0)
    scored, failures = counts.get(Counter.QUERIES_SCORED, 0), counts.get(Counter.FAILURES, 0)
    if not judged:
        rows = counts.get(Counter.ROWS_READ, 0)
        return f"read {rows:,} rows · {seconds:.0f} s" if rows else f"starting · {seconds:.0f} s"
    parts = [f"asked {asked:,}/{judged * sources:,} queries"] if sources else []
    parts += [f"scored {scored:,}/{judged * configurations:,}"]
    done = scored or asked
    parts += [f"{done / seconds:,.0f}/s"] if seconds > 0 else []
    return " · ".join([*parts, f"{failures:,} failures", f"{seconds:.0f} s"])


def _on_terminal(out: TextIO, stop: threading.Event, current: Callable[[], str]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    with Live(console=Console(file=out), transient=True, refresh_per_second=10) as live:
        spinner = Spinner("dots")
        while not stop.wait(_TERMINAL_INTERVAL_S):
            spinner.update(text=current())
            live.update(spinner)


def _plain(out: TextIO, stop: threading.Event, current: Callable[[], str]) -> None:
    while not stop.wait(_PLAIN_INTERVAL_S):
        print(current(), file=out, flush=True)
