"""Live progress: moving lines in a terminal, a bar in a notebook, and one line a minute on stderr elsewhere."""

import contextvars
import html
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TextIO

from rankbeam.transforms.clients.calls.tally import tallying
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import pluralize

_TERMINAL_INTERVAL_S = 0.1
_PLAIN_INTERVAL_S = 60.0
_RATE_OVER_S = 10.0
_WORDS = {
    Counter.JUDGED_QUERIES: "judged queries",
    Counter.ROWS_READ: "rows read",
    Counter.TEXTS_EMBEDDED: "texts embedded in process",
    Counter.PAIRS_SCORED: "texts scored in process",
    Counter.QUERIES_ASKED: "queries answered in process",
    Counter.CALLS_PLANNED: "calls planned",
    Counter.LEDGER_HITS: "answered by the ledger",
    Counter.CALLS_MADE: "calls made",
    Counter.RETRIES: "retries",
    Counter.CALLS_DONE: "calls done",
    Counter.CALLS_FAILED: "calls failed",
    Counter.FAILURES: "queries without an answer",
    Counter.QUERIES_SCORED: "queries scored",
    Counter.COMPARISONS: "pairs of means compared",
    Counter.RUNS_MISSED: "runs that miss a limit",
    Counter.THROTTLED_S: "seconds that lanes waited",
}
State = tuple[str, float | None]  # text of the progress, and the share of the work that is done, if known
Current = Callable[[], State]

_INTERVAL_S = 0.5
_STYLE = "white-space: pre-line; font-variant-numeric: tabular-nums"


@dataclass
class Progress:
    """The work of a run, and its recent speed."""

    sources: int
    configurations: int
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    _seen: deque[tuple[float, Counts]] = field(default_factory=deque)

    def lines(self, counts: Counts, seconds: float) -> list[str]:
        """The progress: one line for the whole run, and one for each quota pool."""
        self._seen.append((seconds, counts))
        while len(self._seen) > 2 and self._seen[0][0] < seconds - _RATE_OVER_S:
            self._seen.popleft()
        pools = [self._pool(name, counts, seconds) for name in self.quotas if counts[Counter.CALLS_PLANNED, name]]
        return [overview(counts, self.sources, self.configurations, seconds), *pools]

    def share(self, counts: Counts) -> float | None:
        """The share of queries and calls that are done; None as long as their total is unknown.

        >>> counts = Counts({(Counter.JUDGED_QUERIES, ""): 10, (Counter.QUERIES_SCORED, ""): 5})
        >>> Progress(0, 1).share(counts), Progress(1, 1).share(counts), Progress(0, 1).share(Counts())
        (0.5, 0.25, None)
        """
        judged = counts[Counter.JUDGED_QUERIES, ""]
        done = counts[Counter.QUERIES_SCORED, ""] + min(counts[Counter.QUERIES_ASKED, ""], judged * self.sources)
        total = judged * (self.sources + self.configurations)
        for name in self.quotas:
            done += counts[Counter.CALLS_DONE, name]
            total += counts[Counter.CALLS_PLANNED, name] - counts[Counter.LEDGER_HITS, name]
        return min(1.0, done / total) if judged and total else None

    def _pool(self, name: str, counts: Counts, seconds: float) -> str:
        planned, hits = counts[Counter.CALLS_PLANNED, name], counts[Counter.LEDGER_HITS, name]
        done, total = counts[Counter.CALLS_DONE, name], planned - hits
        rate = self._rate(name, counts, seconds)
        parts = [f"{name}: {done:,}/{pluralize(total, 'call')}"]
        if hits > 0:  # in a round of a race, those of earlier rounds are subtracted before they are read again
            parts.append(f"{hits:,} more from the ledger")
        if done < total:
            parts.append(f"{rate:.1f}/s of {_pace(self.quotas[name])}/s")
        parts += [pluralize(counts[Counter.RETRIES, name], "retry", "retries")]
        parts += [pluralize(counts[Counter.CALLS_FAILED, name], "failure")]
        if done < total and rate > 0:
            parts.append(f"about {clock((total - done) / rate)} left")
        return " · ".join(parts)

    def _rate(self, pool: str, counts: Counts, seconds: float) -> float:
        """Calls per second in the last 10 s, or since the first call if that is more recent."""
        counter = Counter.CALLS_MADE, pool
        first = (before for before, after in pairwise(self._seen) if after[1][counter] > 0)
        began, earlier = next(first, (seconds, counts))
        return (counts[counter] - earlier[counter]) / (seconds - began) if seconds > began else 0.0


