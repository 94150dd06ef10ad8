"""CPU and memory of runs on a Flink cluster of this machine, by class of process.

    python tests/benchmarks/on_flink.py rows --size L                       existing rankings, beside the local runner
    python tests/benchmarks/on_flink.py calls --per-minute 6000 --lanes 2   remote calls, by the clock of the service
    python tests/benchmarks/on_flink.py judged --queries 2500               judged answers, beside the local runner

`make flink-jars` comes first. CPU seconds are the kernel's, of all processes; memory is the largest resident size of
any single process of a class, looked up several times a second. Tables must be equal, and the quota kept.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import duckdb
import judged_answers
from data import make
from machine import described
from measure import measure
from scale_counts import METRICS
from sizes import Variant, parse_size
from support.engines import TABLES
from support.flink import Cluster, cluster, missing_flink
from support.remote import answers, dataset, http, write_experiment
from support.standins import Stats, serve

LOOK_EVERY_S = 0.3
TICKS = os.sysconf("SC_CLK_TCK")
CLASSES = {"workers": "Python workers", "taskmanager": "TaskManagers", "jobmanager": "JobManager"}
COLUMNS = ("setup", "CPU s", *CLASSES.values(), "submitting", "wall s", "largest process MB, in that order")


class Watched:
    """The processes of a cluster while a run lasts."""

    def __init__(self, running: Cluster) -> None:
        self._roots = {name: process.pid for name, process in running.processes.items()}
        self._peaks = dict.fromkeys(CLASSES, 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)
        self._before = self._cpu_s()

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds since the beginning, by class."""
        return {name: after - self._before[name] for name, after in self._cpu_s().items()}

    def peaks(self) -> dict[str, int]:
        """Bytes of the largest process, by class; looks at those that run once more."""
        self._look()
        return dict(self._peaks)

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        for name, root in self._roots.items():
            kind = name.partition("-")[0]
            self._peaks[kind] = max(self._peaks[kind], *(_peak_bytes(pid) for pid in _tree(root)))

    def _cpu_s(self) -> dict[str, float]:
        spent = dict.fromkeys(CLASSES, 0.0)
        for name, root in self._roots.items():
            spent[name.partition("-")[0]] += sum(_cpu_s(pid) for pid in _tree(root))
        return spent


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants that still run."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from _tree(child)


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process and of its descendants that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def on_flink(folder: Path, experiment: str, output: Path, options: argparse.Namespace) -> str:
    """Run an experiment on a new cluster; its row."""
    clusters = cluster(folder / "cluster", task_managers=options.task_managers, heap_mb=options.heap_mb)
    with clusters as running, Watched(running) as watched:
        slots = int(running.get("/overview")["slots-total"])
        command = evaluate(experiment, output, *running.options(external=True, parallelism=slots))
        used = measure(command, folder / "printed")
        spent, peaks = watched.cpu_s(), watched.peaks()
    total = sum(spent.values()) + used.cpu_s
    sizes = [*peaks.values(), used.peak_bytes]
    cells = [f"{total:.1f}", *(f"{seconds:.1f}" for seconds in spent.values()), f"{used.cpu_s:.1f}"]
    cells += [f"{used.wall_s:.0f}", " / ".join(f"{size / 1e6:,.0f}" for size in sizes)]
    return f"| Flink, {options.task_managers} TaskManagers, parallelism {slots} | {' | '.join(cells)} |"


def evaluate(experiment: str, output: Path, *options: str) -> list[str]:
    """The command that is measured."""
    arguments = ["evaluate", experiment, "--output", str(output), "--run-id", "r", *options]
    return [sys.executable, "-m", "rankbeam", *arguments]


def rows(options: argparse.Namespace, folder: Path) -> None:
    """Score existing rankings locally and on Flink, and compare all tables."""
    size = parse_size(options.size)
    data = size.folder(options.data or folder, Variant.GROUPED)
    if not data.is_dir():
        make(size, Variant.GROUPED, data.parent)
    experiment = {
        "dataset": {"qrels": str(data / "qrels.parquet")},
        "metrics": list(METRICS),
        "configurations": [{"name": "run", "retriever": {"type": "run_file", "path": str(data / "run.parquet")}}],
    }
    compare(write_experiment(folder, experiment), options, folder)


