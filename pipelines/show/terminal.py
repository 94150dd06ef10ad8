"""The tables that users see in a terminal."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rankbeam.pipelines.results.advice import advice
from rankbeam.pipelines.results.leaderboard import best_mean, distinct, doubt, list_names
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    UNRELIABLE,
    Slices,
    best_by,
    count_columns,
    counts,
    has_doubt,
    left_out,
    mark,
    metric_notes,
    overall,
    slices_by_attribute,
)
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table, printable
from rankbeam.pipelines.show.usage import SHARED, applications_table, stage_table, usage_table
from rankbeam.transforms.judge.quality import by_judge
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

_QUERIES = "queries"


def as_text(results: Results, screen: Screen = WHOLE) -> str:
    rows = distinct(results)
    parts = [
        screen.table(_leaderboard(results, rows)),
        *map(screen.prose, _notes(results)),
        *map(screen.table, _tables(results, rows)),
    ]
    if (applications := applications_table(results)) is not None:
        parts.append(screen.table(applications))
    if (used := usage_table(results)) is not None:
        parts.append(screen.table(used))
        parts += [screen.prose(SHARED)] if any(cell.endswith("*") for row in used.rows for cell in row) else []
    if (stages := stage_table(results)) is not None:
        parts.append(screen.table(stages))
    for part in slices_by_attribute(results):
        sliced = part.too_many
        parts.append(screen.prose(sliced) if sliced else screen.table(_by_slice(results, part, rows)))
    if has_doubt(results):
        parts.append(screen.prose(UNRELIABLE))
    if lines := advice_lines(results):
        parts.append("\n".join(screen.prose(line, "  ") for line in lines))
    return "\n\n".join(parts)


def _leaderboard(results: Results, rows: Sequence[dict[str, Any]]) -> Table:
    metrics = results.metrics
    means = [overall(results, row["config_id"]) for row in rows]
    best = [best_mean(results, ALL, metric) for metric in metrics]
    counted = count_columns(results)
    return Table(
        ["configuration", *metrics, *counted],
        [
            [row["name"], *(_cell(results, mean) for mean in row_means), *counts(results, row["config_id"], counted)]
            for row, row_means in zip(rows, means, strict=True)
        ],
        drop=[_QUERIES, *reversed(metrics[1:]), *reversed(counted[1:])],
        strong=_strong(means, best),
    )


def _notes(results: Results) -> Iterator[str]:
    yield from map(printable, metric_notes(results))
    if results.cut_short:
        yield CUT_SHORT
    if results.judge_quality:
        from rankbeam.pipelines.results.decisions import unmatched_labels

        yield from unmatched_labels(results)
    if any("labels=" in name for name in results.metrics):
        from rankbeam.pipelines.results.decisions import judge_decisions  # few runs have labels

        yield from (decisions.warning for decisions in judge_decisions(results) if decisions.warning)
    if any("holes=" in name for name in results.metrics):
        from rankbeam.pipelines.results.audit import hole_notes  # few runs fill holes

        yield from hole_notes(results)
    if sentences := best_by(results, results.metrics[0]):
        yield printable(sentences)


def _tables(results: Results, rows: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Tables of queries left out and of means' bounds, if there are any."""
    means = {row["name"]: overall(results, row["config_id"]) for row in rows}
    if words := left_out(results):
        yield _by_metric(results, "queries left out", {row["name"]: words[row["config_id"]] for row in rows})
    for title, bounds, is_known in _BOUNDS:
        if cells := {name: map(bounds, items) for name, items in means.items() if any(map(is_known, items))}:
            yield _by_metric(results, title, cells)


def _by_metric(results: Results, title: str, cells: Mapping[str, Iterable[str]]) -> Table:
    rows = [[name, *texts] for name, texts in cells.items()]
    return Table([title, *results.metrics], rows, drop=results.metrics[:0:-1])


