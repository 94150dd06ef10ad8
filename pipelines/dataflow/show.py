"""A job, for people and for programs."""

import json
import shlex
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from rankbeam.pipelines.dataflow.record import Job
from rankbeam.pipelines.dataflow.service import DONE, Snapshot, gist
from rankbeam.pipelines.run.progress import clock, overview
from rankbeam.transforms.records.counters import Counter

_WORDS = {
    Counter.JUDGED_QUERIES: "judged queries",
    Counter.ROWS_READ: "rows read",
    Counter.QUERIES_ASKED: "queries asked in process",
    Counter.CALLS_PLANNED: "calls planned",
    Counter.LEDGER_HITS: "answered by the ledger",
    Counter.CALLS_MADE: "calls made",
    Counter.RETRIES: "retries",
    Counter.CALLS_DONE: "calls done",
    Counter.CALLS_FAILED: "calls failed",
    Counter.FAILURES: "queries without an answer",
    Counter.QUERIES_SCORED: "queries scored",
    Counter.RUNS_MISSED: "runs that miss a limit",
    Counter.THROTTLED_S: "seconds that lanes waited",
}


@dataclass
class Told:
    """What is said of a job while somebody waits for it.

    Attributes:
        sources: how many retrievers are asked in process.
        configurations: how many configurations are scored.
    """

    sources: int
    configurations: int
    _began: float = field(default_factory=time.monotonic)

    def line(self, seen: Snapshot) -> str:
        """The state and the counters, in one line."""
        seconds, counts = time.monotonic() - self._began, seen.counts
        if not counts[Counter.JUDGED_QUERIES, ""]:
            return f"{seen.state} · {clock(seconds)}"
        parts = [seen.state]
        if planned := counts[Counter.CALLS_PLANNED, ""]:
            needed = planned - counts[Counter.LEDGER_HITS, ""]
            parts.append(f"{counts[Counter.CALLS_DONE, '']:,}/{needed:,} calls")
        return " · ".join([*parts, overview(counts, self.sources, self.configurations, seconds)])


def submitted(job: Job) -> str:
    """What to know of a job that was just submitted."""
    return "\n".join([*_about(job), f"status   {command(job)}", f"cancel   {job.cancel}"])


def command(job: Job) -> str:
    """The command that shows how a job is getting on."""
    return shlex.join(["rankbeam", "status", job.output, "--run-id", job.run_id])


def as_text(job: Job, seen: Snapshot) -> str:
    """A job and its counters."""
    lines = [*_about(job), f"state    {seen.state}"]
    if seen.state == DONE and job.output:
        lines.append(f"report   {shlex.join(['rankbeam', 'report', job.output, '--run-id', job.run_id])}")
    counted = [(f"{seen.counts[counter, '']:,}", word) for counter, word in _WORDS.items() if seen.counts[counter, ""]]
    width = max((len(number) for number, _ in counted), default=0)
    lines += ["", *(f"{number:>{width}}  {word}" for number, word in counted)] if counted else []
    lines += ["", *map(gist, seen.problems)] if seen.problems else []
    return "\n".join(lines)


def as_json(job: Job, seen: Snapshot | None = None) -> str:
    """A job as one JSON document, with what it counted where that is known."""
    document: dict[str, Any] = {**asdict(job), "console": job.console}
    if seen is not None:
        counters = {str(counter): seen.counts[counter, ""] for counter in Counter}
        document |= {"state": seen.state, "counters": counters, "problems": list(seen.problems)}
    return json.dumps(document, indent=2)


def _about(job: Job) -> list[str]:
    run = [f"run      {job.run_id} of {job.experiment}"] if job.run_id else []
    when = f", submitted {job.submitted_at}" if job.submitted_at else ""
    return [*run, f"job      {job.job_id}{when}", f"console  {job.console}"]
