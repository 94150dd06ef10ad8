"""Metrics where evidence spans are the judgements (`dataset.unit: span`): what each of them looks at."""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.spans import SpanAssessment
from rankbeam.transforms.records.metrics.definitions import SPAN_METRICS
from rankbeam.transforms.records.metrics.names import Metric


class View(Enum):
    """The input of a metric."""

    EVIDENCE = "credited evidence, at the rank of its chunk"
    PLACES = "credited evidence, at places that an ideal ranking also has"
    CHUNKS = "chunks, relevant where they are credited with evidence"
    CHARACTERS = "the spans themselves"


VIEWS: Mapping[str, View] = MappingProxyType(
    dict.fromkeys(("R", "SetR"), View.EVIDENCE)
    | dict.fromkeys(("nDCG", "AP", "logAP", "Rcap", "Rprec"), View.PLACES)
    | dict.fromkeys(("P", "RR", "Success", "RBP", "SetP"), View.CHUNKS)
    | dict.fromkeys(SPAN_METRICS, View.CHARACTERS)
)
"""By the name of the metric; others are not defined there."""

DEFAULT_METRICS = ("nDCG@10", "R@10", "SpanRecall@2000t", "SpanPrecision@2000t", "SpanIoU@2000t")
"""Those of `rankbeam score` where the judgements are evidence."""


def not_defined(metric: Metric, unit: str) -> str | None:
    """The reason why a metric cannot be computed with judgements of a unit, or None.

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
    return None if metric.name in VIEWS else f"is not defined with unit: span; defined are {', '.join(VIEWS)}"


def span_values(metrics: Iterable[Metric], a: SpanAssessment) -> FloatArray:
    """The values of several metrics.

    Args:
        metrics: m metrics, each of a name in `VIEWS`.
        a: n rankings of chunks.

    Returns:
        float64[n, m].

    >>> from rankbeam.transforms.records.metrics.names import parse_metric
    >>> from rankbeam.transforms.kernels.ranking.spans import EXAMPLE
    >>> span_values([parse_metric("SpanRecall@50t"), parse_metric("R@1")], EXAMPLE).round(2).tolist()
    [[0.85, 0.33]]
    """
    columns = [metric.definition.kernel(_seen(a, VIEWS[metric.name]), **metric.arguments) for metric in metrics]
    return np.stack(columns, axis=1) if columns else np.empty((a.queries, 0))


def _seen(a: SpanAssessment, view: View) -> SpanAssessment | Assessment:
    match view:
        case View.EVIDENCE:
            return a.by_evidence
        case View.PLACES:
            return a.by_place
        case View.CHUNKS:
            return a.by_chunk
        case View.CHARACTERS:
            return a
