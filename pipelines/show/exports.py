"""Tables of Markdown to paste into pull requests and reports."""

from rankbeam.pipelines.results.equals import distinct, without_value
from rankbeam.pipelines.results.notes import doubt
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    UNRELIABLE,
    Significance,
    Slices,
    best_mean,
    count_columns,
    counts,
    has_doubt,
    left_out,
    mark,
    metric_notes,
    overall,
    slices_by_attribute,
)
from rankbeam.pipelines.show.tabular import Table, markdown_rows
from rankbeam.pipelines.show.tabular import markdown_text as _markdown
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL


def as_markdown(results: Results) -> str:
    """The leaderboard and the first metric by slice, as tables of GitHub's Markdown.

    Superscripts name the configurations that a value is significantly better than.
    """
    significance = Significance.of(results)
    best = {metric: best_mean(results, ALL, metric) for metric in results.metrics}
    rows = []
    for row in distinct(results):
        config_id = row["config_id"]
        cells = [
            _markdown_cell(
                results, mean, best[mean.metric], significance.written(significance.worse(config_id, mean.metric))
            )
            for mean in overall(results, config_id)
        ]
        rows.append([significance.letters[config_id], _markdown(row["name"]), *cells, *counts(results, config_id)])
    head = ["#", "configuration", *map(_markdown, results.metrics), *count_columns(results)]
    slices = [_markdown_slices(results, part, significance.letters) for part in slices_by_attribute(results)]
    failed = _markdown(without_value(results, results.metrics[0]))
    of_metrics = [_markdown(note) + "." for note in metric_notes(results)]
    absent = _markdown_left_out(results, significance.letters)
    notes = [absent, _markdown_notes(results, significance), *of_metrics, failed, _markdown_source(results)]
    return "\n\n".join([markdown_rows(Table(head, rows, 2)), *filter(None, notes), *slices]) + "\n"


def _markdown_cell(results: Results, mean: ConfigurationMetric, best: float | None, superscript: str = "") -> str:
    if mean.mean is None:
        return mean.absent
    value = f"{mean.mean:.4f}"
    strong = f"**{value}**" if mean.mean == best else value
    raised = f"<sup>{superscript}</sup>" if superscript else ""
    interval = "" if mean.ci_low is None else f" [{mean.ci_low:.3f}, {mean.ci_high:.3f}]{doubt(mean)}"
    return strong + mark(results, mean) + raised + interval


def _markdown_left_out(results: Results, letters: dict[str, str]) -> str:
    words = left_out(results)
    rows = [
        [letters[row["config_id"]], _markdown(row["name"]), *words[row["config_id"]]]
        for row in (distinct(results) if words else ())
    ]
    return markdown_rows(Table(["#", "queries left out", *map(_markdown, results.metrics)], rows, 2)) if rows else ""


def _markdown_slices(results: Results, part: Slices, letters: dict[str, str]) -> str:
    if part.too_many:
        return _markdown(part.too_many) + "."
    metric = results.metrics[0]
    best = {name: best_mean(results, name, metric) for name in part.names}
    rows = [
        [
            letters[row["config_id"]],
            _markdown(row["name"]),
            *(
                _markdown_cell(results, (mean := results.means[row["config_id"], name, metric]), best[name])
                + part.size(mean)
                for name in part.names
            ),
        ]
        for row in distinct(results)
    ]
    head = ["#", *map(_markdown, [f"{metric} by {part.attribute}", *part.headings(results)])]
    return markdown_rows(Table(head, rows, 2))


def _markdown_notes(results: Results, significance: Significance) -> str:
    notes = "Best means in bold"
    if any(mean.ci_low is not None for mean in results.means.values()):
        notes += f", {100.0 * results.run['statistics']['confidence']:g}% confidence intervals in brackets"
    notes += f". {CUT_SHORT}" if results.cut_short else ""
    notes += f". {UNRELIABLE}" if has_doubt(results) else ""
    if not significance.tested:
        return notes + "."
    raised = "Superscripts name the configurations that a value is significantly better than"
    return f"{notes}. {raised} ({significance.test}, p ≤ {significance.level:g}). {significance.pairs}"


def _markdown_source(results: Results) -> str:
    judged, fingerprint = results.run["dataset"]["judged"], results.run["dataset_fingerprint"]
    name = _markdown(results.run["experiment"])
    return f"{name}: {judged:,} judged queries, dataset fingerprint `{fingerprint}`, run `{results.run_id}`."
