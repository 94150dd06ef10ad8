"""Evaluations that are compared between engines, by the command line."""

from pathlib import Path

from support.cli import rankbeam_process
from support.runs import without_run

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records import tables

TABLES = [name for name in tables.TABLES if name not in ("runs", "usage")]
WITHIN_S = 600.0


def evaluated(experiment: str, output: Path, *options: str) -> Results:
    """The results of an evaluation that succeeds."""
    outcome = rankbeam_process(
        "evaluate", experiment, "--output", str(output), "--run-id", "r", *options, timeout_s=WITHIN_S
    )
    assert outcome.status == 0, outcome.stderr[-4000:]
    return Results(str(output), "r")


def same(one: Results, other: Results) -> None:
    """Every table of two runs has the same rows."""
    for name in TABLES:
        assert without_run(one.table(name)) == without_run(other.table(name)), name
