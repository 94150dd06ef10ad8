"""Usage of a run's services, as text: calls, gains of stages, applications, and corpora that still exist."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import StageGain, seconds, stage_gains, usage_of, usage_rows
from rankbeam.pipelines.show.tabular import NO_VALUE, Table, interval, number
from rankbeam.transforms.clients.retrievers.replay import TRACES
from rankbeam.transforms.records.errors import pluralize

SHARED = "* some of these calls were made once for several configurations, and count for each of them"
_COLUMNS = ("config_id", "seconds", "first_token_s", "input_tokens", "output_tokens", "cost")


def usage_lines(results: Results) -> list[str]:
    """A run's cost if prices are known, else its tokens; empty if there are neither.

    Pools without a price are named after the cost of the others.
    """
    rows = results.table("usage").to_pylist()
    cost = sum(row["cost"] or 0.0 for row in rows)
    tokens = [sum(row[name] for row in rows) for name in ("input_tokens", "output_tokens")]
    unpriced = [row for row in rows if row["cost"] is None and row["input_tokens"] + row["output_tokens"]]
    calls = pluralize(sum(row["calls"] for row in rows), "call")
    token_text = f"{tokens[0]:,} input and {tokens[1]:,} output tokens"
    if all(row["cost"] is None for row in rows):
        return [f"tokens  {token_text} in {calls}"] if unpriced else []
    details = ", ".join([calls, *([token_text] if any(tokens) else [])])
    names = ", ".join(dict.fromkeys(row["pool"] for row in unpriced))
    return [f"cost    {cost:,.4g} ({details})" + (f", without {names}: no price is given" if names else "")]


def usage_table(results: Results) -> Table | None:
    """Calls, latency and cost of each configuration; None if no call was answered for any of them.

    Configurations with equal values have their own rows, since usage may differ. Configurations that are cut from
    another one's rankings, without other calls, share its numbers and have no row.
    """
    rows = usage_rows(results)
    usages = [
        (row["name"], usage)
        for row in results.leaderboard()
        for usage in usage_of(rows, row["config_id"])
        if usage not in usage_of(rows, row["derived_from"])
    ]
    if all(usage["p50_s"] is None for _, usage in usages):
        return None
    has_cost = any(usage["cost"] is not None for _, usage in usages)
    return Table(
        ["latency", "service", "stage", "calls", "p50", "p95", *(["cost"] if has_cost else [])],
        [
            [
                name,
                usage["pool"],
                usage["stage"],
                _calls(usage),
                seconds(usage["p50_s"]),
                seconds(usage["p95_s"]),
                *([number(usage["cost"], ",.4g")] if has_cost else []),
            ]
            for name, usage in usages
        ],
        left=3,
        drop=["calls"],
    )


def _calls(usage: Mapping[str, Any]) -> str:
    """Number of calls as text. A request that embeds texts of several configurations counts for one of them only.

    >>> _calls({"calls": 8, "shared_calls": 2, "p50_s": 0.1}), _calls({"calls": 0, "shared_calls": 0, "p50_s": 0.1})
    ('8*', 'shared')
    """
    if not usage["calls"] and usage["p50_s"] is not None:
        return "shared"
    return f"{usage['calls']:,}{'*' if usage['shared_calls'] else ''}"


def stage_table(results: Results) -> Table | None:
    """The gain of each stage in the first metric, with its calls, latency and cost; None without any gains."""
    gains = stage_gains(results, results.metrics[0])
    if not gains:
        return None
    has_calls, has_cost = any(gain.calls for gain in gains), any(gain.cost for gain in gains)
    calls = ["calls a query", "p50 of a call"] if has_calls else []
    head = ["stage", "with", "without", f"gain in {results.metrics[0]}", "interval", "pays"]
    return Table(
        [*head, *calls, *(["cost of 1,000"] if has_cost else [])],
        [_stage_row(gain, has_calls=has_calls, has_cost=has_cost) for gain in gains],
        left=3,
        drop=["without", *calls],
    )


def _stage_row(gain: StageGain, *, has_calls: bool, has_cost: bool) -> list[str]:
    row = gain.row
    gained = number(row.difference, "+.4f"), interval(row.ci_low, row.ci_high)
    calls = [f"{gain.calls:+.4g}", seconds(gain.seconds)] if has_calls else []
    cost = [number(gain.cost, "+,.4g")] if has_cost else []
    return [gain.stage, gain.name, gain.without, *gained, gain.pays, *calls, *cost]


def applications_table(results: Results) -> Table | None:
    """Durations, tokens and cost of each application; None if no application was called."""
    names = {row["config_id"]: row["name"] for row in results.leaderboard() if _is_asked(row)}
    if not names:
        return None
    answers = results.table("answers", _COLUMNS)
    answers = answers.filter(pc.is_valid(answers["seconds"]))
    rows = [
        _application_row(name, answers.filter(pc.equal(answers["config_id"], config_id)))
        for config_id, name in names.items()
    ]
    head = ["application", "answers", "p50", "p95", "first token p50", "input tokens", "output tokens", "cost"]
    used = [place for place in range(len(head)) if place < 4 or any(row[place] != NO_VALUE for row in rows)]
    return Table([head[place] for place in used], [[row[place] for place in used] for row in rows], 1, drop=["answers"])


def _is_asked(row: Mapping[str, Any]) -> bool:
    answers = json.loads(row["parameters"]).get("answers")
    return isinstance(answers, dict) and answers.get("type") not in ("replay", TRACES)


def _application_row(name: str, answers: pa.Table) -> Sequence[str]:
    tokens = [pc.sum(answers[column]).as_py() or 0 for column in ("input_tokens", "output_tokens")]
    cost = pc.sum(answers["cost"]).as_py()
    return [
        name,
        f"{answers.num_rows:,}",
        seconds(_quantile(answers["seconds"], 0.5)),
        seconds(_quantile(answers["seconds"], 0.95)),
        seconds(_quantile(answers["first_token_s"], 0.5)),
        *(f"{count:,}" if count else NO_VALUE for count in tokens),
        number(cost, ",.4g"),
    ]


def _quantile(values: pa.ChunkedArray, share: float) -> float | None:
    """The smallest value that this share of all values does not exceed; None without values."""
    result: float | None = pc.quantile(values, share, interpolation="higher")[0].as_py() if len(values) else None
    return result


def corpora_lines(results: Results) -> list[str]:
    """A line for each corpus of a service that exists after the run, with its expiry."""
    return [
        f"corpus  {row['name']}: {row['resource']}, {pluralize(row['files'], 'file')}, {_until(row['expires'])}"
        for row in sorted(results.table("corpora").to_pylist(), key=itemgetter("name"))
        if row["keep"] != "run"
    ]


def _until(expires: datetime | None) -> str:
    if expires is None:
        return "kept until you delete it: `rankbeam corpora delete`"
    return f"expires {expires:%Y-%m-%d %H:%M} UTC: `rankbeam corpora delete --expired` deletes it then"
