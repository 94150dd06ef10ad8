"""Do 95% intervals hold the true mean in 95% of samples? Simulated, on shapes that metrics have.

The weights of each sample are those of its own queries, so samples are independent. `make simulate` prints a larger
table, with joint intervals and those of the configuration that is picked.
"""

from collections.abc import Callable

import numpy as np
import pytest
from support.data import SHARED_DATA, needs_shared_data
from support.runs import query_values, run_experiment
from threadpoolctl import threadpool_limits

from rankbeam.transforms.kernels.hashing import mix
from rankbeam.transforms.kernels.statistics.bootstrap import weights
from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate, Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.selection import joint_intervals

pytestmark = pytest.mark.campaign

SAMPLES, REPLICATES = 2000, 1000
ROUNDING = 1e-9  # a true mean of a tenth is not the mean of rounded tenths
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

SHAPES: dict[str, tuple[Draw, float]] = {
    "nDCG, spread out": (lambda rng, shape: rng.beta(0.5, 0.5, shape), 0.5),
    "AP, mostly low": (lambda rng, shape: rng.beta(0.4, 1.6, shape), 0.2),
    "RR": (lambda rng, shape: 1.0 / rng.geometric(0.4, shape), -0.4 * np.log(0.4) / 0.6),
}
DIFFERENCES: dict[str, tuple[Draw, float]] = {
    "mostly none": (lambda rng, shape: (rng.random(shape) < 0.3) * rng.normal(0.05, 0.3, shape), 0.015),
}


def success(share: float) -> tuple[Draw, float]:
    return lambda rng, shape: (rng.random(shape) < share).astype(float), share


def mass(share: float, end: float) -> tuple[Draw, float]:
    """Most values at one end, the rest uniform."""
    mean = share * end + (1.0 - share) / 2.0
    return lambda rng, shape: np.where(rng.random(shape) < share, end, rng.random(shape)), mean


def judged(zeros: float, ones: float) -> tuple[Draw, float]:
    """Values of answers that are mostly good: some at 1, the rest from 0.8 to 1, and rare zeros."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        place = rng.random(shape)
        return np.where(place < zeros, 0.0, np.where(place < zeros + ones, 1.0, rng.uniform(0.8, 1.0, shape)))

    return draw, ones + (1.0 - zeros - ones) * 0.9


JUDGED = {f"{zeros} zeros, {ones} ones": judged(zeros, ones) for zeros in (0.01, 0.03, 0.06) for ones in (0.0, 0.6)}
RARE: dict[str, tuple[Draw, float]] = {
    **{f"success of {share}": success(share) for share in (0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 0.97, 1.0)},
    **{f"{share} at {end}": mass(share, end) for share in (0.9, 0.95, 0.97) for end in (0.0, 1.0)},
    "0.9 in the middle": (lambda rng, shape: np.where(rng.random(shape) < 0.9, 0.5, 1.0), 0.55),
    **JUDGED,
}


def estimates_of(values: np.ndarray) -> list[Estimate]:
    m = Moments.of(values)
    rows = zip(m.means(), m.standard_errors(), m.successes(), strict=True)
    return [Estimate(m.count, mean, error, successes=successes) for mean, error, successes in rows]


def differences_of(values: np.ndarray) -> list[DifferenceEstimate]:
    m = Moments.of(values)
    rows = zip(m.means(), m.standard_errors(), m.lowest, m.highest, np.count_nonzero(values, axis=0), strict=True)
    return [DifferenceEstimate(m.count, *row, width=1.0, events=int(events)) for *row, events in rows]


def coverage(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of samples whose interval holds the true mean.

    Args:
        values: float64[samples, n, shapes].
        truth: float64[shapes].
    """
    covered = np.zeros(len(truth))
    for sample in values:
        low, high = np.array([estimate.interval() for estimate in estimates_of(sample)]).T
        covered += (low - ROUNDING <= truth) & (truth <= high + ROUNDING)
    return covered / len(values)


