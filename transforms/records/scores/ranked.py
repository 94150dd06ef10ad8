"""Slices of scored queries by the rank of the first hit, which a metric of the run has the reciprocal of."""

from collections.abc import Iterator, Sequence

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.records.metrics.names import split_name
from rankbeam.transforms.records.metrics.panels import Panel
from rankbeam.transforms.records.scores.scored import ScoredConfiguration
from rankbeam.transforms.records.slices import ranked_by, slices_by_rank


def ranking_metric(name: str, metrics: Sequence[str]) -> str | None:
    """The metric that slices by rank rest on: that of the name and cutoff, whatever its options; None without one.

    >>> ranking_metric("rank(ContextRR)", ["RR", "ContextRR(judge=lexical)"])
    'ContextRR(judge=lexical)'
    """
    sought = split_name(ranked_by(name) or name)
    return next((text for text in metrics if _name_and_cutoff(text) == (sought.name, sought.cutoff)), None)


def _name_and_cutoff(text: str) -> tuple[str, int | None]:
    written = split_name(text)
    return written.name, written.cutoff


def rank_slices(
    configurations: Sequence[ScoredConfiguration], panels: Sequence[Panel], names: Sequence[str]
) -> Iterator[tuple[str, BoolArray]]:
    """The slices by rank among some names, each with bool[k, n]: its queries under each configuration."""
    for name in filter(ranked_by, names):
        values = [values_of(scored, panels, name) for scored in configurations]
        yield from slices_by_rank(name, np.array(values).reshape(len(configurations), -1))


def values_of(scored: ScoredConfiguration, panels: Sequence[Panel], name: str) -> FloatArray:
    """float64[n]: the reciprocal ranks of slices by rank; NaN for queries without a value."""
    metric = ranking_metric(name, [str(metric) for panel in panels for metric in panel.metrics])
    for panel, own in zip(panels, scored.panels, strict=True):
        for column, known in enumerate(map(str, panel.metrics)):
            if known == metric:
                values: FloatArray = np.where(own.scored, own.values[:, column], np.nan)
                return values
    return np.full(len(scored.retrieval.status), np.nan)
