"""The difference that the queries of a comparison can detect, and the queries that another difference needs."""

import math
from collections.abc import Iterable

from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.sample_size import queries_needed
from rankbeam.transforms.records.scores.rows import Comparison, evidence_of

DIFFERENCES = (0.02, 0.05)
"""The differences that are of interest where no gate names one."""


def level_of(rows: Iterable[Comparison], confidence: float) -> float:
    """The significance level of one comparison among all tested ones of its metric, by Bonferroni."""
    return (1.0 - confidence) / max(1, sum(row.p_value is not None for row in rows))


def detectable(row: Comparison, level: float) -> float | None:
    """The smallest difference that the queries detect with a power of 80%; None without a spread."""
    if not row.std_error or evidence_of(row) < 2:
        return None
    return detectable_difference(row.std_error, evidence_of(row), level=level)


def queries_for(row: Comparison, difference: float, level: float, power: float = 0.8) -> int | None:
    """The number of queries that detect a difference; None without a spread.

    The spread is that of this comparison, never its difference: power at the observed difference restates the p-value.
    With clusters, further queries are assumed to come in clusters of the same sizes.
    """
    units = evidence_of(row)
    if not row.std_error or units < 2:
        return None
    needed = queries_needed(difference, row.std_error * math.sqrt(units), power, level)
    return math.ceil(needed * row.queries / units)
