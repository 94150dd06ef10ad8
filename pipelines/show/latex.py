"""Tables of LaTeX with booktabs, for papers."""

import re

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    NONE,
    Significance,
    best_mean,
    left_out,
    mark,
    metric_notes,
    overall,
)
from rankbeam.pipelines.show.tabular import printable
from rankbeam.transforms.records.scores.rows import FEW_QUERIES
from rankbeam.transforms.records.slices import ALL

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
"""Takes `caption`, `label`, `columns`, `head` and `rows`."""


def as_latex(results: Results) -> str:
    """The leaderboard as a table of LaTeX with booktabs, like those of ranx.

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
    """A text with every character that LaTeX would take for a command as it is read."""
    escaped = "".join(_LATEX_SPECIALS.get(letter, letter) for letter in printable(text))
    return re.sub("-(?=-)", "-{}", escaped)  # two hyphens would become a dash


def _latex_column(results: Results, metric: str, significance: Significance) -> list[str]:
    """The cells of one metric; as in ranx, room is kept for the letters that other cells have."""
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
        raised = _raised(significance.written(letters))
        room = _raised(significance.written([letter for letter in used if letter not in letters]))
        dagger = _DAGGER if mark(results, row) else rf"\hphantom{{{_DAGGER}}}" if any_cut else ""
        cells.append(value + dagger + raised + (rf"\hphantom{{{room}}}" if room else ""))
    return cells


def _raised(letters: str) -> str:
    return f"$^{{{letters}}}$" if letters else ""


def _latex_caption(results: Results, significance: Significance) -> str:
    metrics = ", ".join(map(latex_text, results.metrics))
    notes = [
        f"Overall effectiveness of the models on {latex_text(results.run['experiment'])}:",
        f"{metrics}, averaged over {results.run['dataset']['judged']:,} judged queries.",
        "The best results are highlighted in boldface.",
    ]
    if results.cut_short:
        notes.append(f"{_DAGGER} {latex_text(CUT_SHORT.partition(' ')[2])}.")
    if any(mean.is_unreliable for row in results.configurations for mean in overall(results, row["config_id"])):
        notes.append(f"Means of fewer than {FEW_QUERIES} queries, whose tests and intervals are unreliable.")
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
    """The queries that means leave out, for all metrics alike or by metric."""
    if words := left_out(results):
        return [
            f"{latex_text(metric)} ({', '.join(words_left)})"
            for place, metric in enumerate(results.metrics)
            if (
                words_left := [
                    f"{significance.letters[row]}: {of[place]}" for row, of in words.items() if of[place] != NONE
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
    """A name as `\\ref` takes it.

    >>> latex_label("my run: 2")
    'my-run-2'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "results"
