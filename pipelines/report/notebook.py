"""A result in a notebook: the decision, a leaderboard and the comparisons, with pictures, as HTML without scripts.

It looks right in light and dark themes, and where a notebook drops its style, plain tables are left.
"""

from rankbeam.pipelines.report import compare, leaderboard
from rankbeam.pipelines.report.page import environment
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.verdict import verdict
from rankbeam.pipelines.results.leaderboard import doubt
from rankbeam.pipelines.results.run import Results

MOST_ROWS = 50
"""The most configurations in a table."""


def shown(results: Results, warnings: list[str]) -> str:
    """A run as HTML: by its first metric in pictures, by the others in numbers."""
    study = Study(results)
    pairs, axis = compare.with_baseline(study, study.metrics[0])
    html: str = (
        environment()
        .get_template("notebook.html.j2")
        .render(
            title=results.named,
            verdict=verdict(study),
            confidence=study.confidence,
            metrics=study.metrics,
            board=leaderboard.board(study, study.metrics[0]),
            cells=[[_cell(study, name, metric) for metric in study.metrics] for name in study.order(study.metrics[0])],
            pairs=pairs,
            axis=axis,
            baseline=study.names[study.baseline],
            most=MOST_ROWS,
            warnings=warnings,
        )
    )
    return html


def _cell(study: Study, configuration: int, metric: str) -> str:
    """A mean with its interval, such as "0.6554 [0.585, 0.724]"."""
    row = study.mean(configuration, metric)
    if row.mean is None:
        return "–"
    if row.ci_low is None or row.ci_high is None:
        return f"{row.mean:.4f}"
    return f"{row.mean:.4f} [{row.ci_low:.3f}, {row.ci_high:.3f}]{doubt(row)}"
