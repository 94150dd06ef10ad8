"""Tables to paste: Markdown for pull requests and reports, LaTeX with booktabs for papers."""

import re

from rankbeam.pipelines.results.leaderboard import best_mean, distinct, doubt, without_value
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    NONE,
    UNRELIABLE,
    Significance,
    Slices,
    count_columns,
    counts,
    has_doubt,
    left_out,
    mark,
    metric_notes,
    overall,
    slices_by_attribute,
)
from rankbeam.pipelines.show.tabular import Table, markdown_rows, printable
from rankbeam.pipelines.show.tabular import markdown_text as _markdown
from rankbeam.transforms.records.scores.rows import FEW_QUERIES, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL


def as_markdown(results: Results) -> str:
    """The leaderboard and the first metric by slice, as tables in GitHub's Markdown.

    Superscripts name the configurations that a value is significantly better than.
    """
    significance = Significance.of(results)
    best = {metric: best_mean(results, ALL, metric) for metric in results.metrics}
    rows, counted = [], count_columns(results)
    for row in distinct(results):
        config_id = row["config_id"]
        cells = [
            _markdown_cell(
                results, mean, best[mean.metric], significance.written(significance.worse(config_id, mean.metric))
            )
            for mean in overall(results, config_id)
        ]
        rows.append(
            [significance.letters[config_id], _markdown(row["name"]), *cells, *counts(results, config_id, counted)]
        )
    head = ["#", "configuration", *map(_markdown, results.metrics), *counted]
    slices = [_markdown_slices(results, part, significance.letters) for part in slices_by_attribute(results)]
    failed = _markdown(without_value(results, results.metrics[0]))
    metric_texts = [_markdown(note) + "." for note in metric_notes(results)]
    absent = _markdown_left_out(results, significance.letters)
    notes = [absent, _markdown_notes(results, significance), *metric_texts, failed, _markdown_source(results)]
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
    fingerprint, name = results.run["dataset_fingerprint"], _markdown(results.run["experiment"])
    return f"{name}: {results.queries_in_words}, dataset fingerprint `{fingerprint}`, run `{results.run_id}`."


_LATEX_SPECIALS = {
    **{special: "\\" + special for special in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\string" + '"}',  # \textquotedbl needs the encoding T1, and babel may have made the character a command
}
_DAGGER = r"$^\dagger$"
LATEX_TABLE = r"""% Needs \usepackage{{booktabs}} in the preamble; names in other alphabets need XeLaTeX or LuaLaTeX.
\begin{{table}}[ht]
\centering
\caption{{{caption}}}
\label{{tab:{label}}}
\begin{{tabular}}{{{columns}}}
\toprule
{head} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
\end{{table}}
"""
"""A template with `caption`, `label`, `columns`, `head` and `rows`."""


def as_latex(results: Results) -> str:
    """The leaderboard as a LaTeX table with booktabs, like those of ranx.

    Superscripts name the configurations that a value is significantly better than.
    """
    significance = Significance.of(results)
    leaderboard = distinct(results)
    head = [r"\textbf{\#}", r"\textbf{Model}", *(rf"\textbf{{{latex_text(metric)}}}" for metric in results.metrics)]
    columns = [_latex_column(results, metric, significance) for metric in results.metrics]
    starts = [(significance.letters[row["config_id"]], latex_text(row["name"])) for row in leaderboard]
    rows = [" & ".join([*start, *cells]) + r" \\" for start, *cells in zip(starts, *columns, strict=True)]
    return LATEX_TABLE.format(
        caption=_latex_caption(results, significance),
        label=latex_label(results.run["experiment"]),
        columns="cl" + "c" * len(results.metrics),
        head=" & ".join(head),
        rows="\n".join(rows),
    )


def latex_text(text: str) -> str:
    """A text with LaTeX's special characters escaped."""
    escaped = "".join(_LATEX_SPECIALS.get(letter, letter) for letter in printable(text))
    return re.sub("-(?=-)", "-{}", escaped)  # two hyphens would become a dash


def _latex_column(results: Results, metric: str, significance: Significance) -> list[str]:
    """The cells of one metric; as in ranx, they leave room for the letters in other cells."""
    best = best_mean(results, ALL, metric)
    worse = {config_id: significance.worse(config_id, metric) for config_id in significance.letters}
    used = [letter for letter in significance.letters.values() if any(letter in marks for marks in worse.values())]
    any_cut = any((config_id, metric) in results.cut_short for config_id in worse)
    cells = []
    for config_id, letters in worse.items():
        row = results.means[config_id, ALL, metric]
        mean = row.mean
        if mean is None:
            cells.append("--")
            continue
        value = rf"\textbf{{{mean:.4f}}}" if mean == best else f"{mean:.4f}"
        raised = _superscript(significance.written(letters))
        room = _superscript(significance.written([letter for letter in used if letter not in letters]))
        dagger = _DAGGER if mark(results, row) else rf"\hphantom{{{_DAGGER}}}" if any_cut else ""
        cells.append(value + dagger + raised + (rf"\hphantom{{{room}}}" if room else ""))
    return cells


def _superscript(letters: str) -> str:
    return f"$^{{{letters}}}$" if letters else ""


def _latex_caption(results: Results, significance: Significance) -> str:
    metrics = ", ".join(map(latex_text, results.metrics))
    notes = [
        f"Overall effectiveness of the models on {latex_text(results.run['experiment'])}:",
        f"{metrics}, averaged over {results.queries_in_words}.",
        "The best results are highlighted in boldface.",
    ]
    if results.cut_short:
        notes.append(f"{_DAGGER} {latex_text(CUT_SHORT.partition(' ')[2])}.")
    if any(mean.is_unreliable for row in results.configurations for mean in overall(results, row["config_id"])):
        notes.append(f"Some means cover fewer than {FEW_QUERIES} queries; their tests and intervals are unreliable.")
    if absent := _left_out(results, significance):
        notes.append(f"Left out of the means: {'; '.join(absent)}.")
    notes += [latex_text(note) + "." for note in metric_notes(results)]
    if significance.tested:
        notes.append(
            f"Superscripts denote significant differences in {significance.test}, $p \\le {significance.level:g}$."
        )
        notes.append(significance.pairs)
    return "\n".join(notes)


def _left_out(results: Results, significance: Significance) -> list[str]:
    """The queries that means leave out, for all metrics together or by metric."""
    if words := left_out(results):
        return [
            f"{latex_text(metric)} ({', '.join(words_left)})"
            for place, metric in enumerate(results.metrics)
            if (
                words_left := [
                    f"{significance.letters[row]}: {cell[place]}" for row, cell in words.items() if cell[place] != NONE
                ]
            )
        ]
    rows = {letter: overall(results, config_id)[0] for config_id, letter in significance.letters.items()}
    counted = {
        kind: [f"{letter}: {getattr(row, kind):,}" for letter, row in rows.items() if getattr(row, kind)]
        for kind in ("failed", "missing", "undefined", "not_asked")
    }
    return [f"{kind.replace('_', ' ')} queries ({', '.join(names)})" for kind, names in counted.items() if names]


def latex_label(name: str) -> str:
    """A name in the form that `\\ref` accepts.

    >>> latex_label("my run: 2")
    'my-run-2'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "results"
