"""Shapes of scores: random distributions, and the scores of real runs.

A shape draws samples of n queries for some configurations. As in an evaluation the configurations see the same queries:
half of the time a configuration's value is the one that all have in common.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.dataset as pads

FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
CONFIGURATIONS = 6
COMMON = 0.5
METRICS = ("AP", "nDCG@10", "P@10", "RR", "Success@10", "Success@1")


@dataclass(frozen=True)
class Shape:
    """Source of samples.

    Attributes:
        name: name of the shape.
        sample: from a generator, and numbers of samples and queries, to float64[samples, queries, k].
        truth: float64[k], the true means.
        floor: the lowest value there can be. Differences have -1.
        ceiling: the highest value there can be; None for counts.
    """

    name: str
    sample: Callable[[np.random.Generator, int, int], FloatArray]
    truth: FloatArray
    floor: float = 0.0
    ceiling: float | None = 1.0


def drawn(name: str, draw: Draw, mean: float, floor: float = 0.0, ceiling: float | None = 1.0) -> Shape:
    """A shape of which every value has the same distribution."""

    def sample(rng: np.random.Generator, samples: int, queries: int) -> FloatArray:
        shape = (samples, queries, CONFIGURATIONS)
        common, own = draw(rng, (samples, queries, 1)), draw(rng, shape)
        return np.where(rng.random(shape) < COMMON, common, own)

    return Shape(name, sample, np.full(CONFIGURATIONS, mean), floor, ceiling)


def population(name: str, values: FloatArray, floor: float = 0.0) -> Shape:
    """A shape whose queries are drawn from float64[queries, k]."""
    return Shape(
        name,
        lambda rng, samples, queries: values[rng.integers(0, len(values), (samples, queries))],
        values.mean(axis=0),
        floor,
    )


def binary(share: float) -> Shape:
    """Successes."""
    return drawn(f"success of {share:g}", lambda rng, shape: (rng.random(shape) < share).astype(float), share)


def mass(share: float, end: float) -> Shape:
    """Most values at one end of the range, and the rest anywhere."""
    return drawn(
        f"{share:g} at {end:g}, rest uniform",
        lambda rng, shape: np.where(rng.random(shape) < share, end, rng.random(shape)),
        share * end + (1.0 - share) / 2.0,
    )


def graded(zeros: float, ones: float, low: float, high: float = 1.0, rare: float = 0.0) -> Shape:
    """Judged values: some at 1, the rest between two ends, and rare ones far from all others.

    Args:
        zeros: share of the rare values.
        ones: share of values that are 1.
        low: lowest of the values that are neither.
        high: highest of these.
        rare: the rare value.
    """
    rest = 1.0 - zeros - ones

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        place = rng.random(shape)
        return np.where(place < zeros, rare, np.where(place < zeros + ones, 1.0, rng.uniform(low, high, shape)))

    name = f"{zeros:g} at {rare:g}, {ones:g} at 1, rest {low:g}-{high:g}"
    return drawn(name, draw, zeros * rare + ones + rest * (low + high) / 2.0)


def ordinal(shares: tuple[float, float, float]) -> Shape:
    """Values of 0, a half, or 1."""
    return drawn(
        "ordinal " + "/".join(f"{share:g}" for share in shares),
        lambda rng, shape: rng.choice([0.0, 0.5, 1.0], shape, p=shares),
        shares[1] / 2.0 + shares[2],
    )


def differing(share: float, draw: Draw, mean: float, name: str) -> Shape:
    """Differences, most of them none."""
    return drawn(
        f"{share:g} differ, {name}",
        lambda rng, shape: (rng.random(shape) < share) * draw(rng, shape),
        share * mean,
        -1.0,
    )


def simulated() -> list[Shape]:
    """Shapes that are drawn at random."""
    return [
        *(binary(share) for share in (0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 0.97, 1.0)),
        *(mass(share, 1.0) for share in (0.9, 0.95, 0.97)),
        *(mass(share, 0.0) for share in (0.9, 0.97)),
        drawn("nDCG, spread out", lambda rng, shape: rng.beta(0.5, 0.5, shape), 0.5),
        drawn("AP, mostly low", lambda rng, shape: rng.beta(0.4, 1.6, shape), 0.2),
        drawn("RR", lambda rng, shape: 1.0 / rng.geometric(0.4, shape), -0.4 * np.log(0.4) / 0.6),
        drawn("0.9 at 0.5, rest 1", lambda rng, shape: np.where(rng.random(shape) < 0.9, 0.5, 1.0), 0.55),
        *(graded(zeros, 0.6, 0.8) for zeros in (0.01, 0.03, 0.06)),
        *(graded(zeros, 0.0, 0.8) for zeros in (0.01, 0.03, 0.06)),
        *(graded(zeros, 0.3, 0.5) for zeros in (0.03, 0.06)),
        graded(0.03, 0.0, 0.0, 0.2, 1.0),
        graded(0.0, 0.0, 0.8),
        graded(0.4, 0.0, 0.0),
        ordinal((0.2, 0.3, 0.5)),
        ordinal((0.02, 0.1, 0.88)),
        drawn("counts, geometric", lambda rng, shape: rng.geometric(0.2, shape) - 1.0, 4.0, ceiling=None),
        drawn(
            "counts, 0.03 at 0, rest 90-100",
            lambda rng, shape: (rng.random(shape) > 0.03) * rng.integers(90, 101, shape).astype(float),
            0.97 * 95.0,
            ceiling=None,
        ),
        differing(0.3, lambda rng, shape: rng.normal(0.05, 0.3, shape).clip(-1, 1), 0.05, "normal"),
        differing(0.1, lambda rng, shape: rng.uniform(-1.0, 1.0, shape), 0.0, "uniform"),
        differing(0.05, lambda rng, shape: rng.random(shape), 0.5, "all higher"),
    ]


def real(robust: Path) -> Iterator[Shape]:
    """Scores of the runs of TREC's Robust track 2003, and their differences from the first run."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [word for metric in METRICS for word in ("-m", metric)]
        runs = sorted(map(str, (robust / "runs").iterdir()))
        command = [sys.executable, "-m", "rankbeam", "score", str(robust / "qrels.txt.gz"), *runs, *arguments]
        subprocess.run([*command, "--output", folder], check=True, capture_output=True)
        rows = pads.dataset(f"{folder}/query_metrics", partitioning=None).to_table().to_pylist()
    ids = sorted({row["config_id"] for row in rows})
    queries = sorted({row["query_id"] for row in rows})
    values = np.empty((len(queries), len(ids), len(METRICS)))
    for row in rows:
        scores = [item["value"] for item in row["metrics"]]
        values[queries.index(row["query_id"]), ids.index(row["config_id"])] = scores
    for place, metric in enumerate(METRICS):
        yield population(f"Robust, {metric}", values[..., place])
    yield population("Robust, AP, differences", values[:, 1:, 0] - values[:, :1, 0], -1.0)
