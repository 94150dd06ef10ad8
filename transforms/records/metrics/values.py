"""Values of several metrics at once, also with evidence spans as judgements, and their bounds under ties."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MappingProxyType

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.rankings import Assessment, with_assumed_grades
from rankbeam.transforms.kernels.ranking.spans import SpanAssessment
from rankbeam.transforms.kernels.ranking.ties import bounds
from rankbeam.transforms.records.metrics.definitions import METRICS, SPAN_METRICS
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import AnyMetric


class View(Enum):
    """The input of a metric."""

    EVIDENCE = "credited evidence, at the rank of its chunk"
    PLACES = "credited evidence, at ranks that an ideal ranking also has"
    CHUNKS = "chunks, relevant if they are credited with evidence"
    CHARACTERS = "the spans themselves"


VIEWS: Mapping[str, View] = MappingProxyType(
    dict.fromkeys(("R", "SetR"), View.EVIDENCE)
    | dict.fromkeys(("nDCG", "AP", "logAP", "Rcap", "Rprec"), View.PLACES)
    | dict.fromkeys(("P", "RR", "Success", "RBP", "SetP"), View.CHUNKS)
    | dict.fromkeys(SPAN_METRICS, View.CHARACTERS)
)
"""The input of each metric that is defined for evidence spans."""

DEFAULT_METRICS = ("nDCG@10", "R@10", "SpanRecall@2000t", "SpanPrecision@2000t", "SpanIoU@2000t")
"""The default metrics of `rankbeam score` if the judgements are evidence."""


def not_defined(metric: Metric, unit: str) -> str | None:
    """The reason why a metric cannot be computed from judgements of a unit, or None.

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> not_defined(parse_metric("SpanIoU@5"), "document"), not_defined(parse_metric("R@5"), "span")
    ('compares spans of characters; give evidence spans: dataset: {evidence: FILE, unit: span}', None)
    """
    if unit != "span":
        needs_spans = metric.name in SPAN_METRICS
        advice = "compares spans of characters; give evidence spans: dataset: {evidence: FILE, unit: span}"
        return advice if needs_spans else None
    if metric.judged_only:
        return "has judged_only, but evidence judges every chunk; remove it"
    is_defined = metric.name in VIEWS and "relative" not in dict(metric.options)
    return None if is_defined else f"is not defined with unit: span; defined are {', '.join(VIEWS)}"


def span_values(metrics: Iterable[Metric], a: SpanAssessment) -> FloatArray:
    """float64[n, m], the values of m metrics, whose names are in `VIEWS`, for n rankings of chunks.

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> from rankbeam.transforms.kernels.ranking.spans import EXAMPLE
    >>> span_values([parse_metric("SpanRecall@50t"), parse_metric("R@1")], EXAMPLE).round(2).tolist()
    [[0.85, 0.33]]
    """
    columns = [metric.definition.kernel(_view_of(a, VIEWS[metric.name]), **metric.arguments) for metric in metrics]
    return np.stack(columns, axis=1) if columns else np.empty((a.queries, 0))


def _view_of(a: SpanAssessment, view: View) -> SpanAssessment | Assessment:
    match view:
        case View.EVIDENCE:
            return a.by_evidence
        case View.PLACES:
            return a.by_place
        case View.CHUNKS:
            return a.by_chunk
        case View.CHARACTERS:
            return a


_OWN_RULES = frozenset(
    {"Judged", "Unjudged", "Bpref", "logBpref", "infAP", "NumRet", "NumRel", "NumRelRet", "NumNonrelRet"}
)
"""Metrics that count documents, or have rules of their own for unjudged ones."""


def tie_bounds(
    metrics: Iterable[Metric], documents: Assessment, chunks: Assessment | None, top_k: int | None
) -> FloatArray:
    """float64[2, n, m], the lowest and the highest value of m metrics over all orders of tied documents.

    `documents` are n rankings with distinct documents, not cut at `top_k`, with their ties; `chunks` are the same with
    every chunk counted, for metrics of chunks. `MetricDefinition.ties` says which bounds are exact.
    """
    columns = []
    for metric in metrics:
        assessment = chunks if metric.definition.chunks else documents
        if assessment is None:
            raise ValueError(f"{metric} needs the assessment of chunks")
        definition, only = metric.definition, metric.judged_only
        most = math.inf if definition.highest is None else definition.highest
        ties = None if metric.arguments.get("gains") else definition.ties  # a higher grade may gain less
        pair = bounds(assessment, definition.kernel, metric.arguments, ties, judged_only=only, top_k=top_k, most=most)
        columns.append(np.stack(pair))
    return np.stack(columns, axis=2) if columns else np.empty((2, documents.queries, 0))


def shows_unjudged(metrics: Iterable[AnyMetric]) -> bool:
    """Return whether to show bounds on the effect of unjudged documents: with the metric `Judged`."""
    return any(isinstance(metric, Metric) and metric.name == "Judged" for metric in metrics)


def has_unjudged_bounds(metric: AnyMetric) -> bool:
    """Return whether assumptions about unjudged documents bound a metric; False for metrics of other packages."""
    if not isinstance(metric, Metric) or metric.name not in METRICS:
        return False
    return metric.name not in _OWN_RULES and not metric.definition.chunks


def unjudged_bounds(metrics: Sequence[Metric], documents: Assessment, grade: float) -> FloatArray:
    """float64[2, n, m], the values if unjudged documents are not relevant, or all have the highest `grade`.

    They are NaN for metrics of chunks and for `_OWN_RULES`.
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
    """float64[n, m], of n rankings with distinct documents by m metrics; `chunks` has every chunk counted."""
    columns = []
    for metric in metrics:
        assessment = chunks if metric.definition.chunks else documents
        if assessment is None:
            raise ValueError(f"{metric} needs the assessment of chunks")
        columns.append(metric.values(assessment))
    return np.stack(columns, axis=1) if columns else np.empty((documents.queries, 0))
