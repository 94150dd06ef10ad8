"""The state of a submitted job on any engine, and its progress: rate, time left, and cost of its calls so far."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rankbeam.pipelines.local.progress import clock
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.transforms.clients.ledger import LedgerUse
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import InputError, RankbeamError

_DONE = frozenset({"done", "finished"})
_FAILED = frozenset({"gone", "failed", "canceled", "cancelled", "drained", "updated"})
LOST_AFTER_S = 600.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 20.0
_RATE_OVER_S = 300.0
Point = tuple[float, int]  # seconds since the start of the run, and the number of calls or queries done by then


@dataclass(frozen=True)
class JobSnapshot:
    """State, counters and errors of a job; engines add up all quota pools, so every counter's pool is empty."""

    state: str
    counts: Counts
    problems: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        return self.state in _FAILED

    @property
    def is_done(self) -> bool:
        return self.state in _DONE

    @property
    def has_ended(self) -> bool:
        return self.has_failed or self.is_done


def gist(problem: str) -> str:
    """The last line of an error message with a traceback, or any other message as a whole.

    >>> gist("Traceback (most recent call last):\\n  File 'a.py', line 1\\nValueError: no [while running 'Read']\\n")
    "ValueError: no [while running 'Read']"
    """
    lines = problem.strip().splitlines()
    return lines[-1] if "Traceback (most recent call last)" in problem else "\n".join(lines)


def follow(
    look: Callable[[], JobSnapshot],
    show: Callable[[JobSnapshot], None],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> JobSnapshot:
    """Show snapshots of a job until it ends; return the last. After the first, looks may fail for ten minutes."""
    answered: float | None = None
    for pause_s in pauses():
        try:
            snapshot = look()
        except RankbeamError:
            if answered is None or clock() - answered > LOST_AFTER_S:
                raise
        else:
            answered = clock()
            show(snapshot)
            if snapshot.has_ended:
                return snapshot
        sleep(pause_s)
    raise AssertionError("pauses never end")


def pauses() -> Iterator[float]:
    """Seconds between requests: the end of a short job is noticed at once, and a long job gets few requests."""
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)


@dataclass(frozen=True)
class JobProgress:
    """Progress of a job."""

    unit: str  # "calls" if services are called, else "queries", counted for each configuration and retriever
    done: int  # number of calls or queries
    needed: int | None  # their final number, without those that the ledger answers; None if not known yet
    per_second: float | None  # None if nothing is done yet, or the job has ended
    left_s: float | None  # None if not known
    failures: int  # calls and queries that failed, as far as the engine reports them
    cost: float | None  # of all calls so far, in the prices' currency; None without prices
    unpriced: tuple[str, ...] = ()  # pools of calls without a price

    def parts(self) -> dict[str, str]:
        """Texts for users, by name."""
        total = "" if self.needed is None else f" of {self.needed:,}"
        parts = {"progress": f"{self.done:,}{total} {self.unit}"} if self.done or self.needed else {}
        if self.per_second is not None:
            parts["rate"] = f"{self.per_second:,.3g} {self.unit}/s"
        if self.left_s is not None:
            parts["left"] = f"about {clock(self.left_s)}"
        if self.failures:
            parts["failures"] = f"{self.failures:,}"
        if self.cost is not None:
            unpriced = f", without {', '.join(self.unpriced)}: no price is given" if self.unpriced else ""
            parts["cost"] = f"{self.cost:,.4g}{unpriced}"
        return parts


def outlook_of(
    run: RunRecord, uses: Sequence[LedgerUse], snapshot: JobSnapshot, began: Point, seconds: float
) -> JobProgress:
    """A job's progress, from its counters and the ledger's records of the run.

    Its rate is measured from the point `began`; (0.0, 0) is the start of the run.

    >>> counts = Counts({(Counter.JUDGED_QUERIES, ""): 100, (Counter.QUERIES_SCORED, ""): 50})
    >>> outlook_of(RunRecord("", configurations=2), [], JobSnapshot("running", counts), (0.0, 0), 10.0).parts()
    {'progress': '50 of 200 queries', 'rate': '5 queries/s', 'left': 'about 30 s'}
    """
    unit, done, needed = progress(run, uses, snapshot.counts)
    since_s, earlier = began
    rate = (done - earlier) / (seconds - since_s) if seconds > since_s and done > earlier else None
    rate = None if snapshot.has_ended else rate
    left_s = None if rate is None or needed is None else max(0, needed - done) / rate
    failures = snapshot.counts[Counter.CALLS_FAILED, ""] + snapshot.counts[Counter.FAILURES, ""]
    cost, unpriced = cost_of(uses, run.pools)
    return JobProgress(unit, done, needed, rate, left_s, failures, cost, unpriced)


