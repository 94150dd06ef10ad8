"""A comparison for readers: a table with a sentence for each metric, Markdown, CSV or JSON."""

import csv
import io
import json
import re
from dataclasses import asdict

from rankbeam.pipelines.compare.compare import NamedComparison, RunComparison
from rankbeam.pipelines.results.leaderboard import doubt
from rankbeam.pipelines.show.exports import LATEX_TABLE, latex_label, latex_text
from rankbeam.pipelines.show.parts import UNRELIABLE
from rankbeam.pipelines.show.tabular import (
    NO_VALUE,
    WHOLE,
    Screen,
    Table,
    interval,
    markdown_table,
    markdown_text,
    number,
    printable,
)
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import json_text, pluralize
from rankbeam.transforms.records.scores.comparisons import DIFFERENCES, detectable, level_of, queries_for
from rankbeam.transforms.records.scores.rows import Verdict
from rankbeam.transforms.records.slices import ALL

_MOST_OPEN = 10  # maximum number of comparisons without a significant difference that get their own sentences
_OWN = [name for name in tables.own_columns(tables.COMPARISONS).names if name not in ("config_id", "baseline")]


def as_text(compared: RunComparison, screen: Screen = WHOLE) -> str:
    texts = [screen.prose(printable(sentence)) for sentence in sentences(compared)]
    return "\n".join([screen.table(table(compared)), "", *texts])


def as_markdown(compared: RunComparison) -> str:
    items = "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences(compared))
    return f"{markdown_table(table(compared))}\n\n{items}"


def as_latex(compared: RunComparison) -> str:
    """A LaTeX table with booktabs; significant differences are bold, and the sentences are its caption."""
    content = table(compared)
    place = list(content.columns).index("difference")
    rows = [[_latex_cell(cell) for cell in row] for row in content.rows]
    for row, entry in zip(rows, compared.rows, strict=True):
        if entry.row.verdict(compared.statistics.confidence) in (Verdict.BETTER, Verdict.WORSE):
            row[place] = rf"\textbf{{{row[place]}}}"
    return LATEX_TABLE.format(
        caption="\n".join(map(latex_text, [*sentences(compared), "Significant differences are in boldface."])),
        label=f"{latex_label(compared.run.run['experiment'])}-differences",
        columns="l" * content.left + "r" * (len(content.columns) - content.left),
        head=" & ".join(rf"\textbf{{{latex_text(heading)}}}" for heading in content.columns),
        rows="\n".join(" & ".join(row) + r" \\" for row in rows),
    )


def _latex_cell(cell: str) -> str:
    """A cell with real minus signs instead of hyphens."""
    if cell == NO_VALUE:
        return "--"
    text = latex_text(cell.removesuffix("‡")).replace("+", "$+$")
    signed = re.sub(r"(?<![\w-])-(?:\{\})?(?=\d)", "$-$", text)
    return signed + (r"$^\ddagger$" if cell.endswith("‡") else "")


def as_csv(compared: RunComparison) -> str:
    rows = _documents(compared)
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue()


def as_json(compared: RunComparison) -> str:
    document = {
        "run": compared.run.identity(),
        "baseline_run": None if compared.other is None else compared.other.identity(),
        "statistics": json.loads(compared.statistics.as_json()),
        "left_out": list(compared.left_out),
        "configurations_left_out": list(compared.unmatched),
        "queries": None if compared.shared is None else asdict(compared.shared),
        "comparisons": _documents(compared),
    }
    return json_text(document, allow_nan=False)


def sentences(compared: RunComparison) -> list[str]:
    """The verdict on each configuration against a baseline, for each metric and slice."""
    groups: dict[tuple[str, str, str], dict[Verdict, list[str]]] = {}
    for row in compared.rows:
        verdicts = groups.setdefault((row.row.metric, row.row.slice, _against(row, compared)), {})
        verdicts.setdefault(row.row.verdict(compared.statistics.confidence), []).append(row.configuration)
    confidence = f"{100 * compared.statistics.confidence:g}% confidence"
    doubt = [f"{UNRELIABLE}."] if any(row.row.is_unreliable for row in compared.rows) else []
    verdict_sentences = [
        f"{metric}{_over(name)}, against {baseline} at {confidence}: {_verdicts(by_verdict)}."
        for (metric, name, baseline), by_verdict in groups.items()
    ]
    return [*doubt, *_clusters(compared), *_named_once([*verdict_sentences, *_detectable(compared)], compared)]


def _named_once(texts: list[str], compared: RunComparison) -> list[str]:
    """The sentences, with the id and time of the baseline's run only in the first one."""
    run = "" if compared.other is None else f" ({compared.other.named})"
    return [*texts[:1], *(text.replace(run, "") for text in texts[1:])] if run else texts


def _over(name: str) -> str:
    return "" if name == ALL else f" over {name}"


