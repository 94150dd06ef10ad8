"""Suggestions for the next experiment, in a few lines."""

from collections import defaultdict

from rankbeam.pipelines.results.advice import Advice, advice
from rankbeam.pipelines.results.equals import named
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import printable


def advice_lines(results: Results) -> list[str]:
    """One line for each rule and its metrics, below a title; none where no rule holds."""
    groups: defaultdict[tuple[str, str], list[Advice]] = defaultdict(list)
    for one in advice(results):
        groups[one.rule.suggestion, one.because].append(one)
    lines = [
        printable(f"- {suggestion} ({because}: {named([one.configuration for one in some])})")
        for (suggestion, because), some in groups.items()
    ]
    return ["what to try next", *lines] if lines else []
