"""The audit of a judge: its grades of documents that people judged, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankbeam.pipelines.holes.grades import Pair
from rankbeam.transforms.kernels.statistics.agreement import wilson_interval
from rankbeam.transforms.kernels.statistics.raters import cohen, confusion, observed_agreement, resampled_confusions

LEAST_PAIRS = 50
"""With fewer documents that both graded, an audit says little."""
_LEAST_KAPPA, _MOST_OVERRATED = 0.4, 0.1
_QUADRATIC = 2


@dataclass(frozen=True)
class Audit:
    """Comparison of the judge's grades with people's, on the scale of people.

    Attributes:
        grades: the grades that occur, the lowest first.
        counts: pairs of query and document, by grade of people (row) and of the judge (column).
        kappa: quadratic kappa; None if it is not defined.
        interval: its bootstrap interval at 95%, over queries.
        overrated: documents that people found not relevant and the judge found relevant.
        not_relevant: documents that people found not relevant.
    """

    grades: Sequence[int]
    counts: Sequence[Sequence[int]]
    kappa: float | None
    interval: tuple[float, float] | None
    overrated: int
    not_relevant: int

    @property
    def pairs(self) -> int:
        """The number of pairs that both graded."""
        return sum(map(sum, self.counts))

    @property
    def agreement(self) -> float | None:
        """The share of equal grades."""
        return observed_agreement(np.array(self.counts, np.int64)) if self.pairs else None

    @property
    def overrating(self) -> tuple[float, float]:
        """The interval at 95% of the probability that the judge finds a document relevant that people do not."""
        return wilson_interval(self.overrated, self.not_relevant)

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust the filled grades."""
        warnings = []
        if self.pairs < LEAST_PAIRS:
            warnings.append(f"people and judge both graded {self.pairs:,} documents; {LEAST_PAIRS} are needed")
        if self.not_relevant and self.overrated > _MOST_OVERRATED * self.not_relevant:
            share = self.overrated / self.not_relevant
            warnings.append(f"the judge finds {share:.0%} of the documents relevant that people found not relevant")
        if self.interval is None or self.interval[0] < _LEAST_KAPPA:
            low = "unknown" if self.interval is None else f"{self.interval[0]:.2f}"
            warnings.append(
                f"the lower end of quadratic kappa is {low}; below {_LEAST_KAPPA}, put no gates on such means"
            )
        return warnings


def audit_of(human: Mapping[Pair, float], judge: Mapping[Pair, int]) -> Audit:
    """The audit over all pairs that both graded; grades of people below 0 do not count.

    Args:
        human: grades of people.
        judge: grades of the judge on the scale of people.

    >>> audit_of({("q", "a"): 1.0, ("q", "b"): 0.0, ("r", "a"): 0.0}, {("q", "a"): 1, ("q", "b"): 1}).counts
    [[0, 1], [0, 1]]
    """
    both = sorted(pair for pair in judge if human.get(pair, -1.0) >= 0)
    highest = max([1, *(int(human[pair]) for pair in both), *(judge[pair] for pair in both)])
    first = np.array([round(human[pair]) for pair in both], np.int64)
    second = np.array([judge[pair] for pair in both], np.int64)
    queries = np.unique(np.array([query_id for query_id, _ in both], object), return_inverse=True)[1]
    size = highest + 1
    counts = confusion(first, second, size)
    drawn = [cohen(matrix, _QUADRATIC) for matrix in resampled_confusions(first, second, queries, size)]
    known = [kappa for kappa in drawn if kappa is not None]
    low, high = np.percentile(known, (2.5, 97.5)).tolist() if known else (0.0, 0.0)
    not_relevant = first == 0
    return Audit(
        range(size),
        counts.tolist(),
        cohen(counts, _QUADRATIC),
        (low, high) if known else None,
        int((not_relevant & (second > 0)).sum()),
        int(not_relevant.sum()),
    )
