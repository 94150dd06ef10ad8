"""Plan of measurements: sizes that fit, data that they need, and their tasks."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from sizes import Size, Variant, free_bytes
from tools import Source, Task

TEN = 10
GIGABYTE = 1e9
Say = Callable[[str], None]
"""Tells of progress."""


def planned(sizes: Sequence[Size]) -> dict[Size, list[Variant]]:
    """Variants of each size to create, smallest first: other orders and spellings only of the largest that has text."""
    plan = {size: [Variant.GROUPED] for size in sorted(sizes, key=lambda size: size.rows)}
    if texts := [size for size in plan if size.text]:
        plan[texts[-1]] = list(Variant)
    return plan


def fitting(plan: dict[Size, list[Variant]], data: Path, say: Say) -> Iterator[Size]:
    """The sizes that the disk has room for, smallest first; says which it has not."""
    free, needed = free_bytes(data), 0
    for size, variants in plan.items():
        needed += size.bytes_needed(data, variants)
        room = f"{free / GIGABYTE:.1f} GB are free"
        say(f"{size.name} needs {needed / GIGABYTE:.1f} GB in {data}, with those before it; {room}")
        if needed > free:
            say(f"skipped: {size.name} and what is larger, for want of room")
            return
        yield size


def make_data(size: Size, variants: Sequence[Variant], data: Path, say: Say) -> None:
    """Make what is not there yet, each in a process of its own: its memory is gone before anything is measured."""
    for variant in variants:
        if not size.folder(data, variant).is_dir():
            say(f"making {size.name}, {variant}")
            script = str(Path(__file__).with_name("data.py"))
            subprocess.run([sys.executable, script, size.name, variant, str(data)], check=True)


def grouped_tasks(size: Size, data: Path) -> list[Task]:
    """The size as it is, from Parquet and from text."""
    sources = tuple(Source) if size.text else (Source.PARQUET,)
    return [_task(size, data, Variant.GROUPED, source, size.name) for source in sources]


def other_tasks(size: Size, data: Path, work: Path) -> list[Task]:
    """The same rows in random order, in mixed white space, and ten times in one job."""
    shuffled = _task(size, data, Variant.SHUFFLED, Source.PARQUET, f"{size.name}, shuffled rows")
    mixed = _task(size, data, Variant.MIXED, Source.TEXT, f"{size.name}, mixed white space")
    once, _ = grouped_tasks(size, data)
    runs = tuple(work / f"run-{number}.parquet" for number in range(1, TEN + 1))
    for run in runs:
        run.symlink_to(once.runs[0].absolute())
    return [shuffled, mixed, Task(f"{size.name}, {TEN} runs", once.qrels, runs, TEN * once.rows, Source.PARQUET)]


def _task(size: Size, data: Path, variant: Variant, source: Source, label: str) -> Task:
    folder = size.folder(data, variant)
    rows = pq.read_metadata(size.folder(data, Variant.GROUPED) / "run.parquet").num_rows
    return Task(label, folder / f"qrels.{source}", (folder / f"run.{source}",), rows, source)
