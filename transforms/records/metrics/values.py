"""Values of several metrics at once, and what they could be under ties."""

import math
from collections.abc import Iterable

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.ties import bounds
from rankbeam.transforms.records.metrics.names import Metric


def tie_bounds(
    metrics: Iterable[Metric], documents: Assessment, chunks: Assessment | None, top_k: int | None
) -> FloatArray:
    """The lowest and the highest value of several metrics over all orders of tied documents.

    Args:
        metrics: m metrics.
        documents: n rankings with distinct documents, not cut, with their ties.
        chunks: the same rankings with every chunk counted; needed by metrics of chunks.
        top_k: where the rankings are cut; None for nowhere.

    Returns:
        float64[2, n, m]; `MetricDefinition.ties` says which are exact.
    """
    columns = []
    for metric in metrics:
        seen = chunks if metric.definition.chunks else documents
        if seen is None:
            raise ValueError(f"{metric} needs the assessment of chunks")
        definition, only = metric.definition, metric.judged_only
        most = math.inf if definition.highest is None else definition.highest
        pair = bounds(
            seen, definition.kernel, metric.arguments, definition.ties, judged_only=only, top_k=top_k, most=most
        )
        columns.append(np.stack(pair))
    return np.stack(columns, axis=2) if columns else np.empty((2, documents.queries, 0))


def metric_values(metrics: Iterable[Metric], documents: Assessment, chunks: Assessment | None) -> FloatArray:
    """The values of several metrics.

    Args:
        metrics: m metrics.
        documents: n rankings with distinct documents.
        chunks: the same rankings with every chunk counted; needed by metrics of chunks.

    Returns:
        float64[n, m].
    """
    columns = []
    for metric in metrics:
        seen = chunks if metric.definition.chunks else documents
        if seen is None:
            raise ValueError(f"{metric} needs the assessment of chunks")
        columns.append(metric.values(seen))
    return np.stack(columns, axis=1) if columns else np.empty((documents.queries, 0))
