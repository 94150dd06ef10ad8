"""`rankbeam score` against trec_eval's own test vectors, digit for digit, for every metric that both print."""

import csv

import pytest
from support.data import SHARED_DATA, needs_shared_data
from support.runs import rankbeam

VECTORS = SHARED_DATA / "trec_eval"
BOTH_PRINT = 92  # values a query: 28 metrics, nine of them at several cutoffs; and runid, num_q for all queries

pytestmark = needs_shared_data


def _lines(text: str) -> list[list[str]]:
    return [[field.strip() for field in line.split("\t")] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("expected", "qrels", "run", "options"),
    [
        ("out.test.aq", "qrels.test", "results.test", []),
        ("out.test.aqc", "qrels.test", "results.trunc", ["-c"]),
        ("out.test.aqcM", "qrels.test", "results.trunc", ["-c", "-M", "100"]),
        ("out.test.aql", "qrels.rel_level", "results.test", ["-l", "2"]),
    ],
)
def test_prints_what_trec_eval_prints(expected: str, qrels: str, run: str, options: list[str]) -> None:
    command = ["score", VECTORS / qrels, VECTORS / run, "-m", "all_trec", "--format", "trec", "--per-query", *options]
    result = rankbeam(*command)
    assert result.exit_code == 0, result.stderr
    ours = _lines(result.stdout)
    names = {line[0] for line in ours}
    theirs = [line for line in _lines((VECTORS / expected).read_text()) if line[0] in names]
    assert ours == theirs
    assert len(names) == BOTH_PRINT


def test_only_means_without_per_query() -> None:
    result = rankbeam("score", VECTORS / "qrels.test", VECTORS / "results.test", "-m", "all_trec", "--format", "trec")
    ours = _lines(result.stdout)
    theirs = [line for line in _lines((VECTORS / "out.test.a").read_text()) if line[0] in {line[0] for line in ours}]
    assert ours == theirs


def test_the_lines_are_laid_out_byte_for_byte_as_trec_eval_does() -> None:
    result = rankbeam("score", VECTORS / "qrels.test", VECTORS / "results.test", "-m", "map", "--format", "trec")
    expected = {
        line
        for line in (VECTORS / "out.test.a").read_text().splitlines()
        if line.split()[0] in ("runid", "num_q", "map")
    }
    assert set(result.stdout.splitlines()) == expected


@pytest.mark.parametrize(
    ("metric", "qrels", "options", "expected"),
    [
        ("RBP(p=0.9)", "qrels.test", (), "out.test.aq"),
        ("rbp", "qrels.test", (), "out.test.aq"),
        ("rbp", "qrels.rel_level", ("--relevance-level", "2"), "out.test.aql"),
    ],
)
def test_rbp_is_that_of_trec_eval(metric: str, qrels: str, options: tuple[str, ...], expected: str) -> None:
    result = rankbeam(
        "score", VECTORS / qrels, VECTORS / "results.test", "-m", metric, "--format", "csv", "-q", *options
    )
    rows = csv.reader(result.stdout.splitlines()[1:])
    ours = {row[1]: float(row[-1]) for row in rows}
    theirs = {line[1]: float(line[2]) for line in _lines((VECTORS / expected).read_text()) if line[0] == "rbp"}
    assert {query: round(value, 4) for query, value in ours.items()} == theirs
