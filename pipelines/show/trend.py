"""A metric over the latest runs of an experiment: one row a run, one column a configuration."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from rankbeam.pipelines.results.find import runs_alike
from rankbeam.pipelines.results.judge_differences import judge_differences
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.screen import WHOLE, Screen
from rankbeam.pipelines.show.tabular import Table
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

_NOTHING = "-"
_HEADINGS = ("run", "started (UTC)", "state")


@dataclass(frozen=True)
class TrendRow:
    """One run of a trend; a configuration that it lacks has no value."""

    run_id: str
    started_at: str
    state: str
    values: dict[str, dict[str, float | None]]  # by configuration: mean, low, high


@dataclass(frozen=True)
class Trend:
    """A metric over runs, the latest last, and what makes runs hard to compare."""

    experiment: str
    metric: str
    configurations: tuple[str, ...]
    runs: tuple[TrendRow, ...]
    notes: tuple[str, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """The trend as JSON values."""
        return asdict(self)

    def as_text(self, screen: Screen = WHOLE) -> str:
        """A table for a terminal, and the notes below it."""
        rows = [[run.run_id, run.started_at[:16].replace("T", " "), run.state, *self._cells(run)] for run in self.runs]
        title = f"{self.metric} of {self.experiment}"
        table = Table([*_HEADINGS, *self.configurations], rows, len(_HEADINGS), drop=("state", "started (UTC)"))
        return "\n\n".join([title, screen.table(table), *map(screen.prose, self.notes)])

    def _cells(self, run: TrendRow) -> list[str]:
        return [_cell(run.values[name]) if name in run.values else _NOTHING for name in self.configurations]


def trend_of(results: Results, metric: str | None, count: int) -> Trend:
    """A metric over the latest runs of a run's experiment on the same dataset, up to that run.

    Raises:
        InputError: the run has no such metric.
    """
    name = results.metrics[0] if metric is None else results.metric_named(metric)
    runs = runs_alike(results, count)
    names = tuple(row["name"] for row in results.leaderboard())
    notes = [
        f"{run.run_id}: {sentence}"
        for before, run in pairwise(runs)
        for sentence in judge_differences(run, before, [name])
    ]
    return Trend(results.experiment, name, names, tuple(_row(run, name) for run in runs), tuple(notes))


def _row(run: Results, metric: str) -> TrendRow:
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
    reach = "" if low is None or high is None else f" ±{max(mean - low, high - mean):.3f}"
    return f"{mean:.4f}{reach}"
