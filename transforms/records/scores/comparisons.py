"""Rows of the tables of means and of comparisons, from a run's estimates, and the differences that queries detect."""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.statistics.corrections import benjamini_hochberg, detectable_difference, holm
from rankbeam.transforms.kernels.statistics.sample_size import queries_needed
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.scores.estimates import POSITIONS, UNCORRECTED, RunEstimates
from rankbeam.transforms.records.scores.rows import Comparison, evidence_of
from rankbeam.transforms.records.slices import ALL
from rankbeam.transforms.records.stages import stage_between

DIFFERENCES = (0.02, 0.05)  # the differences that are of interest if no gate names one
_PAIR = ["config_id", "baseline"]
_BATCH = 10_000


def metrics_table(estimates: RunEstimates, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, without the common columns, by configuration, slice and metric."""
    ordered = [
        estimates.means[name][config.config_id, str(metric)]
        for config, name, metric in itertools.product(
            evaluation.configurations, sorted(estimates.means), evaluation.metrics
        )
    ]
    return pa.Table.from_pylist(list(map(vars, ordered)), tables.own_columns(tables.CONFIGURATION_METRICS))


def comparisons_of(estimates: RunEstimates) -> list[Comparison]:
    batches = _corrected(estimates).to_batches(max_chunksize=_BATCH)
    return [Comparison.of(row) for batch in batches for row in batch.to_pylist()]


def comparisons_table(estimates: RunEstimates, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, without the common columns, as `comparisons_of` gives them, with their stages."""
    parameters = {configuration.config_id: configuration.parameters for configuration in evaluation.configurations}

    @functools.cache
    def stage(one: str, other: str) -> str | None:
        return stage_between(parameters[one], parameters[other])

    rows = _corrected(estimates)
    pairs = rows.select(_PAIR).to_batches(max_chunksize=_BATCH)
    stages = [pa.array(map(stage, *map(pa.Array.to_pylist, batch.columns)), pa.string()) for batch in pairs]
    return _with_columns(rows, {"stage": pa.chunked_array(stages, pa.string())})


def _corrected(estimates: RunEstimates) -> pa.Table:
    """The comparisons by pair, slice and metric, with p-values corrected over all comparisons of a metric.

    Those of all queries are one family, and those of slices another. A sweep often has configurations with equal
    values, such as two values of `top_k` above a metric's cutoff. They are one hypothesis: counting it several times
    would make the correction stricter than needed.
    """
    names = sorted(estimates.differences)
    estimates = replace(estimates, differences={name: _in_order(estimates.differences[name]) for name in names})
    rows = pa.concat_tables([UNCORRECTED.empty_table(), *(estimates.differences[name] for name in names)])
    slices = np.repeat(np.arange(len(names)), [estimates.differences[name].num_rows for name in names])
    firsts = _first_rows(estimates, names)
    is_untested = firsts < 0
    tested = pc.if_else(is_untested, None, rows["p_value"])
    p_values = np.array(tested, np.float64)  # NaN for null
    p_adjusted, q_values = np.full((2, rows.num_rows), np.nan)
    metrics = rows["metric"].combine_chunks().dictionary_encode()
    families = 2 * metrics.indices.to_numpy() + np.array([name == ALL for name in names], bool)[slices]
    is_first = firsts == np.arange(rows.num_rows)
    for family in np.unique(families):
        members = np.flatnonzero((families == family) & is_first)
        p_adjusted[members], q_values[members] = holm(p_values[members]), benjamini_hochberg(p_values[members])
    rows = _with_columns(
        rows,
        {
            "p_value": tested,
            "t_p_value": pc.if_else(is_untested, None, rows["t_p_value"]),
            "p_method": pc.if_else(is_untested, None, rows["p_method"]),
            "p_adjusted": pa.array(np.where(is_untested, np.nan, p_adjusted[firsts]), from_pandas=True),
            "q_value": pa.array(np.where(is_untested, np.nan, q_values[firsts]), from_pandas=True),
        },
    )
    positions = [rows[name].to_numpy() for name in POSITIONS]
    return rows.drop_columns(POSITIONS).take(np.lexsort((slices, *reversed(positions))))


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows by pair, whose pieces come in any order."""
    return rows.take(np.lexsort([rows[name].to_numpy() for name in reversed(POSITIONS)]))


def _first_rows(estimates: RunEstimates, names: Sequence[str]) -> IntArray:
    """For each comparison the number of the first one with equal values; -1 if its configurations are equal."""
    numbers: list[IntArray] = [np.empty(0, np.int64)]
    start = 0
    for name in names:
        equal = {key: row.equal_to or row.config_id for key, row in estimates.means[name].items()}
        keys = zip(*(estimates.differences[name][column].to_pylist() for column in ("metric", *_PAIR)), strict=True)
        first_by_key: dict[tuple[str, str, str], int] = {}
        of_slice = []
        for number, (metric, *pair) in enumerate(keys, start):
            one, other = sorted(equal[config, metric] for config in pair)
            of_slice.append(-1 if one == other else first_by_key.setdefault((metric, one, other), number))
        numbers.append(np.array(of_slice, np.int64))
        start += len(of_slice)
    return np.concatenate(numbers)


def _with_columns(rows: pa.Table, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    for name, column in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), column)
    return rows


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