def compare(path: str, options: argparse.Namespace, folder: Path) -> None:
    """Run an experiment locally and on Flink, and compare all tables."""
    used = measure(evaluate(path, folder / "local"), folder / "printed")
    local = f"| local runner | {used.cpu_s:.1f} | | | | {used.cpu_s:.1f} | {used.wall_s:.0f} |"
    say(f"{local} {used.peak_bytes / 1e6:,.0f} |")
    say(on_flink(folder, path, folder / "flink", options))
    say("", *different(folder / "local", folder / "flink"))


def different(one: Path, other: Path) -> Iterator[str]:
    """For every table, the number of its rows, and of those that only one of the two runs has."""
    for name in TABLES:
        if not (one / name / "r").exists():
            yield f"{name}: none" if not (other / name / "r").exists() else f"{name}: only on Flink"
            continue
        tables = [f"(SELECT * EXCLUDE (run_id, started_at) FROM '{root}/{name}/r/*.parquet')" for root in (one, other)]
        with duckdb.connect(config={"memory_limit": "3GB", "threads": 2}) as database:
            queries = [f"FROM {tables[0]}"]
            queries += [f"FROM {here} EXCEPT ALL FROM {there}" for here, there in (tables, tables[::-1])]
            numbers = [database.sql(f"SELECT count(*) FROM ({query})").fetchall()[0][0] for query in queries]
        yield f"{name}: {numbers[0]:,} rows, {sum(numbers[1:]):,} different"


def judged(options: argparse.Namespace, folder: Path) -> None:
    """Judge answers locally and on Flink, and compare all tables."""
    path = judged_answers.write(folder, judged_answers.Shape(options.queries, options.configurations))
    compare(path, options, folder)


def calls(options: argparse.Namespace, folder: Path) -> None:
    """Ask a stand-in as often as a quota allows, from lanes on several workers."""
    number = options.calls or round(2.5 * options.per_minute)
    standins = serve("http", answers=answers(number), latency_s=options.latency_s, quota_per_minute=options.per_minute)
    with standins as standin:
        quotas = {"http": {"requests_per_minute": options.per_minute, "lanes": options.lanes}}
        configurations = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
        experiment = {"dataset": dataset(folder, number), "quotas": quotas, "configurations": configurations}
        say(on_flink(folder, write_experiment(folder, experiment), folder / "out", options))
        say("", *quota_use(standin.stats(), options.per_minute))


def quota_use(stats: Stats, per_minute: float) -> list[str]:
    """The share of the quota that was used, and its violations, by the clock of the service."""
    seconds = stats.arrivals[-1] - stats.arrivals[0]
    rate = (stats.calls - 1) / seconds * 60 / per_minute
    return [
        f"{stats.calls:,} calls in {seconds:.1f} s: {rate:.1%} of the quota",
        f"busiest minute {stats.busiest_minute:,}: {stats.busiest_minute / per_minute:.1%} of the quota",
        f"busiest second {stats.busiest_second:,}, most in flight {stats.most_open:,}",
        f"violations: {stats.violations_per_second} of the second, {stats.violations_per_minute} of the minute",
    ]


def say(*lines: str) -> None:
    """Print lines, and let them be seen at once."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task-managers", type=int, default=2, help="with two slots each")
    parser.add_argument("--folder", type=Path, help="keeps all files; an empty folder")
    parser.add_argument("--heap-mb", type=int, default=1200, help="of every Java process")
    kinds = parser.add_subparsers(required=True)
    of_rows = kinds.add_parser("rows")
    of_rows.set_defaults(act=rows)
    of_rows.add_argument("--size", default="L", help="as in sizes.py")
    of_rows.add_argument("--data", type=Path, help="keeps the generated data")
    of_calls = kinds.add_parser("calls")
    of_calls.set_defaults(act=calls)
    of_calls.add_argument("--per-minute", type=float, default=6000)
    of_calls.add_argument("--lanes", type=int, default=2)
    of_calls.add_argument("--calls", type=int, help="by default, those of two and a half minutes")
    of_calls.add_argument("--latency-s", type=float, default=1.0)
    of_judged = kinds.add_parser("judged")
    of_judged.set_defaults(act=judged)
    of_judged.add_argument("--queries", type=int, default=2500)
    of_judged.add_argument("--configurations", type=int, default=10)
    options = parser.parse_args(arguments)
    if (reason := missing_flink()) is not None:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix="rankbeam-flink-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        say("\n".join(described()), "", f"| {' | '.join(COLUMNS)} |", f"|---|{'---:|' * (len(COLUMNS) - 1)}")
        options.act(options, folder)


if __name__ == "__main__":
    main()
