"""Print a run's results: for a terminal, for programs, and for pasting into documents and papers."""

from rankbeam.pipelines.show.documents import as_csv, as_json, as_trec
from rankbeam.pipelines.show.exports import as_latex, as_markdown
from rankbeam.pipelines.show.terminal import as_text, judge_line
from rankbeam.pipelines.show.usage import corpora_lines, usage_lines

__all__ = [
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "as_text",
    "as_trec",
    "corpora_lines",
    "judge_line",
    "usage_lines",
]
