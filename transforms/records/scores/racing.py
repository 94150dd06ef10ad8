"""Select the configurations of a race that may still be the best, from the scores of the queries so far."""

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.statistics.selection import may_be_best
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.panels import sign_of
from rankbeam.transforms.records.race import Look
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.estimates import SliceState
from rankbeam.transforms.records.slices import ALL


def left_after(aggregate: RunAggregate, evaluation: Evaluation, look: Look) -> frozenset[int]:
    """The positions of the configurations that go on after a look.

    Values by the rules of different tools are not comparable, so each dialect has a race of its own.
    """
    groups = grouped(
        (configuration.dialect, position)
        for position, configuration in enumerate(evaluation.configurations)
        if configuration.dropped_at is None
    )
    whole = SliceState.by_name(aggregate, evaluation)[ALL]
    panel, column = evaluation.raced
    sign = sign_of(lower_is_better=evaluation.panels[panel].metrics[column].lower_is_better)
    left: set[int] = set()
    for positions in groups.values():
        states = [aggregate.queries[position, panel, ALL] for position in positions]
        means = np.array([state.moments.means()[column] for state in states], np.float64)
        replicates = np.stack([whole.replicates(position, panel)[column] for position in positions])
        clusters = [whole.clusters(position, panel) for position in positions]
        counts = [
            state.moments.count if metrics is None else metrics[column].count
            for state, metrics in zip(states, clusters, strict=True)
        ]
        scored = min(filter(None, counts), default=0)
        stays = survivors(sign * means, sign * replicates, scored, look.level)
        left |= {position for position, stay in zip(positions, stays.tolist(), strict=True) if stay}
    return frozenset(left)


def survivors(means: FloatArray, replicates: FloatArray, queries: float, level: float) -> BoolArray:
    """Return whether each configuration goes on after a look.

    Args:
        means: float64[k]; NaN for a configuration without one.
        replicates: float64[k, B], as `may_be_best` takes them.
        queries: number of scored queries, or of clusters.
        level: the probability with which the best may be dropped.

    Returns:
        bool[k]. All go on if B replicates cannot resolve the level, which is less than 1/B; a configuration without a
        mean always does, as nothing is known about it.
    """
    if level * replicates.shape[1] < 1.0:
        return np.ones(len(means), bool)
    return may_be_best(means, replicates, queries, 1.0 - level) | np.isnan(means)
