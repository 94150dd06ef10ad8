"""A plot of a metric along the rank of the first hit: what is in the middle may be lost."""

from collections.abc import Iterator, Sequence

from rankbeam.pipelines.report.lines import Curve, LinePlot, Point, line_plot
from rankbeam.pipelines.report.study import Study
from rankbeam.transforms.records.scores.scored import ranking_metric
from rankbeam.transforms.records.slices import first_rank, ranked_by, value_of


def along_ranks(study: Study, metric: str, attribute: str, names: Sequence[str]) -> LinePlot | None:
    """A curve for each configuration; None for other slices, and for the metric that says the rank itself."""
    if ranked_by(attribute) is None or ranking_metric(attribute, study.metrics) == metric:
        return None
    curves = [
        Curve(study.titles[place], list(_points(study, place, metric, names)))
        for place in study.order(study.metrics[0])
    ]
    return line_plot(f"{metric} by {attribute}, where there are enough queries for an interval", "first rank", curves)


def _points(study: Study, configuration: int, metric: str, names: Sequence[str]) -> Iterator[Point]:
    for name in names:
        row, label = study.mean(configuration, metric, name), value_of(name)
        rank = first_rank(label)
        if rank is not None and row.mean is not None and row.interval is not None:
            yield rank, row.mean, *row.interval, f"rank {label.lstrip('0')}, n = {row.asked:,}"
