"""Share of a quota that remote calls use: whole runs of `rankbeam evaluate` against stand-ins that speak the protocols.

The stand-ins take a process of their own on the same machine. A peer is measured beside: the same calls through the
same client, one at a time, as a notebook makes them (a few of them, scaled up). `--cost` measures the CPU seconds of
1,000 calls instead: of a run with 5,000 calls in one lane beyond those of a run with 1,000, so that starts do not
count.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import described
from measure import measure
from support import standin_answers as judged
from support.remote import answers, dataset, http, rag, write_experiment
from support.standins import Standin, Stats, serve

from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.retrievers.rag_engine import RagEngine
from rankbeam.transforms.records.calls.steps import SearchDepth

RETRIEVERS = {"rag_engine": (rag, RagEngine), "http": (http, Http)}
COLUMNS = (
    "service", "quota/min", "latency s", "workers", "lanes", "calls",
    "rate/quota", "end to end/quota", "busiest s/quota", "busiest min/quota", "calls per CPU s", "one at a time",
)  # fmt: skip
COSTS = ("http", "rag_engine", "openai", "gemini")
FEWER, MORE = 1000, 5000
_FEW = 5


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    kind: str
    per_minute: float
    latency_s: float
    calls: int
    workers: int = 1
    lanes: int = 1


CASES = (
    Case("rag_engine", 1500, 3.5, 648),
    Case("rag_engine", 1500, 1, 3000),
    Case("rag_engine", 3000, 2, 3000),
    Case("rag_engine", 3000, 5, 3000),
    Case("rag_engine", 3000, 2, 3000, workers=2),
    Case("rag_engine", 3000, 2, 3000, lanes=4),
    Case("rag_engine", 12_000, 1, 3000),
    Case("rag_engine", 60_000, 1, 6000),
    Case("http", 3000, 2, 3000),
    Case("http", 12_000, 1, 3000),
    Case("http", 60_000, 1, 6000),
)


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, help="of every case, instead of what it says")
    parser.add_argument("--only", default="", help="cases of this service only")
    parser.add_argument("--cost", action="store_true", help="measure the CPU seconds of 1,000 calls")
    options = parser.parse_args()
    say("\n".join(described()), "")
    if options.cost:
        say("| service | CPU s of 1,000 calls |\n|---|---:|")
        for kind in COSTS:
            if options.only in ("", kind):
                say(f"| {kind} | {cost(kind):.2f} |")
        return
    say(f"| {' | '.join(COLUMNS)} |\n|{'---|' * 3}{'---:|' * (len(COLUMNS) - 3)}")
    for case in CASES:
        if options.only in ("", case.kind):
            say(row(replace(case, calls=options.calls or case.calls)))


def say(*lines: str) -> None:
    """Print lines, and let them be seen at once."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def row(case: Case) -> str:
    """Measure one case; the row of the table."""
    quota_s = case.per_minute / 60
    with tempfile.TemporaryDirectory() as folder:
        with serve(case.kind, answers=answers(case.calls), latency_s=case.latency_s) as server:
            alone_s = one_at_a_time(case, server)
        with serve(
            case.kind, answers=answers(case.calls), latency_s=case.latency_s, quota_per_minute=case.per_minute
        ) as server:
            usage = measure(command(case, server, Path(folder)), Path(folder) / "stdout")
            stats = server.stats()
    cells = (
        case.kind, f"{case.per_minute:,.0f}", f"{case.latency_s:g}", str(case.workers), str(case.lanes),
        f"{case.calls:,}", f"{rate(stats) / quota_s:.1%}", f"{case.calls / usage.wall_s / quota_s:.1%}",
        f"{stats.busiest_second / quota_s:.1%}", f"{stats.busiest_minute / case.per_minute:.1%}",
        f"{case.calls / usage.cpu_s:.0f}", f"{alone_s:,.0f} s ({alone_s / usage.wall_s:.0f}×)",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def cost(kind: str) -> float:
    """CPU seconds of 1,000 further calls in one lane; of a model, with retrieval by words and its answers' rows."""
    seconds = []
    for number in (FEWER, MORE):
        with tempfile.TemporaryDirectory() as folder, serve(kind, answers=answers(number), latency_s=0.1) as server:
            if kind in RETRIEVERS:
                run = command(Case(kind, 60_000, 0.1, number), server, Path(folder))
            else:
                os.environ["RANKBEAM_TEST_KEY"] = "k"
                changes = {
                    "dataset": judged.dataset(Path(folder, "data"), number),
                    "judge": None,
                    "metrics": ["nDCG@5"],
                }
                path = judged.write_experiment(Path(folder), judged.model(server, kind), {"lanes": 1}, **changes)
                run = [sys.executable, "-m", "rankbeam", "evaluate", path]
            seconds.append(measure(run, Path(folder) / "stdout").cpu_s)
            if (calls := server.stats().calls) != number:
                raise SystemExit(f"{kind}: {calls} calls instead of {number}")
    return (seconds[1] - seconds[0]) / (MORE - FEWER) * 1000


def command(case: Case, server: Standin, folder: Path) -> list[str]:
    """The run that is measured."""
    quotas = {case.kind: {"requests_per_minute": case.per_minute, "lanes": case.lanes}}
    configurations = [{"name": "remote", "retriever": RETRIEVERS[case.kind][0](server), "top_k": 20}]
    experiment = {"dataset": dataset(folder, case.calls), "quotas": quotas, "configurations": configurations}
    options = ["--direct_running_mode=multi_processing", f"--direct_num_workers={case.workers}"]
    path = write_experiment(folder, experiment)
    return [sys.executable, "-m", "rankbeam", "evaluate", path, *(options if case.workers > 1 else [])]


def rate(stats: Stats) -> float:
    """Calls a second, from the first to the last."""
    return (stats.calls - 1) / (stats.arrivals[-1] - stats.arrivals[0])


def one_at_a_time(case: Case, server: Standin) -> float:
    """Duration of all calls one after the other, in seconds."""
    retriever, parameters = RETRIEVERS[case.kind]
    service = parameters.model_validate({name: value for name, value in retriever(server).items() if name != "type"})

    async def few() -> float:
        connection = await service.connect()
        began = time.monotonic()
        for number in range(_FEW):
            service.read((await connection.call(payload_of(f"question {number}", SearchDepth(20)), 60.0, 1)).answer)
        seconds = time.monotonic() - began
        await connection.close()
        return seconds

    return asyncio.run(few()) / _FEW * case.calls


if __name__ == "__main__":
    main()
