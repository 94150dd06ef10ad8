"""Metrics against their cutoff k, where a run has them at several cutoffs."""

from collections import defaultdict
from collections.abc import Iterable

from rankbeam.pipelines.report.lines import Curve, LinePlot, line_plot
from rankbeam.pipelines.report.study import Study
from rankbeam.transforms.records.scores.rows import ConfigurationMetric


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


def _curves(study: Study, at: dict[int, str]) -> Iterable[Curve]:
    for place in study.order(study.metrics[0]):
        rows = [(cutoff, study.mean(place, metric)) for cutoff, metric in sorted(at.items())]
        points = [(float(k), row.mean, *_ends(row), f"k = {k}") for k, row in rows if row.mean is not None]
        yield Curve(study.titles[place], points)


def _ends(row: ConfigurationMetric) -> tuple[float, float]:
    return row.interval or (row.mean or 0.0, row.mean or 0.0)
