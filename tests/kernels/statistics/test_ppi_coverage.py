"""Do intervals by labels and judge hold the true mean in at least 93% of samples? Simulated; prints a table with -s."""

from typing import NamedTuple

import numpy as np
import pytest

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, Spread, estimate

pytestmark = pytest.mark.campaign

SAMPLES, OTHERS, ROUNDING = 4000, 1000, 1e-9
LABELS, ACCURACIES, TRUTHS = (20, 30, 50, 100, 300), (0.7, 0.85, 0.95), (0.6, 0.8, 0.9, 0.95)
LEAST_COVERAGE = 0.93


class Pair(NamedTuple):
    """Human and judged values, float64[samples, queries] each."""

    labels: FloatArray
    judged: FloatArray


def draw(rng: np.random.Generator, claims: int, truth: float, accuracy: float, queries: int) -> Pair:
    """Shares of supported claims: answers differ in quality where they have several; each verdict may be wrong."""
    shape = (SAMPLES, queries)
    quality = np.full(shape, truth) if claims == 1 else rng.beta(4.0 * truth, 4.0 * (1.0 - truth), shape)
    supported = rng.binomial(claims, quality)
    judged = rng.binomial(supported, accuracy) + rng.binomial(claims - supported, 1.0 - accuracy)
    return Pair(supported / claims, judged / claims)


def samples(labels: FloatArray, judged: FloatArray, others: FloatArray) -> list[LabelledSample]:
    covariances = (labels * judged).mean(axis=1) - labels.mean(axis=1) * judged.mean(axis=1)
    spreads = [
        [Spread(values.shape[1], *row) for row in zip(values.mean(axis=1), values.var(axis=1), strict=True)]
        for values in (labels, judged, others)
    ]
    return [LabelledSample(y, f, float(c), g) for y, f, g, c in zip(*spreads, covariances, strict=True)]


def coverage(result: list[LabelledSample], truth: float, lowest: float) -> tuple[float, float]:
    """The share of intervals that hold the truth, and their mean half width."""
    ends = np.array([estimate(sample, lowest, 1.0).interval() for sample in result])
    holds = (ends[:, 0] <= truth + ROUNDING) & (truth - ROUNDING <= ends[:, 1])
    return float(holds.mean()), float((ends[:, 1] - ends[:, 0]).mean()) / 2.0


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("claims", [1, 4], ids=["binary", "graded"])
@pytest.mark.parametrize("worse", [None, 0.0, 0.05], ids=["mean", "no difference", "difference of .05"])
def test_intervals_hold_the_truth(claims: int, accuracy: float, worse: float | None) -> None:
    rng, lowest = np.random.default_rng(7), 0.0 if worse is None else -1.0
    table: dict[tuple[int, float], tuple[float, float]] = {}
    for count in LABELS:
        for truth in TRUTHS:
            (labels, judged), (_, others) = (draw(rng, claims, truth, accuracy, n) for n in (count, OTHERS))
            if worse is not None:
                (second, also), (_, more) = (draw(rng, claims, truth - worse, accuracy, n) for n in (count, OTHERS))
                labels, judged, others = labels - second, judged - also, others - more
            result = samples(labels, judged, others)
            table[count, truth] = coverage(result, truth if worse is None else worse, lowest)
    for count in LABELS:
        cells = "  ".join(f"{table[count, truth][0]:.3f} ±{table[count, truth][1]:.3f}" for truth in TRUTHS)
        print(f"claims {claims}, judge {accuracy:.0%}, diff. {worse}, n {count:3}: {cells}")  # noqa: T201  the table
    assert min(share for share, _ in table.values()) >= LEAST_COVERAGE, table
