"""Names of metrics as users write them: metrics of rankings, trec_eval's names for them, and judged metrics."""

from collections.abc import Iterable

from rankbeam.transforms.records.metrics.judged import BASE_NAMES, JudgedMetric, is_judged, parse_judged
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.trec_names import parse_metrics


def parse_all(names: Iterable[str]) -> list[Metric | JudgedMetric]:
    """Read names of metrics without repetitions; one of trec_eval's names may stand for several metrics.

    >>> [str(metric) for metric in parse_all(["P.5,10", "Faithfulness", "P@5", "context_recall@3"])]
    ['P@5', 'P@10', 'Faithfulness', 'ContextRecall@3']
    """
    metrics: dict[Metric | JudgedMetric, None] = {}
    for name in names:
        metrics |= dict.fromkeys([parse_judged(name)] if is_judged(name) else parse_metrics([name], also=BASE_NAMES))
    return list(metrics)