def coverage_of_differences(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """As `coverage`, of differences."""
    with threadpool_limits(1):  # on busy cores, threads of BLAS wait for each other
        return _coverage(values, truth)


def _coverage(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    samples, count, shapes = values.shape
    covered = np.zeros(shapes)
    for sample in range(samples):
        drawn = weights(mix(np.arange(count, dtype=np.uint64) + np.uint64(sample * count)), REPLICATES, 0).astype(float)
        total = drawn.sum(axis=0)
        replicates = (values[sample].T @ drawn) / np.where(total > 0, total, np.nan)
        for shape, estimate in enumerate(differences_of(values[sample])):
            low, high = estimate.interval(replicates[shape])
            covered[shape] += low - ROUNDING <= truth[shape] <= high + ROUNDING
    return covered / samples


def joint_coverage(values: np.ndarray, truth: float) -> tuple[float, float]:
    """The share of samples in which all joint intervals hold the true mean, and in which that of the best one does.

    Args:
        values: float64[samples, n, k], of k configurations.
        truth: true mean of every configuration.
    """
    together = picked = 0
    with threadpool_limits(1):
        for number, sample in enumerate(values):
            hashes = mix(np.arange(len(sample), dtype=np.uint64) + np.uint64(number * len(sample)))
            drawn = weights(hashes, REPLICATES, 0).astype(float)
            low, high = joint_intervals(estimates_of(sample), sample.T @ drawn / drawn.sum(axis=0))
            covered = (low - ROUNDING <= truth) & (truth <= high + ROUNDING)
            together += bool(covered.all())
            picked += bool(covered[np.argmax(sample.mean(axis=0))])
    return together / len(values), picked / len(values)


def drawn(shapes: dict[str, tuple[Draw, float]], samples: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = np.stack([draw(rng, (samples, count)) for draw, _ in shapes.values()], axis=-1)
    return values, np.array([mean for _, mean in shapes.values()])


@pytest.mark.parametrize("count", [50, 100])
def test_intervals_cover_the_mean_in_93_to_98_of_100_samples(count: int) -> None:
    shares = dict(zip(SHAPES, coverage(*drawn(SHAPES, SAMPLES, count, seed=count)), strict=True))
    shares |= zip(DIFFERENCES, coverage_of_differences(*drawn(DIFFERENCES, SAMPLES, count, seed=count)), strict=True)
    assert all(0.93 <= share <= 0.98 for share in shares.values()), shares


@pytest.mark.parametrize("count", [20, 40, 100])
def test_intervals_cover_the_mean_where_other_values_are_rare(count: int) -> None:
    """Rare values widen the intervals: the bootstrap alone holds in 17 of 100 samples at worst."""
    shares = dict(zip(RARE, coverage(*drawn(RARE, 600, count, seed=count)), strict=True))
    assert all(share >= 0.93 for share in shares.values()), shares


@pytest.mark.parametrize("count", [20, 50, 100])
@pytest.mark.parametrize("name", ["0.03 zeros, 0.6 ones", "0.06 zeros, 0.0 ones"])
def test_joint_intervals_cover_all_means_where_zeros_are_rare(name: str, count: int) -> None:
    """Half of the time, a configuration's value is the one that all have in common."""
    (draw, truth), rng = JUDGED[name], np.random.default_rng(count)
    shape = (600, count, 6)
    values = np.where(rng.random(shape) < 0.5, draw(rng, (600, count, 1)), draw(rng, shape))
    assert min(joint_coverage(values, truth)) >= 0.93


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
    by_query = query_values(run_experiment(tmp_path_factory.mktemp("robust"), experiment | {"metrics": ["AP", "P@10"]}))
    scores = {
        name: np.array([list(by_query[name][query].values()) for query in sorted(by_query[name])]) for name in names
    }
    population = np.concatenate([scores[names[0]], scores[names[1]], scores[names[0]] - scores[names[1]]], axis=1)
    rows = np.random.default_rng(3).integers(0, len(population), (SAMPLES, 60))
    values, truth = population[rows], population.mean(axis=0)
    shares = np.append(coverage(values[..., :4], truth[:4]), coverage_of_differences(values[..., 4:], truth[4:]))
    assert ((shares >= 0.93) & (shares <= 0.98)).all(), shares


def test_ten_queries_are_enough_for_rare_successes() -> None:
    """Exact intervals are right for any number of queries, and wide."""
    shapes = SHAPES | {"success of one in ten": success(0.1)}
    shares = dict(zip(shapes, coverage(*drawn(shapes, SAMPLES, 10, seed=10)), strict=True))
    assert shares["nDCG, spread out"] > 0.93
    assert shares["success of one in ten"] >= 0.95
