"""Usage of a run's services, for people."""

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import seconds, usage_of, usage_rows
from rankbeam.pipelines.show.tabular import Table

SHARED = "* some of these calls were made once for several configurations, and count for each of them"


def usage_lines(results: Results) -> list[str]:
    """The cost of a run where prices are known, else its tokens; none where neither is.

    What has no price is named beside the cost of the rest.
    """
    rows = results.table("usage").to_pylist()
    cost = sum(row["cost"] or 0.0 for row in rows)
    tokens = [sum(row[name] for row in rows) for name in ("input_tokens", "output_tokens")]
    unpriced = [row for row in rows if row["cost"] is None and row["input_tokens"] + row["output_tokens"]]
    calls = f"{sum(row['calls'] for row in rows):,} calls"
    of_tokens = f"{tokens[0]:,} input and {tokens[1]:,} output tokens"
    if all(row["cost"] is None for row in rows):
        return [f"tokens  {of_tokens} in {calls}"] if unpriced else []
    details = ", ".join([calls, *([of_tokens] if any(tokens) else [])])
    names = ", ".join(dict.fromkeys(row["pool"] for row in unpriced))
    return [f"cost    {cost:,.4g} ({details})" + (f", without {names}: no price is given" if names else "")]


def usage_table(results: Results) -> Table | None:
    """Calls, latency and cost of each configuration; None where no call was answered for any of them.

    Configurations that are cut from another one's rankings, and call nothing besides, have its numbers and no row.
    """
    rows = usage_rows(results)
    shown = [
        (row["name"], usage)
        for row in distinct(results)
        for usage in usage_of(rows, row["config_id"])
        if usage not in usage_of(rows, row["derived_from"])
    ]
    if all(usage["p50_s"] is None for _, usage in shown):
        return None
    has_cost = any(usage["cost"] is not None for _, usage in shown)
    return Table(
        ["latency", "service", "stage", "calls", "p50", "p95", *(["cost"] if has_cost else [])],
        [
            [
                name,
                usage["pool"],
                usage["stage"],
                f"{usage['calls']:,}{'*' if usage['shared_calls'] else ''}",
                seconds(usage["p50_s"]),
                seconds(usage["p95_s"]),
                *([_cost(usage["cost"])] if has_cost else []),
            ]
            for name, usage in shown
        ],
        left=3,
        drop=["calls"],
    )


def _cost(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:,.4g}"