def progress(run: RunRecord, uses: Iterable[LedgerUse], counts: Counts) -> tuple[str, int, int | None]:
    """The unit of work, the amount done, and the total amount (None if not known yet)."""
    lane_calls, answered = _lane_calls(uses)
    engine_calls = counts[Counter.CALLS_PLANNED, ""] - counts[Counter.LEDGER_HITS, ""]
    calls, done = max(lane_calls, engine_calls), max(answered, counts[Counter.CALLS_DONE, ""])
    if calls or done or run.ledger is not None:
        return "calls", done, calls or None
    judged = counts[Counter.JUDGED_QUERIES, ""]
    needed = judged * (run.sources + run.configurations)
    return "queries", counts[Counter.QUERIES_SCORED, ""] + counts[Counter.QUERIES_ASKED, ""], needed or None


def _lane_calls(uses: Iterable[LedgerUse]) -> tuple[int, int]:
    """The number of calls that lanes have to make, and the number of answered ones.

    A lane that was lost with its worker is repeated; the ledger then answers the calls that the lost lane had paid for.
    """
    attempts = grouped((use.attempted, use) for use in sorted(uses, key=lambda use: use.at))
    needed = answered = 0
    for *lost, last in attempts.values():
        answered += sum(use.answered for use in (*lost, last))
        needed += max(0, last.planned - last.hits) + sum(use.answered for use in lost)
    return needed, answered


def cost_of(uses: Iterable[LedgerUse], pools: Mapping[str, Quota]) -> tuple[float | None, tuple[str, ...]]:
    """The cost of calls (None if no used pool has a price), and the pools without a price."""
    costs: list[float] = []
    unpriced: dict[str, None] = {}
    for use in uses:
        for _, _, usage in use.usages:
            if usage.position is not None:  # the same calls again, attributed to one configuration
                continue
            quota = pools.get(use.pool)
            cost = None if quota is None else quota.cost(usage.calls, usage.tokens)
            if cost is None:
                unpriced[use.pool] = None
            else:
                costs.append(cost)
    return (sum(costs) if costs else None), tuple(unpriced)


@dataclass
class Watch:
    """A job that is followed; its rate is measured over the last five minutes."""

    run: RunRecord | None
    run_id: str
    _seen: deque[Point] = field(default_factory=deque)
    _uses: list[LedgerUse] = field(default_factory=list)

    def line(self, snapshot: JobSnapshot, now: datetime) -> str:
        outlook = self.look(snapshot, now)
        parts = {} if outlook is None else outlook.parts()
        texts = (text if name == "progress" else f"{name} {text}" for name, text in parts.items())
        return " · ".join([snapshot.state, *texts])

    def look(self, snapshot: JobSnapshot, now: datetime) -> JobProgress | None:
        """The job's progress; None if its record has no run."""
        if self.run is None:
            return None
        with suppress(InputError):  # the ledger may be readable again at the next look
            self._uses = self.run.uses(self.run_id)
        seconds = self.run.seconds(now)
        _, done, _ = progress(self.run, self._uses, snapshot.counts)
        while len(self._seen) > 1 and self._seen[0][0] < seconds - _RATE_OVER_S:
            self._seen.popleft()
        began = self._seen[0] if self._seen else (0.0, 0)
        self._seen.append((seconds, done))
        return outlook_of(self.run, self._uses, snapshot, began, seconds)


def outlook_lines(outlook: JobProgress | None) -> list[str]:
    return [] if outlook is None else [f"{name:<8} {text}" for name, text in outlook.parts().items()]


def as_document(snapshot: JobSnapshot, outlook: JobProgress | None) -> dict[str, Any]:
    counters = {str(counter): snapshot.counts[counter, ""] for counter in Counter}
    document = {"state": snapshot.state, "counters": counters, "problems": list(snapshot.problems)}
    if outlook is None:
        return document
    names = ("unit", "done", "needed", "per_second", "left_s", "failures", "cost")
    values = {name: getattr(outlook, name) for name in names} | {"unpriced": list(outlook.unpriced)}
    return document | {"progress": values}
