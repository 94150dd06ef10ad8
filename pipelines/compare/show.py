"""What a comparison says: as a table with a sentence for each metric, as Markdown, as CSV or as JSON."""

import csv
import io
import json
from dataclasses import asdict

from rankbeam.pipelines.compare.compare import Compared, Row
from rankbeam.pipelines.show.tabular import Table, markdown_table, markdown_text, printable, text_table
from rankbeam.transforms.records.slices import ALL

BETTER, WORSE, UNDECIDED, EQUAL, UNKNOWN = "better", "worse", "undecided", "equal", "unknown"
_NONE = "–"


def verdict(row: Row, confidence: float) -> str:
    """What a comparison says at a confidence: by the p-value that is corrected for how many there are.

    >>> verdict({"difference": 0.1, "p_value": 0.01, "p_adjusted": 0.02, "queries": 9, "wins": 9, "losses": 0}, 0.95)
    'better'
    """
    if row["queries"] and not row["wins"] and not row["losses"]:
        return EQUAL
    p_value = row["p_value"] if row["p_adjusted"] is None else row["p_adjusted"]
    if p_value is None:
        return UNKNOWN
    if p_value > round(1.0 - confidence, 12) or not row["difference"]:  # not 0.050000000000000044
        return UNDECIDED
    return BETTER if row["difference"] > 0 else WORSE


def as_text(compared: Compared) -> str:
    """The table and the sentences, for a terminal."""
    return "\n".join([text_table(_table(compared)), "", *map(printable, sentences(compared))])


def as_markdown(compared: Compared) -> str:
    """The table and the sentences, for GitHub."""
    said = "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences(compared))
    return f"{markdown_table(_table(compared))}\n\n{said}"


def as_csv(compared: Compared) -> str:
    """Every column of every comparison."""
    rows = _documents(compared)
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue()


def as_json(compared: Compared) -> str:
    """One JSON document."""
    document = {
        "run": compared.run.identity(),
        "baseline_run": None if compared.other is None else compared.other.identity(),
        "statistics": asdict(compared.statistics),
        "left_out": list(compared.left_out),
        "comparisons": _documents(compared),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def sentences(compared: Compared) -> list[str]:
    """For each metric and slice, which configurations are better or worse than a baseline, and which cannot be told."""
    groups: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in compared.rows:
        verdicts = groups.setdefault((row["metric"], row["slice"], _against(row, compared)), {})
        verdicts.setdefault(verdict(row, compared.statistics.confidence), []).append(row["configuration"])
    confidence = f"{100 * compared.statistics.confidence:g}% confidence"
    return [
        f"{metric}{'' if name == ALL else f' over {name}'}, against {baseline} at {confidence}: {_said(verdicts)}."
        for (metric, name, baseline), verdicts in groups.items()
    ]


def _against(row: Row, compared: Compared) -> str:
    if compared.other is None:
        return str(row["baseline"])
    names = {each["baseline"] for each in compared.rows}
    same = all(each["configuration"] == each["baseline"] for each in compared.rows)
    name = "the same configuration" if same and len(names) > 1 else row["baseline"]
    return f"{name} of {compared.other.output} ({compared.other.named})"


def _said(verdicts: dict[str, list[str]]) -> str:
    words = {
        BETTER: ("is better", "are better"),
        WORSE: ("is worse", "are worse"),
        UNDECIDED: ("cannot be told apart", "cannot be told apart"),
        EQUAL: ("is equal at every query", "are equal at every query"),
        UNKNOWN: ("has too few queries to tell", "have too few queries to tell"),
    }
    return "; ".join(
        f"{', '.join(verdicts[each])} {one if len(verdicts[each]) == 1 else many}"
        for each, (one, many) in words.items()
        if each in verdicts
    )


def _table(compared: Compared) -> Table:
    sliced = any(row["slice"] != ALL for row in compared.rows)
    unpaired = any(row["unpaired"] for row in compared.rows)
    interval = f"{100 * compared.statistics.confidence:g}% interval"
    names = ["metric", *(["slice"] if sliced else []), "configuration", "baseline"]
    numbers = ["difference", interval, "p", "p (Holm)", "wins/ties/losses"]
    numbers += ["queries (unpaired)" if unpaired else "queries", "effect size", "detectable"]
    rows = [
        [
            row["metric"],
            *([row["slice"]] if sliced else []),
            row["configuration"],
            row["baseline"],
            _signed(row["difference"], 4),
            _interval(row["ci_low"], row["ci_high"]),
            *(_p_value(row[name]) for name in ("p_value", "p_adjusted")),
            f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}",
            f"{row['queries']:,}" + (f" ({row['unpaired']:,})" if unpaired else ""),
            _signed(row["effect_size"], 2),
            _NONE if row["detectable"] is None else f"{row['detectable']:.4f}",
        ]
        for row in compared.rows
    ]
    return Table([*names, *numbers], rows, len(names))


def _signed(number: float | None, digits: int) -> str:
    return _NONE if number is None else f"{number:+.{digits}f}"


def _interval(low: float | None, high: float | None) -> str:
    return _NONE if low is None or high is None else f"{low:+.4f} to {high:+.4f}"


def _p_value(number: float | None) -> str:
    return _NONE if number is None else f"{number:.4f}" if number >= 0.0001 else "<0.0001"


def _documents(compared: Compared) -> list[Row]:
    return [row | {"verdict": verdict(row, compared.statistics.confidence)} for row in compared.rows]


SHOWN = {"table": as_text, "json": as_json, "csv": as_csv, "markdown": as_markdown}
"""By the name of the format."""
