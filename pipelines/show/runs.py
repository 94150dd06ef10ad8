"""The finished runs of a place, one a row."""

import json
from collections.abc import Sequence
from typing import Any

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import overall
from rankbeam.pipelines.show.screen import WHOLE, Screen
from rankbeam.pipelines.show.tabular import Table

_WORDS = ("run", "started (UTC)", "experiment", "state", "best")
_NUMBERS = ("metric", "value", "configurations", "queries", "cost")
_DROP = ("configurations", "queries", "cost", "experiment", "state", "started (UTC)")
_NOTHING = "-"


def as_json(runs: Sequence[Results]) -> str:
    """The runs as JSON."""
    return json.dumps({"runs": [_row(run) for run in runs]}, indent=2, ensure_ascii=False)


def as_text(runs: Sequence[Results], screen: Screen = WHOLE) -> str:
    """The runs as a table."""
    return screen.table(Table((*_WORDS, *_NUMBERS), [_cells(run) for run in runs], len(_WORDS), drop=_DROP))


def _row(results: Results) -> dict[str, Any]:
    """A run as JSON values; the best configuration is that of the first metric, null where none has a value."""
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