def overview(counts: Counts, sources: int, configurations: int, seconds: float) -> str:
    """The progress of the whole run, in one line.

    >>> counts = Counts({(Counter.JUDGED_QUERIES, ""): 10, (Counter.QUERIES_ASKED, ""): 4})
    >>> overview(counts, 1, 2, 2.0)
    'asked 4/10 queries · scored 0/20 · 2/s · 0 failures · 2 s'
    >>> counts |= {(Counter.QUERIES_SCORED, ""): 20, (Counter.COMPARISONS, ""): 1500}
    >>> overview(counts, 0, 2, 4.0)
    'scored 20/20 · 5/s · compared 1,500 pairs of means · 0 failures · 4 s'
    """
    judged, total = counts[Counter.JUDGED_QUERIES, ""], counts[Counter.QUERIES_ASKED, ""]
    scored, failures = counts[Counter.QUERIES_SCORED, ""], counts[Counter.FAILURES, ""]
    if not judged:
        rows = counts[Counter.ROWS_READ, ""]
        return f"read {rows:,} rows · {seconds:.0f} s" if rows else f"starting · {seconds:.0f} s"
    embedded = counts[Counter.TEXTS_EMBEDDED, ""]
    parts = [f"embedded {pluralize(embedded, 'text')}"] if embedded else []
    parts += [f"asked {total:,}/{pluralize(judged * sources, 'query', 'queries')}"] if sources else []
    reranked = counts[Counter.PAIRS_SCORED, ""]
    parts += [f"reranked {pluralize(reranked, 'text')}"] if reranked else []
    parts += [f"scored {scored:,}/{judged * configurations:,}"]
    done = scored or total
    parts += [f"{done / seconds:,.0f}/s"] if seconds > 0 and done else []
    compared = counts[Counter.COMPARISONS, ""]
    parts += [f"compared {compared:,} pairs of means"] if compared else []
    return " · ".join([*parts, pluralize(failures, "failure"), f"{seconds:.0f} s"])


def counter_lines(counts: Counts) -> list[str]:
    """The nonzero counters of a remote job, one per line, after a blank line.

    >>> counter_lines(Counts({(Counter.JUDGED_QUERIES, ""): 1000, (Counter.RETRIES, ""): 2}))
    ['', '1,000  judged queries', '    2  retries']
    """
    numbers = {word: f"{count:,}" for counter, word in _WORDS.items() if (count := counts[counter, ""])}
    width = max(map(len, numbers.values()), default=0)
    return ["", *(f"{number:>{width}}  {word}" for word, number in numbers.items())] if numbers else []


def clock(seconds: float) -> str:
    """A duration as text.

    >>> clock(42.2), clock(3 * 60 + 5), clock(2 * 3600 + 240)
    ('42 s', '3 min 5 s', '2 h 4 min')
    """
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    return f"{total // 60} min {total % 60} s" if total < 3600 else f"{total // 3600} h {total % 3600 // 60} min"


@contextmanager
def show_progress(progress: Progress, stream: TextIO | None = None) -> Iterator[None]:
    """Show progress while the block runs, and the totals when it ends without an error."""
    began = time.monotonic()
    with tallying() as tally:

        def current() -> State:
            counts = tally()
            return "\n".join(progress.lines(counts, time.monotonic() - began)), progress.share(counts)

        in_notebook = stream is None and is_notebook()
        with _show_in_thread(_in_notebook, current) if in_notebook else show_repeatedly(current, stream):
            yield


@contextmanager
def show_repeatedly(current: Current, stream: TextIO | None = None) -> Iterator[None]:
    """Print the current text repeatedly while the block runs, and once more when it ends without an error."""
    out = sys.stderr if stream is None else stream
    if out is None:  # stderr is closed, as under cron
        yield
        return
    with _show_in_thread(partial(_on_terminal if out.isatty() else _as_lines, out), current):
        yield
    print(current()[0], file=out, flush=True)


@contextmanager
def _show_in_thread(show: Callable[[threading.Event, Current], None], current: Current) -> Iterator[None]:
    """Show progress in a thread while the block runs; the thread's context identifies the notebook cell."""
    stop = threading.Event()
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(show, stop, current), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _on_terminal(out: TextIO, stop: threading.Event, current: Current) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    with Live(console=Console(file=out), transient=True, refresh_per_second=10) as live:
        spinner = Spinner("dots")
        while not stop.wait(_TERMINAL_INTERVAL_S):
            spinner.update(text=current()[0])
            live.update(spinner)


def _as_lines(out: TextIO, stop: threading.Event, current: Current) -> None:
    while not stop.wait(_PLAIN_INTERVAL_S):
        print(current()[0], file=out, flush=True)


def _pace(quota: Quota) -> str:
    """Calls per second that a quota allows.

    >>> _pace(Quota(1500)), _pace(Quota(100)), _pace(Quota(6_000_000))
    ('25', '1.667', '100,000')
    """
    a_second = quota.requests_per_minute / 60
    return f"{a_second:,.0f}" if a_second >= 1000 else f"{a_second:.4g}"


@dataclass
class CallsOfPools(Progress):
    """The calls of every quota pool."""

    doing: str = "writing questions"

    def lines(self, counts: Counts, seconds: float) -> list[str]:
        return [*super().lines(counts, seconds)[1:], f"{self.doing} · {clock(seconds)}"]


def is_notebook() -> bool:
    """Return whether this process is a Jupyter kernel, and not only IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar(text: str, share: float | None) -> str:
    """A bar that is filled to a share, or only moves if the share is unknown, with lines of text below.

    >>> bar("scored 1/2", 0.5).partition("<div")[0]
    '<progress max="1" value="0.5" aria-label="progress"></progress>'
    """
    value = "" if share is None else f' value="{share:.4g}"'
    return f'<progress max="1"{value} aria-label="progress"></progress><div style="{_STYLE}">{html.escape(text)}</div>'


def _in_notebook(stop: threading.Event, current: Current) -> None:
    """Show text and share until the event is set, and then once more."""
    from IPython.display import HTML, display

    output = display(HTML(bar(*current())), display_id=True)
    while not stop.wait(_INTERVAL_S):
        output.update(HTML(bar(*current())))
    output.update(HTML(bar(*current())))
