"""How often intervals hold the true mean: shapes of scores × numbers of queries.

    make simulate                                                    all shapes, 10 to 100 queries, 1,000 samples each
    make simulate SIMULATE="--queries 50 --samples 4000 --only RR"

Each sample has six configurations that saw the same queries. *single* is the share of samples in which the interval of
a configuration holds its true mean, *joint* that in which all six joint intervals do, *picked* that in which the joint
interval of the configuration with the highest mean does. *bootstrap* is the single interval before `Estimate` looks at
it: Student's below 20 queries. Widths are means over samples. Shapes and scores of real runs are in `shapes.py`; the
real ones need the shared collections. Seeds are fixed: the same table each time.
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
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.selection import joint_intervals

REPOSITORY = Path(__file__).resolve().parents[2]
REPLICATES = 1000
AT_ONCE = 50
"""Samples that have the same weights: drawing weights takes longer than using them."""


@dataclass(frozen=True)
class Covered:
    """What one sample says: whether intervals hold, and how wide they are.

    Attributes:
        bootstrap, single, joint: bool[k] and float64[k].
        picked: whether the joint interval of the highest mean holds.
    """

    bootstrap: tuple[FloatArray, FloatArray]
    single: tuple[FloatArray, FloatArray]
    joint: tuple[FloatArray, FloatArray]
    picked: bool


def estimates_of(values: FloatArray, floor: float) -> list[Estimate]:
    """As `QueryAggregate` and `PairedAggregate` make them, of float64[n, k]."""
    m = Moments.of(values)
    successes = m.successes() if floor == 0.0 else [None] * values.shape[1]
    events = [None] * values.shape[1] if floor == 0.0 else np.count_nonzero(values, axis=0).tolist()
    rows = zip(m.means(), m.standard_errors(), m.lowest, m.highest, successes, events, strict=True)
    return [Estimate(m.count, *moments, floor, 1.0, k, away) for *moments, k, away in rows]


def covered(values: FloatArray, replicates: FloatArray, shape: Shape) -> Covered:
    """Look at one sample.

    Args:
        values: float64[n, k].
        replicates: float64[k, b].
        shape: where the values are from.
    """
    estimates = estimates_of(values, shape.floor)

    def held(intervals: Sequence[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
        low, high = np.array(intervals).T
        rounding = 1e-9  # a true mean of 0.1 is not the mean of rounded tenths
        return (low - rounding <= shape.truth) & (shape.truth <= high + rounding), high - low

    plain = [
        bootstrap_interval(each.mean, each.standard_error, drawn, each.count)
        for each, drawn in zip(estimates, replicates, strict=True)
    ]
    single = [each.interval(drawn) for each, drawn in zip(estimates, replicates, strict=True)]
    joint = held(list(zip(*joint_intervals(estimates, replicates), strict=True)))
    best = int(np.argmax([each.mean for each in estimates]))
    return Covered(held(plain), held(single), joint, bool(joint[0][best]))


def simulate(shape: Shape, queries: int, samples: int, seed: int = 0) -> list[float]:
    """Shares and widths of a shape.

    Args:
        shape: where samples are from.
        queries: n.
        samples: how many.
        seed: of the samples; their weights are those of queries that no other sample has.

    Returns:
        Share and width of bootstrap, single and joint intervals, and the share of the picked ones.
    """
    rng = np.random.default_rng([seed, queries])
    found: list[Covered] = []
    while len(found) < samples:
        hashes = mix(np.arange(queries, dtype=np.uint64) + np.uint64(len(found) * queries))
        drawn = weights(hashes, REPLICATES, seed).astype(np.float64)
        total = drawn.sum(axis=0)
        values = shape.sample(rng, AT_ONCE, queries)
        replicates = values.transpose(0, 2, 1) @ drawn / np.where(total > 0, total, np.nan)
        found += [covered(*sample, shape) for sample in zip(values, replicates, strict=True)]
    columns = []
    for kind in ("bootstrap", "single"):
        columns += [float(np.mean([getattr(each, kind)[part] for each in found])) for part in (0, 1)]
    columns.append(float(np.mean([each.joint[0].all() for each in found])))
    columns.append(float(np.mean([each.joint[1] for each in found])))
    return [*columns, float(np.mean([each.picked for each in found]))]


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="10,20,50,100")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--only", default="", help="shapes whose names contain this")
    given = parser.parse_args()
    shared = Path(os.environ.get("RANKBEAM_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
    shapes = simulated() + (list(real(shared / "robust03")) if shared.is_dir() else [])
    columns = (("bootstrap", 9), ("width", 7), ("single", 9), ("width", 7), ("joint", 9), ("width", 7), ("picked", 9))
    head = "".join(f"{name:>{wide}}" for name, wide in columns)
    sys.stdout.write(f"{'shape':<26}{'queries':>8}{head}\n")
    began = time.process_time()
    with threadpool_limits(1):
        for shape in shapes:
            for queries in map(int, given.queries.split(",")) if given.only in shape.name else ():
                found = zip(simulate(shape, queries, given.samples), columns, strict=True)
                cells = [f"{x:>{wide}.3f}" if name == "width" else f"{x:>{wide}.1%}" for x, (name, wide) in found]
                sys.stdout.write(f"{shape.name:<26}{queries:>8}{''.join(cells)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{given.samples:,} samples each, {time.process_time() - began:.0f} s of CPU\n")


if __name__ == "__main__":
    main()