def _detectable(compared: RunComparison) -> list[str]:
    """Sentences about detectable differences, for comparisons without a significant one, and the queries for others."""
    families = grouped(((side.row.metric, side.row.slice), side.row) for side in compared.rows)
    confidence = compared.statistics.confidence
    levels = {family: level_of(rows, confidence) for family, rows in families.items()}
    undecided = [
        (side, smallest)
        for side in compared.rows
        if side.row.verdict(confidence) is Verdict.UNDECIDED
        and (smallest := detectable(side.row, levels[side.row.metric, side.row.slice])) is not None
    ]
    sentences = []
    for comparison, smallest in undecided[:_MOST_OPEN]:
        row = comparison.row
        level = levels[row.metric, row.slice]
        needed = ", ".join(f"{size:g} needs {queries_for(row, size, level):,}" for size in DIFFERENCES)
        name = f"{comparison.configuration} against {_against(comparison, compared)}, {row.metric}{_over(row.slice)}"
        tests = round((1.0 - confidence) / level)
        corrected = f" (corrected for {tests} comparisons)" if tests > 1 else ""  # unlike the column `detectable`
        sentences.append(f"{name}: {row.queries:,} queries detect a difference of {smallest:.3f}; {needed}{corrected}.")
    more = len(undecided) - _MOST_OPEN
    others = pluralize(more, "more comparison shows", "more comparisons show")
    rest = [f"{others} no significant difference."] if more > 0 else []
    return [*sentences, *rest]


def _clusters(compared: RunComparison) -> list[str]:
    """A sentence about the units of evidence, if they are not queries."""
    counts = [row.row.clusters for row in compared.rows if row.row.clusters is not None]
    if not counts:
        return []
    cluster = compared.statistics.cluster
    return [f"Intervals and tests count queries with the same {cluster} as one: {min(counts):.3g} effective clusters."]


def _against(comparison: NamedComparison, compared: RunComparison) -> str:
    if compared.other is None:
        return comparison.baseline
    name = "the same configuration" if compared.is_by_name else comparison.baseline
    return f"{name} of {compared.other.output} ({compared.other.named})"


def _verdicts(verdicts: dict[Verdict, list[str]]) -> str:
    words = {
        Verdict.BETTER: ("is better", "are better"),
        Verdict.WORSE: ("is worse", "are worse"),
        Verdict.UNDECIDED: ("shows no significant difference", "show no significant difference"),
        Verdict.EQUAL: ("is equal at every query", "are equal at every query"),
        Verdict.UNKNOWN: ("has too few queries for a test", "have too few queries for a test"),
    }
    return "; ".join(
        f"{', '.join(verdicts[entry])} {one if len(verdicts[entry]) == 1 else many}"
        for entry, (one, many) in words.items()
        if entry in verdicts
    )


def table(compared: RunComparison) -> Table:
    sliced = any(row.row.slice != ALL for row in compared.rows)
    unpaired = any(row.row.unpaired for row in compared.rows)
    names = ["metric", *(["slice"] if sliced else []), "configuration", "baseline"]
    numbers = ["difference", f"{100 * compared.statistics.confidence:g}% interval", "p", "p (Holm)", "wins/ties/losses"]
    numbers += ["queries (unpaired)" if unpaired else "queries", "effect size", "detectable"]
    rows = [
        [
            row.metric,
            *([row.slice] if sliced else []),
            entry.configuration,
            entry.baseline,
            number(row.difference, "+.4f"),
            interval(row.ci_low, row.ci_high) + doubt(row),
            *map(_p_value, (row.p_value, row.p_adjusted)),
            f"{row.wins:,}/{row.ties:,}/{row.losses:,}",
            f"{row.queries:,}" + (f" ({row.unpaired:,})" if unpaired else ""),
            number(row.effect_size, "+.2f"),
            number(row.detectable if row.shows_spread else None),
        ]
        for entry in compared.rows
        for row in [entry.row]
    ]
    drop = ["detectable", "effect size", "p", *numbers[5:6]]
    if all(row.configuration == row.baseline for row in compared.rows):  # the sentences name the baseline
        drop = ["baseline", *drop]
    elif len({row.baseline for row in compared.rows}) == 1:
        drop.append("baseline")
    return Table([*names, *numbers], rows, len(names), drop=[*drop, "wins/ties/losses"])


def _p_value(value: float | None) -> str:
    return number(value) if value is None or value >= 0.0001 else "<0.0001"


def _documents(compared: RunComparison) -> list[dict[str, object]]:
    return [
        {
            **{name: getattr(row, name) for name in ("configuration", "baseline", "config_id", "baseline_id")},
            **{name: getattr(row.row, name) for name in _OWN},
            "verdict": str(row.row.verdict(compared.statistics.confidence)),
            "few_queries": row.row.is_unreliable,
        }
        for row in compared.rows
    ]


SHOWN = {"json": as_json, "csv": as_csv, "markdown": as_markdown, "latex": as_latex}
"""Formats for programs and documents, by name."""
