"""Metrics against their cutoff k, and precision against recall, where a run has such metrics."""

from collections import defaultdict
from collections.abc import Iterable

from rankbeam.pipelines.report.lines import Curve, LinePlot, line_plot
from rankbeam.pipelines.report.study import Study
from rankbeam.transforms.records.scores.rows import ConfigurationMetric

_PRECISION, _RECALL = "P", "R"


def against_k(study: Study) -> list[LinePlot]:
    """A plot for each metric that the run has at several cutoffs, a line a configuration."""
    families: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for metric in study.metrics:
        name, at, cutoff = metric.rpartition("@")
        if at and cutoff.isdecimal():
            families[name][int(cutoff)] = metric
    return [
        plot
        for name, at in families.items()
        if len(at) > 1 and (plot := line_plot(f"{name} against k", "k", _curves(study, at))) is not None
    ]


def precision_recall(study: Study) -> LinePlot | None:
    """Precision against recall at the cutoffs that the run has both of; None where it has not two."""
    known = set(study.metrics)
    cutoffs = [metric.rpartition("@")[2] for metric in study.metrics if metric.startswith(f"{_PRECISION}@")]
    shared = [cutoff for cutoff in cutoffs if f"{_RECALL}@{cutoff}" in known]
    if len(shared) < 2:
        return None
    curves = []
    for place in study.order(study.metrics[0]):
        points = []
        for cutoff in shared:
            recall, precision = (study.mean(place, f"{name}@{cutoff}") for name in (_RECALL, _PRECISION))
            if recall.mean is not None and precision.mean is not None:
                points.append((recall.mean, precision.mean, *_ends(precision), f"k = {cutoff}"))
        curves.append(Curve(study.titles[place], sorted(points)))
    return line_plot("Precision against recall", f"recall at k = {', '.join(shared)}", curves)


def _curves(study: Study, at: dict[int, str]) -> Iterable[Curve]:
    for place in study.order(study.metrics[0]):
        rows = [(cutoff, study.mean(place, metric)) for cutoff, metric in sorted(at.items())]
        points = [(float(k), row.mean, *_ends(row), f"k = {k}") for k, row in rows if row.mean is not None]
        yield Curve(study.titles[place], points)


def _ends(row: ConfigurationMetric) -> tuple[float, float]:
    return row.interval or (row.mean or 0.0, row.mean or 0.0)
