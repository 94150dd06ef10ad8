"""Coverage of intervals: shapes of scores × numbers of queries.

    make simulate                                                    all shapes, 20 to 300 queries, 1,000 samples each
    make simulate SIMULATE="--queries 50 --samples 4000 --only RR"

Each sample has six configurations that saw the same queries. *single* is the share of samples in which the interval of
a configuration holds its true mean, *joint* that in which all six joint intervals do, *picked* that in which the joint
interval of the configuration with the highest mean does. *plain* is the bootstrap's interval of the values alone, and
Student's below 20 queries. Widths are means over samples. Differences have single intervals only. Shapes and scores of
real runs are in `shapes.py`; the real ones need the shared collections. Seeds are fixed: the same table each time.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from shapes import FloatArray, Shape, real, simulated
from threadpoolctl import threadpool_limits

from rankbeam.transforms.kernels.hashing import mix
from rankbeam.transforms.kernels.statistics.bootstrap import bootstrap_interval, weights
from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate, Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.selection import joint_intervals

REPOSITORY = Path(__file__).resolve().parents[2]
REPLICATES = 1000
Interval = tuple[float, float]
AT_ONCE = 50
"""Samples that have the same weights: drawing weights takes longer than using them."""


@dataclass(frozen=True)
class Covered:
    """Coverage and widths of one sample's intervals.

    Attributes:
        plain, single: bool[k] and float64[k].
        joint: likewise, with the position of the highest mean; None for differences.
    """

    plain: tuple[FloatArray, FloatArray]
    single: tuple[FloatArray, FloatArray]
    joint: tuple[FloatArray, FloatArray, int] | None


def intervals_of(values: FloatArray, replicates: FloatArray, shape: Shape) -> tuple[list[Interval], list[Interval]]:
    """Single and joint intervals, as `QueryAggregate` and `PairedAggregate` make them; differences lack joint ones."""
    m = Moments.of(values)
    rows = list(zip(m.means(), m.standard_errors(), strict=True))
    if shape.floor < 0.0:
        events = np.count_nonzero(values, axis=0).tolist()
        of_pairs = zip(rows, m.lowest, m.highest, events, replicates, strict=True)
        single = [
            DifferenceEstimate(m.count, *row, low, high, 1.0, differ).interval(drawn)
            for row, low, high, differ, drawn in of_pairs
        ]
        return single, []
    successes = m.successes() if shape.ceiling == 1.0 else [None] * values.shape[1]
    columns = zip(rows, m.highest, successes, strict=True)
    estimates = [Estimate(m.count, *row, shape.floor, shape.ceiling, highest, k) for row, highest, k in columns]
    joint = list(zip(*(ends.tolist() for ends in joint_intervals(estimates, replicates)), strict=True))
    return [estimate.interval() for estimate in estimates], joint


def covered(values: FloatArray, replicates: FloatArray, shape: Shape) -> Covered:
    """Look at one sample.

    Args:
        values: float64[n, k].
        replicates: float64[k, b].
        shape: source of the values.
    """
    single, joint = intervals_of(values, replicates, shape)

    def coverage_of(intervals: Sequence[Interval]) -> tuple[FloatArray, FloatArray]:
        low, high = np.array(intervals).T
        rounding = 1e-9  # a true mean of 0.1 is not the mean of rounded tenths
        return (low - rounding <= shape.truth) & (shape.truth <= high + rounding), high - low

    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    plain = [
        bootstrap_interval(mean, error, drawn, len(values))
        for mean, error, drawn in zip(means.tolist(), errors.tolist(), replicates, strict=True)
    ]
    if not joint:
        return Covered(coverage_of(plain), coverage_of(single), None)
    return Covered(coverage_of(plain), coverage_of(single), (*coverage_of(joint), int(np.argmax(means))))


def simulate(shape: Shape, queries: int, samples: int, seed: int = 0) -> list[float]:
    """Shares and widths of a shape.

    Args:
        shape: source of the samples.
        queries: n.
        samples: number of samples.
        seed: seed of the samples; their weights are those of queries that no other sample has.

    Returns:
        Share and width of plain, single and joint intervals, and the share of the picked ones.
    """
    rng = np.random.default_rng([seed, queries])
    simulated: list[Covered] = []
    while len(simulated) < samples:
        hashes = mix(np.arange(queries, dtype=np.uint64) + np.uint64(len(simulated) * queries))
        drawn = weights(hashes, REPLICATES, seed).astype(np.float64)
        total = drawn.sum(axis=0)
        values = shape.sample(rng, AT_ONCE, queries)
        replicates = values.transpose(0, 2, 1) @ drawn / np.where(total > 0, total, np.nan)
        simulated += [covered(*sample, shape) for sample in zip(values, replicates, strict=True)]
    columns = []
    for kind in ("plain", "single"):
        columns += [float(np.mean([getattr(result, kind)[part] for result in simulated])) for part in (0, 1)]
    joint = [result.joint for result in simulated if result.joint is not None]
    if not joint:
        return [*columns, np.nan, np.nan, np.nan]
    columns += [
        float(np.mean([is_covered.all() for is_covered, *_ in joint])),
        float(np.mean([width for _, width, _ in joint])),
    ]
    return [*columns, float(np.mean([is_covered[best] for is_covered, _, best in joint]))]


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="20,50,100,300")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--only", default="", help="shapes whose names contain this")
    options = parser.parse_args()
    shared = Path(os.environ.get("RANKBEAM_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
    shapes = simulated() + (list(real(shared / "robust03")) if shared.is_dir() else [])
    columns = (("plain", 9), ("width", 7), ("single", 9), ("width", 7), ("joint", 9), ("width", 7), ("picked", 9))
    head = "".join(f"{name:>{wide}}" for name, wide in columns)
    sys.stdout.write(f"{'shape':<34}{'queries':>8}{head}\n")
    began = time.process_time()
    with threadpool_limits(1):
        for shape in shapes:
            for queries in map(int, options.queries.split(",")) if options.only in shape.name else ():
                results = zip(simulate(shape, queries, options.samples), columns, strict=True)
                cells = [
                    f"{'–':>{wide}}" if np.isnan(x) else f"{x:>{wide}.3f}" if name == "width" else f"{x:>{wide}.1%}"
                    for x, (name, wide) in results
                ]
                sys.stdout.write(f"{shape.name:<34}{queries:>8}{''.join(cells)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{options.samples:,} samples each, {time.process_time() - began:.0f} s of CPU\n")


if __name__ == "__main__":
    main()
