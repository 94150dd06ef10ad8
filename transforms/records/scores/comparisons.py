"""Rows of the tables of means and of comparisons, from a run's estimates, and the differences that queries detect."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.statistics.corrections import benjamini_hochberg, detectable_difference, holm
from rankbeam.transforms.kernels.statistics.sample_size import queries_needed
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.scores.estimates import Firsts, RunEstimates
from rankbeam.transforms.records.scores.means import or_null
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric, evidence_of
from rankbeam.transforms.records.slices import ALL
from rankbeam.transforms.records.stages import stage_between

DIFFERENCES = (0.02, 0.05)
"""The differences that are of interest if no gate names one."""


def metrics_table(estimates: RunEstimates, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, without the common columns, by configuration, slice and metric."""
    ordered = [
        estimates.means[name][config.config_id, str(metric)]
        for config, name, metric in itertools.product(
            evaluation.configurations, sorted(estimates.means), evaluation.metrics
        )
    ]
    return _table(ordered, tables.CONFIGURATION_METRICS)


def comparisons_of(estimates: RunEstimates) -> list[Comparison]:
    rows = [row for _, of_pair in sorted(estimates.differences.items()) for row in of_pair]
    firsts = {
        name: {key: row.equal_to or row.config_id for key, row in means.items()}
        for name, means in estimates.means.items()
    }
    return _correct_p_values(rows, firsts)


def comparisons_table(estimates: RunEstimates, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, without the common columns, as `comparisons_of` gives them, with their stages."""
    parameters = {configuration.config_id: configuration.parameters for configuration in evaluation.configurations}
    rows = comparisons_of(estimates)
    pairs = {(row.config_id, row.baseline) for row in rows}
    stages = {(one, other): stage_between(parameters[one], parameters[other]) for one, other in pairs}
    staged = [replace(row, stage=stages[row.config_id, row.baseline]) for row in rows]
    return _table(staged, tables.COMPARISONS)


def _correct_p_values(rows: Sequence[Comparison], firsts: Mapping[str, Firsts]) -> list[Comparison]:
    """Add p-values corrected over all comparisons of a metric: those of all queries, and those of slices.

    A sweep often has configurations with equal values, such as two values of `top_k` above a metric's cutoff. They are
    one hypothesis: counting it several times would make the correction stricter than needed.
    """
    corrected = list(rows)
    families: defaultdict[tuple[str, bool], dict[tuple[str, ...], list[int]]] = defaultdict(dict)
    for place, row in enumerate(rows):
        first = firsts[row.slice]
        one, other = sorted(first[config, row.metric] for config in (row.config_id, row.baseline))
        if one == other:  # equal values: there is nothing to test
            corrected[place] = replace(row, p_value=None, t_p_value=None, p_method=None)
            continue
        family = families[row.metric, row.slice == ALL]
        family.setdefault((one, other, row.slice), []).append(place)
    for family in families.values():
        p_values = np.array([rows[places[0]].p_value for places in family.values()], np.float64)
        adjusted, rates = holm(p_values).tolist(), benjamini_hochberg(p_values).tolist()
        for places, p_adjusted, q_value in zip(family.values(), adjusted, rates, strict=True):
            for place in places:
                corrected[place] = replace(rows[place], p_adjusted=or_null(p_adjusted), q_value=or_null(q_value))
    return corrected


def _table(rows: Sequence[ConfigurationMetric | Comparison], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([vars(row) for row in rows], schema=tables.own_columns(schema))


def level_of(rows: Iterable[Comparison], confidence: float) -> float:
    """The significance level of one comparison among all tested ones of its metric, by Bonferroni."""
    return (1.0 - confidence) / max(1, sum(row.p_value is not None for row in rows))


def detectable(row: Comparison, level: float) -> float | None:
    """The smallest difference that the queries detect with a power of 80%; None without a spread."""
    if not row.std_error or evidence_of(row) < 2 or not row.shows_spread:
        return None
    return detectable_difference(row.std_error, evidence_of(row), level=level)


def queries_for(row: Comparison, difference: float, level: float, power: float = 0.8) -> int | None:
    """The number of queries that detect a difference; None without a spread.

    The spread is that of this comparison, never its difference: power at the observed difference restates the p-value.
    With clusters, further queries are assumed to come in clusters of the same sizes.
    """
    units = evidence_of(row)
    if not row.std_error or units < 2 or not row.shows_spread:
        return None
    needed = queries_needed(difference, row.std_error * math.sqrt(units), power, level)
    return math.ceil(needed * row.queries / units)
