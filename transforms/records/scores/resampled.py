"""The columns that the bootstrap sums: scores of all configurations, and differences of all pairs, as whole numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.panels import AnyMetric, Panel, bits_of, range_of
from rankbeam.transforms.records.scores.scored import ScoredPanel

_BITS = 32  # resolution of a bounded metric: 2^-32 of its highest value, far finer than replicates differ

Part = tuple[IntArray, BoolArray]
"""One panel of one configuration: values as whole numbers, int64[n, m], and which queries have them, bool[n]."""


@dataclass(frozen=True)
class SumLayout:
    """The meaning of the columns of the bootstrap's sums.

    Each of the k configurations has, panel by panel, one column per metric and one that counts its queries; then each
    pair has the same columns for its differences, over the queries that both have.
    """

    panels: tuple[Panel, ...]
    configurations: int
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> "SumLayout":
        return cls(evaluation.panels, len(evaluation.configurations), evaluation.pairs)

    def part(self, panel: int, scored: ScoredPanel) -> Part:
        """A panel of one configuration as whole numbers; queries without values are 0."""
        counted = scored.scored
        values = np.where(counted[:, None], scored.values, 0.0)
        units: IntArray = np.rint(values * self._scales[panel]).astype(np.int64)
        return units, counted

    def columns(self, parts: Sequence[Sequence[Part]]) -> IntArray:
        """int64[n, (k + pairs) · Σ(m + 1)], summed over the panels, from those of each configuration."""
        columns = [np.column_stack(part) for config in parts for part in config]
        for one, other in self.pairs:
            for (units, counted), (others, also) in zip(parts[one], parts[other], strict=True):
                both = counted & also
                columns.append(np.column_stack([(units - others) * both[:, None], both]))
        return np.concatenate(columns, axis=1)

    def within(
        self, parts: Sequence[Sequence[Part]], columns: IntArray, chosen: BoolArray
    ) -> tuple[BoolArray, IntArray]:
        """The rows of a slice, bool[n] or by rank bool[k, n], and their columns."""
        if chosen.ndim == 1:
            return chosen, columns[chosen]
        masked = [
            [(units * own[:, None], known & own) for units, known in config]
            for config, own in zip(parts, chosen, strict=True)
        ]
        rows: BoolArray = np.logical_or.reduce(chosen)
        return rows, self.columns(masked)[rows]

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """For each column, the position of the column that counts its queries; for such a column, its own."""
        groups = self.configurations + len(self.pairs)
        widths = [len(panel.metrics) + 1 for panel in self.panels] * groups
        lasts = np.repeat(np.cumsum(widths) - 1, widths)
        return tuple(lasts.tolist())

    def group_of(self, pair: tuple[int, int]) -> int:
        """The position of a pair's columns, where each configuration and each pair counts one."""
        return self.configurations + self.pairs.index(pair)

    def places(self, group: int, panel: int) -> Iterator[tuple[int, float]]:
        """Each metric's column, and the scale of its whole numbers."""
        yield from enumerate(self._scales[panel].tolist(), group * self._starts[-1] + self._starts[panel])

    def means(self, totals: IntArray, position: int, panel: int) -> FloatArray:
        """The replicates of a configuration's means, float64[m, b]; NaN where a replicate weighs nothing."""
        return self._ratios(totals, position, panel)

    def differences(self, totals: IntArray, pair: tuple[int, int], panel: int) -> FloatArray:
        """The replicates of a pair's mean differences, as `means` gives those of a configuration."""
        return self._ratios(totals, self.group_of(pair), panel)

    def _ratios(self, totals: IntArray, group: int, panel: int) -> FloatArray:
        starts, metrics = self._starts, len(self.panels[panel].metrics)
        first = group * starts[-1] + starts[panel]
        *sums, weight = totals[first : first + metrics + 1].astype(np.float64)
        known = np.where(weight > 0, weight, np.nan)
        return np.reshape(sums, (metrics, len(weight))) / self._scales[panel][:, None] / known

    @cached_property
    def _starts(self) -> list[int]:
        """For each panel, its first column within a configuration's; last, the number of a configuration's columns."""
        widths = [len(panel.metrics) + 1 for panel in self.panels]
        return [sum(widths[:place]) for place in range(len(widths) + 1)]

    @cached_property
    def _scales(self) -> list[FloatArray]:
        """For each panel float64[m]: the powers of two by which values are scaled to whole numbers."""
        return [np.ldexp(1.0, np.array([_bits(metric) for metric in panel.metrics], np.int64)) for panel in self.panels]


def _bits(metric: AnyMetric) -> int:
    lowest, highest = range_of(metric)
    return bits_of(metric) if highest is None else _BITS - math.ceil(math.log2(max(highest, -lowest)))
