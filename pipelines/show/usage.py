"""What a run used of its services, in one line for people."""

from rankbeam.pipelines.results.run import Results


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