def _by_slice(results: Results, part: Slices, rows: Sequence[dict[str, Any]]) -> Table:
    metric, headings = results.metrics[0], part.headings(results)
    means = [[results.means[row["config_id"], name, metric] for name in part.names] for row in rows]
    best = [best_mean(results, name, metric) for name in part.names]
    return Table(
        [f"{metric} by {part.attribute}", *headings],
        [
            [row["name"], *(_cell(results, mean) + part.size(mean) for mean in row_means)]
            for row, row_means in zip(rows, means, strict=True)
        ],
        drop=headings[:0:-1],
        strong=_strong(means, best),
    )


def _strong(means: Sequence[Sequence[ConfigurationMetric]], best: Sequence[float | None]) -> set[tuple[int, int]]:
    """The cells with the best means, as row and column in the table."""
    return {
        (number, place)
        for number, row_means in enumerate(means)
        for place, (mean, highest) in enumerate(zip(row_means, best, strict=True), start=1)
        if mean.mean == highest is not None
    }


def _bounds(mean: ConfigurationMetric) -> str:
    if mean.lowest is None:
        return mean.absent
    return f"{mean.lowest:.4f} or more" if mean.highest is None else f"{mean.lowest:.4f} to {mean.highest:.4f}"


def _tie_bounds(mean: ConfigurationMetric) -> str:
    low, high = mean.tie_lowest, mean.tie_highest
    return "no matter" if low is None or low == high else f"{low:.4f} to {high:.4f}"


def _unjudged_bounds(mean: ConfigurationMetric) -> str:
    low, high = mean.unjudged_lowest, mean.unjudged_highest
    if low is None or high is None:
        return "–"
    return "all judged" if low == high else f"{low:.4f} to {high:.4f}"


_BOUNDS: Sequence[tuple[str, Callable[[ConfigurationMetric], str], Callable[[ConfigurationMetric], object]]] = (
    ("had failed queries been answered", _bounds, lambda mean: mean.failed),
    ("if ties fell otherwise", _tie_bounds, lambda mean: mean.tie_lowest is not None),
    ("if unjudged documents were judged", _unjudged_bounds, lambda mean: mean.unjudged_lowest is not None),
)  # title of a table, the bounds of a mean, and a check for means that have them


def _cell(results: Results, row: ConfigurationMetric) -> str:
    if row.mean is None:
        return row.absent
    # Near an end of the range, one side of an interval is longer; a plain ± has to cover both.
    half_width = "" if row.half_width is None else f" ±{row.half_width:.3f}{doubt(row)}"
    return f"{row.mean:.4f}{mark(results, row)}{half_width}"


def advice_lines(results: Results) -> list[str]:
    """A title, and one line for each rule and its metrics; empty if no rule holds."""
    groups = grouped(((item.rule.suggestion, item.because), item.configuration) for item in advice(results))
    lines = [
        printable(f"- {suggestion} ({because}: {list_names(names)})") for (suggestion, because), names in groups.items()
    ]
    return ["what to try next", *lines] if lines else []


def judge_line(results: Results) -> str:
    """The judges, their agreement with themselves and people, and accuracy on known items; "" if nothing was judged."""
    if not results.judge_quality:
        return ""
    from rankbeam.pipelines.results.decisions import agreement_with_people

    lines = (_judge_line(rows) for rows in by_judge(results.judge_quality).values())
    return "\n".join([*lines, *map(printable, agreement_with_people(results))])


def _judge_line(rows: Sequence[Mapping[str, Any]]) -> str:
    versions: Counter[str] = Counter()
    for row in rows:
        versions.update({version["model_version"]: version["judgements"] for version in row["model_versions"]})
    names = ", ".join(name for name in sorted(versions) if name != rows[0]["judge"])
    compared, questions = (sum(row[name] for row in rows) for name in ("compared", "sentinels"))
    parts = [f"judge {rows[0]['judge']}{f' ({names})' if names else ''}"]
    if compared:
        agreement = sum(row["agreement"] * row["compared"] for row in rows if row["compared"]) / compared
        parts.append(f"agrees with itself in {agreement:.1%} of {pluralize(compared, 'repeated verdict')}")
    if questions:
        right = sum(row["sentinels_right"] or 0 for row in rows)
        parts.append(f"{right} of {questions} known items right ({right / questions:.1%})")
    return " · ".join(parts)
