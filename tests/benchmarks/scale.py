"""A billion rankings on paper: batches, bytes, states and cost of a run, from figures measured at small sizes.

    python tests/benchmarks/scale.py                              measure, and print the tables of docs/scale.md
    python tests/benchmarks/scale.py --check 10000 --check 2500x40  also measure these queries and configurations

Runs of the benchmark's data (100 results a query) are scored with five metrics. The model knows the code: how files are
cut into pieces and queries into buckets, and what a state of the aggregate holds. It measures the rest: bytes of a row
and of an empty batch in a shuffle, and CPU seconds of a start, of a configuration and of a row. A check of a million
queries needs 10 GB: batches that are counted are not spilled.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scale_counts
from data import make
from machine import described
from measure import measure
from scale_counts import METRICS, empty_batch_bytes, seconds_of_tests, state_of
from sizes import Size, Variant

from rankbeam.pipelines.run.buckets import number_of

DEPTH, JUDGED = 100, 15
"""Results, and about as many judgements, of a query."""
FILE_BYTES = 13.9
"""Bytes of a result in a run of Parquet."""
READ_ROWS, PIECE_ROWS, MOST_BUCKETS = 1 << 18, 1 << 13, 1 << 8
"""Rows that are read at once, and that a bucket gets of a part at least, as in `clients/formats/bucketing.py`."""
BATCH_S = 490e-6
"""CPU seconds of a batch, beside its rows. A run of 97 million results took 18 s more than its rows would in smaller
runs, and had 36,686 batches by an earlier division. Pickling and reading an empty one takes a fifth of it."""
MEASURED = ((1_000, 1), (1_000, 40), (20_000, 1), (20_000, 4))
"""Queries and configurations."""
REPEATED = 3
"""Repetitions, of which the fewest CPU seconds count: other programs make them more."""
WORKERS, SLICES, REPLICATES = 32, 50, 1000
CPU_HOUR, GB_SHUFFLED = 0.06, 0.011
"""Dollars, assumed: for a core with its memory, and for shuffling. Put your own here."""


@dataclass(frozen=True)
class Counted:
    """Costs of one run.

    Attributes:
        batches: number of shuffled batches.
        shuffled: their bytes.
        cpu_s: CPU seconds.
        peak: bytes of the largest process.
    """

    batches: float
    shuffled: float
    cpu_s: float
    peak: float


@dataclass(frozen=True)
class Figures:
    """Measured costs.

    Attributes:
        start_s, configuration_s: CPU seconds of a start without configurations, and of the start of each.
        row_s: CPU seconds of a row of one configuration with its share of the query.
        query_bytes, row_bytes: bytes of a query and a row in a shuffle.
        batch_s, batch_bytes: CPU seconds and bytes of an empty batch in a shuffle.
    """

    start_s: float
    configuration_s: float
    row_s: float
    query_bytes: float
    row_bytes: float
    batch_s: float
    batch_bytes: float

    @classmethod
    def of(cls, runs: dict[tuple[int, int], Counted], batch_s: float, batch_bytes: float) -> "Figures":
        """The figures by which the model meets what was measured."""
        rows = np.array([[queries * DEPTH * many] for queries, many in runs], float)
        starts = np.array([[1, many] for _, many in runs], float)
        data = np.array([[queries] for queries, _ in runs], float)
        spent = [run.cpu_s - batch_s * run.batches for run in runs.values()]
        plain = [run.shuffled - batch_bytes * run.batches for run in runs.values()]
        seconds, *_ = np.linalg.lstsq(np.hstack([starts, rows]), np.array(spent), rcond=None)
        size, *_ = np.linalg.lstsq(np.hstack([data, rows]), np.array(plain), rcond=None)
        return cls(*seconds.tolist(), *size.tolist(), batch_s, batch_bytes)

    def run(self, queries: int, configurations: int) -> Counted:
        """Costs of a run, by the model; a worker holds one bucket, several times as large as its files."""
        rows = queries * DEPTH * configurations
        batches = shuffled_batches(queries, configurations)
        shuffled = self.query_bytes * queries + self.row_bytes * rows + self.batch_bytes * batches
        seconds = self.start_s + self.configuration_s * configurations + self.row_s * rows + self.batch_s * batches
        return Counted(batches, shuffled, seconds, math.nan)


def buckets_of(queries: int, configurations: int) -> int:
    """As the pipeline divides them, where runs are files of Parquet."""
    largest = round(queries * DEPTH * FILE_BYTES)
    values = queries * configurations * len(METRICS) * 32
    return number_of(largest, largest * configurations + values)


def shuffled_batches(queries: int, configurations: int) -> int:
    """One batch for each bucket and block of rows, of every run and of the judgements; one for each judged bucket.

    A block of grouped rows has some queries, and so meets at most as many buckets.
    """
    buckets = buckets_of(queries, configurations)
    block_rows = READ_ROWS * math.ceil(PIECE_ROWS * min(buckets, MOST_BUCKETS) / READ_ROWS)

    def of_file(rows_of_query: int) -> int:
        blocks = math.ceil(queries * rows_of_query / block_rows)
        return blocks * min(buckets, math.ceil(queries / blocks))

    return configurations * of_file(DEPTH) + of_file(JUDGED) + buckets


def table(figures: Figures) -> Iterator[str]:
    """The tables of docs/scale.md."""
    yield "| rankings | configurations | results | buckets | batches | shuffled GB | states GB | CPU hours | dollars |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for queries in (100_000, 1_000_000, 10_000_000):
        for many in (1, 10, 40):
            run = figures.run(queries, many)
            states = WORKERS * SLICES * state_of(many, REPLICATES)[0] / 1e9
            hours, gb = run.cpu_s / 3600, run.shuffled / 1e9 + states
            cells = [f"{queries * DEPTH / 1e6:,.0f}M", f"{many}", f"{queries * DEPTH * many:,}"]
            cells += [f"{buckets_of(queries, many):,}", f"{run.batches:,.0f}", f"{run.shuffled / 1e9:,.1f}"]
            cells += [f"{states:,.1f}", f"{hours:,.2f}", f"{hours * CPU_HOUR + gb * GB_SHUFFLED:,.2f}"]
            yield f"| {' | '.join(cells)} |"
    yield ""
    yield (
        "| configurations | one slice | all, 50 slices | hot key: states of the slice `all` | CPU s to merge them "
        "| CPU s of the tests with a baseline, at most |"
    )
    yield "|---:|---:|---:|---:|---:|---:|"
    tests_s = SLICES * seconds_of_tests()
    for many in (1, 10, 40):
        size, seconds = state_of(many, REPLICATES)
        cells = [
            f"{many}",
            f"{size / 1e6:,.2f} MB",
            f"{SLICES * size / 1e6:,.0f} MB",
            f"{WORKERS}",
            f"{WORKERS * seconds:,.2f}",
            f"{(many - 1) * tests_s:,.1f}",
        ]
        yield f"| {' | '.join(cells)} |"


def counted(folder: Path, queries: int, configurations: int) -> Counted:
    """Run it, in a process of its own."""
    size = Size("", queries, DEPTH)
    data = size.folder(folder, Variant.GROUPED)
    if not data.is_dir():
        make(size, Variant.GROUPED, folder)
    printed = folder / "counts.json"
    command = [sys.executable, scale_counts.__file__, str(data), str(configurations)]
    measure([*command, "--count"], printed)  # it takes time of its own: batches are not spilled
    counts, shuffled = json.loads(printed.read_text())
    used = [measure(command, printed) for _ in range(REPEATED)]
    return Counted(counts, shuffled, min(run.cpu_s for run in used), max(run.peak_bytes for run in used))


def _size(text: str) -> tuple[int, int]:
    """Queries and configurations, such as 10000 or 2500x40."""
    queries, _, many = text.partition("x")
    return int(queries), int(many or 1)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="keeps the generated data")
    parser.add_argument("--check", type=_size, action="append", default=[], metavar="QUERIES[xCONFIGURATIONS]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankbeam-scale-") as temporary:
        folder = options.data or Path(temporary)
        os.environ["TMPDIR"] = temporary
        figures = Figures.of({size: counted(folder, *size) for size in MEASURED}, BATCH_S, empty_batch_bytes())
        sys.stdout.write("\n".join([*described(), str(figures), "", *table(figures), ""]))
        for queries, many in options.check:
            counts, model = counted(folder, queries, many), figures.run(queries, many)
            results = f"{queries * DEPTH:,} x {many}"
            for name in ("batches", "shuffled", "cpu_s"):
                measured, predicted = getattr(counts, name), getattr(model, name)
                line = f"{results:>16} {name:<9} measured {measured:>14,.1f} model {predicted:>14,.1f}"
                sys.stdout.write(f"{line} {predicted / measured - 1:+.0%}\n")
            sys.stdout.write(f"{results:>16} peak      measured {counts.peak / 1e6:,.0f} MB\n")


if __name__ == "__main__":
    main()
