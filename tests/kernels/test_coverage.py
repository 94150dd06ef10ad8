"""Do 95% intervals hold the true mean in 95% of samples? Simulated, on shapes that metrics have.

The weights of each sample are those of its own queries, so samples are independent. Below `SMALL` queries intervals are
Student's; for shapes that are far from normal both fall short there, as the last test shows and the README says.
"""

from collections.abc import Callable

import numpy as np
import pytest
from support.data import SHARED_DATA, needs_shared_data
from support.runs import query_values, run_experiment
from threadpoolctl import threadpool_limits

from transforms.kernels.bootstrap import bootstrap_interval, weights
from transforms.kernels.hashing import mix

SAMPLES, REPLICATES = 2000, 1000
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

SHAPES: dict[str, tuple[Draw, float]] = {
    "nDCG, spread out": (lambda rng, shape: rng.beta(0.5, 0.5, shape), 0.5),
    "AP, mostly low": (lambda rng, shape: rng.beta(0.4, 1.6, shape), 0.2),
    "success of three in ten": (lambda rng, shape: (rng.random(shape) < 0.3).astype(float), 0.3),
    "success of one in ten": (lambda rng, shape: (rng.random(shape) < 0.1).astype(float), 0.1),
    "RR": (lambda rng, shape: 1.0 / rng.geometric(0.4, shape), -0.4 * np.log(0.4) / 0.6),
    "difference, mostly none": (lambda rng, shape: (rng.random(shape) < 0.3) * rng.normal(0.05, 0.3, shape), 0.015),
}


def coverage(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of samples whose interval holds the true mean.

    Args:
        values: float64[samples, n, shapes].
        truth: float64[shapes].
    """
    with threadpool_limits(1):  # on busy cores, threads of BLAS wait for each other
        return _coverage(values, truth)


def _coverage(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    samples, count, shapes = values.shape
    covered = np.zeros(shapes)
    for sample in range(samples):
        drawn = weights(mix(np.arange(count, dtype=np.uint64) + np.uint64(sample * count)), REPLICATES, 0).astype(float)
        total = drawn.sum(axis=0)
        replicates = (values[sample].T @ drawn) / np.where(total > 0, total, np.nan)
        means, errors = values[sample].mean(axis=0), values[sample].std(axis=0, ddof=1) / np.sqrt(count)
        for shape in range(shapes):
            low, high = bootstrap_interval(means[shape], errors[shape], replicates[shape], count)
            covered[shape] += low <= truth[shape] <= high
    return covered / samples


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = np.stack([draw(rng, (SAMPLES, count)) for draw, _ in SHAPES.values()], axis=-1)
    return values, np.array([mean for _, mean in SHAPES.values()])


@pytest.mark.parametrize("count", [50, 100])
def test_intervals_cover_the_mean_in_93_to_97_of_100_samples(count: int) -> None:
    found = dict(zip(SHAPES, coverage(*drawn(count, seed=count)), strict=True))
    # Counts of rare events are a lattice, on which the coverage of any interval goes up and down with n (Brown, Cai and
    # DasGupta, "Interval estimation for a binomial proportion", 2001): a tenth of 100 is at the bottom.
    assert found.pop("success of one in ten") > 0.91
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


@needs_shared_data
def test_intervals_cover_the_mean_of_real_scores(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Samples from the scores of two real runs, and from their differences, whose means are then the truth."""
    robust = SHARED_DATA / "robust03"
    names = ("aplrob03a", "pircRBa1")
    runs = [
        {"name": name, "retriever": {"type": "run_file", "path": str(robust / "runs" / f"input.{name}.gz")}}
        for name in names
    ]
    experiment = {"dataset": {"qrels": str(robust / "qrels.txt.gz")}, "configurations": runs}
    found = query_values(run_experiment(tmp_path_factory.mktemp("robust"), experiment | {"metrics": ["AP", "P@10"]}))
    scores = {name: np.array([list(found[name][query].values()) for query in sorted(found[name])]) for name in names}
    population = np.concatenate([scores[names[0]], scores[names[1]], scores[names[0]] - scores[names[1]]], axis=1)
    rows = np.random.default_rng(3).integers(0, len(population), (SAMPLES, 60))
    shares = coverage(population[rows], population.mean(axis=0))
    assert ((shares >= 0.93) & (shares <= 0.97)).all(), shares


def test_few_queries_are_too_few_for_rare_successes() -> None:
    """Ten queries, of which one in ten succeeds: no interval of the mean knows what it did not see."""
    found = dict(zip(SHAPES, coverage(*drawn(10, seed=10)), strict=True))
    assert found["nDCG, spread out"] > 0.93
    assert found["success of one in ten"] < 0.75
