"""Share of races that keep the best configuration, and of calls that they save.

    make races                                            all cases, 500 repetitions each, 36 cells, 1,000 queries
    make races RACES="--repetitions 100 --only binary"

Each repetition draws the queries of one experiment; a query is as hard for every cell, and each cell has noise of its
own. *kept* is the share of repetitions in which the truly best cell, or one that is equal to it, survives every look;
*calls* are those of the race as a share of the calls of the whole sweep. The cases are shapes of scores × how far the
cells' true means are apart; in *ties*, nine cells are equal to the best. Robust's own runs are a population of which
queries are drawn; they need the shared collections. Seeds are fixed: the same table each time.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from shapes import FloatArray, Shape, real

from rankbeam.transforms.kernels.statistics.bootstrap import weights
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.scores.racing import survivors

REPOSITORY = Path(__file__).resolve().parents[2]
CELLS, QUERIES, REPLICATES = 36, 1000, 400  # the least with which all these looks can be decided
AT_ONCE = 50
"""Repetitions that have the same weights: drawing weights takes longer than using them."""
RACE = Race("nDCG@10", 0.05, (50, 100, 200, 350, 550, 1000))

Case = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]
"""Draws the scores of one experiment, float64[n, k], and says the true means of its cells, float64[k]."""


def means(rng: np.random.Generator, spread: float, equal: int) -> FloatArray:
    """True means around 0.5, the best `equal` of which are the same."""
    drawn = np.sort(rng.normal(0.5, spread, CELLS))
    drawn[CELLS - equal :] = drawn[-1]
    return rng.permutation(drawn)


def gaussian(spread: float, equal: int = 1) -> Case:
    """Hardness of a query with a deviation of 0.25, noise of a cell of 0.15; not clipped, so that means are true."""

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        truth = means(rng, spread, equal)
        hardness = rng.normal(0.0, 0.25, (QUERIES, 1))
        return truth + hardness + rng.normal(0.0, 0.15, (QUERIES, CELLS)), truth

    return draw


def binary(spread: float, equal: int = 1) -> Case:
    """Hits and misses: a cell hits where a uniform number, half of it the query's, is below its mean."""

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        truth = np.clip(means(rng, spread, equal), 0.05, 0.95)
        own, shared = rng.random((QUERIES, CELLS)), rng.random((QUERIES, 1))
        number = np.where(rng.random((QUERIES, CELLS)) < 0.5, shared, own)
        return (number < truth).astype(np.float64), truth

    return draw


def zero_inflated(spread: float, equal: int = 1) -> Case:
    """Four of five queries score 0, others about a cell's mean."""

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        truth = means(rng, spread, equal)
        answered = rng.random((QUERIES, 1)) < 0.2
        scores = truth + rng.normal(0.0, 0.2, (QUERIES, 1)) + rng.normal(0.0, 0.15, (QUERIES, CELLS))
        return np.where(answered, scores, 0.0), 0.2 * truth

    return draw


def resampled(shape: Shape) -> Case:
    """Queries of a population, drawn with replacement; its means are the true ones."""
    return lambda rng: (shape.sample(rng, 1, QUERIES)[0], shape.truth)


def cases(robust: Path, only: str) -> Iterator[tuple[str, Case]]:
    """Every case by its name. Scoring Robust's runs takes seconds: they are there if nothing else is asked for."""
    shapes = {"Gaussian": gaussian, "binary": binary, "zero-inflated": zero_inflated}
    if robust.is_dir() and (not only or "Robust" in only):
        for shape in real(robust):
            if "differences" not in shape.name:
                yield shape.name, resampled(shape)
    for spread in (0.05, 0.02, 0.005):
        for name, scores in shapes.items():
            yield f"{name}, spread {spread}", scores(spread)
    for name, scores in shapes.items():
        yield f"{name}, ties", scores(0.05, 10)


def run(values: FloatArray, drawn: FloatArray) -> tuple[np.ndarray, int]:
    """The cells that survive a race over some scores, bool[k], and its calls; `drawn` are the bootstrap's weights."""
    queries, cells = values.shape
    left, calls, before = np.ones(cells, bool), 0, 0
    for look in RACE.schedule(queries):
        calls += (look.queries - before) * int(left.sum())
        before = look.queries
        seen, weight = values[:before][:, left], drawn[:, :before]
        replicates = (weight @ seen / weight.sum(axis=1, keepdims=True)).T
        left[left] = survivors(seen.mean(axis=0), replicates, before, look.level)
        if left.sum() == 1:
            break
    return left, calls + (queries - before) * int(left.sum())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data" / "robust03")
    options = parser.parse_args()
    sys.stdout.write(f"{'case':28}{'kept':>8}{'calls':>8}{'cells left':>12}\n")
    for name, case in cases(options.data, options.only):
        if options.only not in name:
            continue
        rng, survived, calls, left_over = np.random.default_rng(7), 0, 0.0, 0
        for repetition in range(options.repetitions):
            if repetition % AT_ONCE == 0:
                drawn = weights(np.arange(QUERIES, dtype=np.uint64), REPLICATES, repetition).T.astype(np.float64)
            values, truth = case(rng)
            left, call_count = run(values, drawn)
            survived += bool(left[truth >= truth.max() - 1e-12].any())
            calls += call_count / values.size
            left_over += int(left.sum())
        n = options.repetitions
        sys.stdout.write(f"{name:28}{survived / n:>8.3f}{calls / n:>8.0%}{left_over / n:>12.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
