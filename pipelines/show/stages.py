"""Gains of stages, for people."""

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.stages import StageGain, stage_gains
from rankbeam.pipelines.results.usage import seconds
from rankbeam.pipelines.show.tabular import Table


def stage_table(results: Results) -> Table | None:
    """The gain of each stage in the first metric, with its calls, latency and cost; None without such pairs."""
    gains = stage_gains(results, results.metrics[0])
    if not gains:
        return None
    has_calls, has_cost = any(gain.calls for gain in gains), any(gain.cost for gain in gains)
    calls = ["calls a query", "p50 of a call"] if has_calls else []
    head = ["stage", "with", "without", f"gain in {results.metrics[0]}", "interval", "pays"]
    return Table(
        [*head, *calls, *(["cost of 1,000"] if has_cost else [])],
        [_row(gain, has_calls=has_calls, has_cost=has_cost) for gain in gains],
        left=3,
        drop=["without", *calls],
    )


def _row(gain: StageGain, *, has_calls: bool, has_cost: bool) -> list[str]:
    row = gain.row
    gained = _signed(row.difference), f"{_signed(row.ci_low)} to {_signed(row.ci_high)}"
    calls = [f"{gain.calls:+.4g}", seconds(gain.seconds)] if has_calls else []
    cost = ["–" if gain.cost is None else f"{gain.cost:+,.4g}"] if has_cost else []
    return [gain.stage, gain.name, gain.without, *gained, gain.pays, *calls, *cost]


def _signed(number: float | None) -> str:
    return "–" if number is None else f"{number:+.4f}"
