"""The finished runs in a folder or dataset, one per row, and a metric over an experiment's runs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rankbeam.pipelines.results.find import runs_alike
from rankbeam.pipelines.results.judge_differences import judge_changes
from rankbeam.pipelines.results.leaderboard import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import overall
from rankbeam.pipelines.show.tabular import GAP, WHOLE, Screen, Table, width_of
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.records.errors import json_text, pluralize
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

_WORDS = ("run", "started (UTC)", "experiment", "state", "best")
_NUMBERS = ("metric", "value", "configurations", "queries", "cost")
_DROP = ("configurations", "queries", "cost", "experiment", "state", "started (UTC)")
_NOTHING = "-"
_HEADINGS = ("run", "started (UTC)", "state")
_FOLDED_ID = 16  # letters of a run's id in two lines


def as_json(runs: Sequence[Results]) -> str:
    return json_text({"runs": [_row(run) for run in runs]})


def as_text(runs: Sequence[Results], screen: Screen = WHOLE) -> str:
    return screen.table(Table((*_WORDS, *_NUMBERS), [_cells(run) for run in runs], len(_WORDS), drop=_DROP))


def _row(results: Results) -> dict[str, Any]:
    """A run as JSON values; the best configuration is the best by the first metric, or null without any value."""
    results = results.overall()
    best = distinct(results)[0]
    mean = overall(results, best["config_id"])[0]
    costs = [row["cost"] for row in results.table("usage").to_pylist() if row["cost"] is not None]
    return {
        **results.identity(),
        "state": results.run["state"],
        "configurations": len(results.configurations),
        "queries": max(overall(results, row["config_id"])[0].queries for row in results.configurations),
        "metric": mean.metric,
        "best": None if mean.mean is None else best["name"],
        "value": mean.mean,
        "cost": sum(costs) if costs else None,
    }


def _cells(results: Results) -> list[str]:
    row = _row(results)
    return [
        row["run_id"],
        f"{results.execution[1]:%Y-%m-%d %H:%M:%S}",
        row["experiment"],
        row["state"],
        row["best"] or _NOTHING,
        row["metric"],
        _NOTHING if row["value"] is None else f"{row['value']:.4f}",
        f"{row['configurations']:,}",
        f"{row['queries']:,}",
        _NOTHING if row["cost"] is None else f"{row['cost']:,.4g}",
    ]


@dataclass(frozen=True)
class TrendRow:
    """One run in a trend; a configuration that the run lacks has no value."""

    run_id: str
    started_at: str
    state: str
    values: dict[str, dict[str, float | None]]  # mean, low and high by configuration


@dataclass(frozen=True)
class Trend:
    """A metric over runs, the latest last, with notes on what makes runs hard to compare."""

    experiment: str
    metric: str
    configurations: tuple[str, ...]
    runs: tuple[TrendRow, ...]
    notes: tuple[str, ...] = ()

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    def as_text(self, screen: Screen = WHOLE) -> str:
        """A table for a terminal, and the notes below it."""
        rows = [[run.run_id, run.started_at[:16].replace("T", " "), run.state, *self._cells(run)] for run in self.runs]
        title = f"{self.metric} of {self.experiment}"
        values = Table(self.configurations, [row[len(_HEADINGS) :] for row in rows])
        is_wide = screen.width is not None and _FOLDED_ID + GAP + width_of(values) > screen.width
        drop = ("state", "started (UTC)", *(reversed(self.configurations[1:]) if is_wide else ()))
        table = Table([*_HEADINGS, *self.configurations], rows, len(_HEADINGS), drop)
        return "\n\n".join([title, screen.table(table), *map(screen.prose, self.notes)])

    def _cells(self, run: TrendRow) -> list[str]:
        return [_cell(run.values[name]) if name in run.values else _NOTHING for name in self.configurations]


def trend_of(results: Results, metric: str | None, count: int) -> Trend:
    """A metric over the latest runs of the same experiment on the same dataset, up to this run."""
    name = results.metrics[0] if metric is None else results.metric_named(metric)
    runs, others = runs_alike(results, count)
    names = tuple(row["name"] for row in results.leaderboard())
    rows, notes = (_trend_row(run.overall(), name) for run in runs), judge_changes(runs, name)
    only = ["only this run is read from BigQuery; its view `trend` has all runs"] if is_table(results.output) else []
    if others:
        only.append(
            f"{pluralize(others, 'earlier run')} on other queries or judgements not shown; `rankbeam monitor` compares "
            "nights of fresh queries"
        )
    return Trend(results.experiment, name, names, tuple(rows), (*notes, *only))


def _trend_row(run: Results, metric: str) -> TrendRow:
    means: Sequence[tuple[str, ConfigurationMetric | None]] = [
        (row["name"], run.means.get((row["config_id"], ALL, metric))) for row in run.configurations
    ]
    values = {
        name: {"mean": row.mean, "low": row.ci_low, "high": row.ci_high} for name, row in means if row is not None
    }
    return TrendRow(run.run_id, run.execution[1].isoformat(), str(run.run["state"]), values)


def _cell(value: dict[str, float | None]) -> str:
    mean, low, high = value["mean"], value["low"], value["high"]
    if mean is None:
        return _NOTHING
    half_width = "" if low is None or high is None else f" ±{max(mean - low, high - mean):.3f}"
    return f"{mean:.4f}{half_width}"
