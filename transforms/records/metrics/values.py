"""Values of several metrics at once, and what they could be under ties."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.ties import bounds
from rankbeam.transforms.kernels.ranking.unjudged import with_assumed_grades
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import AnyMetric

_OWN_RULES = frozenset({"Judged", "Bpref", "infAP", "NumRet", "NumRel", "NumRelRet"})
"""Metrics that count documents, or have rules of their own for unjudged ones."""


def tie_bounds(
    metrics: Iterable[Metric], documents: Assessment, chunks: Assessment | None, top_k: int | None
) -> FloatArray:
    """The lowest and the highest value of several metrics over all orders of tied documents.

    Args:
        metrics: m metrics.
        documents: n rankings with distinct documents, not cut, with their ties.
        chunks: the same rankings with every chunk counted; needed by metrics of chunks.
        top_k: cut-off of the rankings, or None.

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


def shows_unjudged(metrics: Iterable[AnyMetric]) -> bool:
    """Return whether bounds on the effect of unjudged documents are wanted: beside `Judged`."""
    return any(isinstance(metric, Metric) and metric.name == "Judged" for metric in metrics)


def has_unjudged_bounds(metric: AnyMetric) -> bool:
    """Return whether assumptions about unjudged documents bound a metric; not known for metrics of other packages."""
    if not isinstance(metric, Metric) or metric.name not in METRICS:
        return False
    return metric.name not in _OWN_RULES and not metric.definition.chunks


def unjudged_bounds(metrics: Sequence[Metric], documents: Assessment, grade: float) -> FloatArray:
    """The lowest and the highest value if unjudged documents are not relevant, or all have the highest grade.

    Args:
        metrics: m metrics.
        documents: n rankings with distinct documents.
        grade: the highest grade of the dataset.

    Returns:
        float64[2, n, m]; NaN for metrics of chunks and for `_OWN_RULES`.
    """
    assumed: dict[int | None, Assessment] = {}
    columns = []
    for metric in metrics:
        if not has_unjudged_bounds(metric):
            columns.append(np.full((2, documents.queries), np.nan))
            continue
        if metric.cutoff not in assumed:
            assumed[metric.cutoff] = with_assumed_grades(documents, grade, metric.cutoff)
        every = replace(metric, judged_only=False)
        values = [metric.values(documents), every.values(documents), every.values(assumed[metric.cutoff])]
        columns.append(np.stack([np.min(values, axis=0), np.max(values, axis=0)]))
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
