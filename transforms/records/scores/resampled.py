"""What the bootstrap sums up: the scores of all configurations, and of all pairs, in whole numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.metrics.names import Metric

_BITS = 32  # a bounded metric is known to 2^-32 of its highest value, far below what replicates differ by
_BITS_UNBOUNDED = 20


@dataclass(frozen=True)
class Layout:
    """Which column of the bootstrap's sums means what.

    Each of the k configurations has a column a metric and one that counts its queries; then each pair has the same of
    its differences, over the queries that both have.

    Attributes:
        metrics: m of them.
        configurations: how many, k.
        pairs: positions of the configurations that are compared, each with its baseline.
    """

    metrics: tuple[Metric, ...]
    configurations: int
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Layout":
        """The layout of an experiment."""
        return cls(evaluation.metrics, len(evaluation.configurations), evaluation.pairs)

    def units(self, values: FloatArray, scored: BoolArray) -> IntArray:
        """Values in whole numbers.

        Args:
            values: float64[n, m].
            scored: bool[n]; the others are 0.

        Returns:
            int64[n, m].
        """
        kept = np.where(scored[:, None], values, 0.0)
        units: IntArray = np.rint(kept * self._scales).astype(np.int64)
        return units

    def columns(self, scored: Sequence[BoolArray], units: Sequence[IntArray]) -> IntArray:
        """The columns of some queries.

        Args:
            scored: for each configuration, bool[n].
            units: for each configuration, int64[n, m], as `units` has them.

        Returns:
            int64[n, (k + pairs) · (m + 1)].
        """
        found = [np.column_stack(one) for one in zip(units, scored, strict=True)]
        for one, other in self.pairs:
            both = scored[one] & scored[other]
            found.append(np.column_stack([(units[one] - units[other]) * both[:, None], both]))
        return np.concatenate(found, axis=1)

    def means(self, totals: IntArray, position: int) -> FloatArray:
        """The replicates of a configuration's means.

        Args:
            totals: int64[columns, b].
            position: of the configuration.

        Returns:
            float64[m, b]; NaN where a replicate weighs nothing.
        """
        return self._ratios(totals, position)

    def differences(self, totals: IntArray, pair: tuple[int, int]) -> FloatArray:
        """The replicates of a pair's mean differences, as `means` gives those of a configuration."""
        return self._ratios(totals, self.configurations + self.pairs.index(pair))

    def _ratios(self, totals: IntArray, group: int) -> FloatArray:
        width = len(self.metrics) + 1
        *sums, weight = totals[group * width : (group + 1) * width].astype(np.float64)
        known = np.where(weight > 0, weight, np.nan)
        return np.reshape(sums, (len(self.metrics), -1)) / self._scales[:, None] / known

    @property
    def _scales(self) -> FloatArray:
        """float64[m]: the powers of two that whole numbers are counted in."""
        return np.ldexp(1.0, np.array([_bits(metric) for metric in self.metrics], np.int64))


def _bits(metric: Metric) -> int:
    if metric.definition.summed:
        return 0  # counts are whole numbers
    highest = metric.definition.highest
    return _BITS_UNBOUNDED if highest is None else _BITS - math.ceil(math.log2(highest))
