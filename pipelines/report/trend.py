"""The trend: the means of the latest runs of one experiment over one dataset, in one output folder."""

from typing import Any

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.plots import Curve, LinePlot, line_plot
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.slices import ALL


def trend(study: Study, metric: str, runs: list[Results]) -> LinePlot | None:
    """A metric over the runs up to this one, a line for each of its configurations; None for a first run."""
    if len(runs) < 2:
        return None
    curves = [Curve(study.titles[place], _points(study.ids[place], metric, runs)) for place in study.order(metric)]
    return line_plot(f"{metric} over the runs of this folder", "run, the latest last", curves)


def changes(study: Study, metric: str) -> list[str]:
    """The changes since the baseline run, a sentence for each configuration."""
    names = dict(zip(study.ids, study.names, strict=True))
    return [
        f"{names[row['config_id']]}: {_change(row)} since the baseline run {row['baseline_run']}"
        for row in study.monitor
        if row["metric"] == metric and row["config_id"] in names
    ]


def _change(row: dict[str, Any]) -> str:
    if row["change"] is None:
        return "no night counts yet"
    alarm = "alarm, " if row["alarm"] else ""
    nights = f"over {words.count(row['nights'], 'night')}" if row["mode"] == "fresh" else "query by query"
    interval = words.interval(row["low"], row["high"], sign=True)
    return f"{alarm}{row['state']}, {words.signed(row['change'])} ({interval}) {nights}"


def _points(config_id: str, metric: str, runs: list[Results]) -> list[tuple[float, float, float, float, str]]:
    points = []
    for number, run in enumerate(runs, start=1):
        row = run.means.get((config_id, ALL, metric))
        if row is not None and row.mean is not None:
            low, high = row.interval or (row.mean, row.mean)
            points.append((float(number), row.mean, low, high, f"{run.run_id} ({run.execution[1]:%Y-%m-%d %H:%M})"))
    return points
