"""Runs and qrels that tests write, what `rankbeam score` prints of them, and what pytrec_eval says."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import pytrec_eval
from support.inputs import qrels_table, trec_qrels, write, write_table
from support.runs import rankbeam

Row = tuple[str, str, float]
Values = dict[str, dict[str, float]]

REFUSED = 2
TOLERANCE = 1e-9
METRICS = {
    "nDCG@10": "ndcg_cut_10", "nDCG": "ndcg", "AP": "map", "RR": "recip_rank", "P@5": "P_5", "R@100": "recall_100",
    "Rprec": "Rprec", "Bpref": "bpref",
}  # fmt: skip


def put_qrels(path: Path, rows: Sequence[Row], form: str = "trec") -> str:
    if form == "trec":
        return write(path.with_suffix(".qrels"), trec_qrels(rows))
    return write_table(path.with_suffix(".qrels.parquet"), qrels_table(rows))


def printed(qrels: str, run: str, *options: str, metrics: Iterable[str] = METRICS) -> str:
    """Means and the values of every query, as CSV."""
    names = [word for metric in metrics for word in ("-m", metric)]
    outcome = rankbeam("score", qrels, run, *names, "--format", "csv", "--per-query", *options)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


def values_of(text: str) -> Values:
    """query → metric → value; the query of a mean is "all"."""
    values: Values = {}
    for row in csv.DictReader(io.StringIO(text)):
        assert row["metric"] not in values.setdefault(row["query_id"], {})
        values[row["query_id"]][row["metric"]] = float(row["value"])
    return values


def nested(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    result: dict[str, dict[str, float]] = {}
    for query, doc, number in rows:
        assert doc not in result.setdefault(query, {})
        result[query][doc] = number
    return result


def by_pytrec_eval(judgements: Iterable[Row], rows: Iterable[Row]) -> Values:
    """pytrec_eval's values of the queries that have results."""
    qrels = {query: {doc: int(grade) for doc, grade in pool.items()} for query, pool in nested(judgements).items()}
    measures = {theirs.replace("_cut_", "_cut.").replace("P_", "P.") for theirs in METRICS.values()}
    measures = {name.replace("recall_", "recall.") for name in measures}
    result = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(nested(rows))
    return {query: {ours: values[theirs] for ours, theirs in METRICS.items()} for query, values in result.items()}


def assert_agree(ours: Values, theirs: Values) -> None:
    assert theirs
    for query, expected in theirs.items():
        assert ours[query] == pytest.approx(expected, rel=0, abs=TOLERANCE), query


# --- Ties --------------------------------------------------------------------------------------------------------

NAMES = ["a", "B", "b", "d1", "d10", "d2", "d9", "_", "~", "é", "z", "日本", "\uffee", "😀", "a" * 8, "a" * 9]


# --- A document twice --------------------------------------------------------------------------------------------


def ranking(count: int) -> list[Row]:
    """Two queries, their rows by turns, best first."""
    return [(f"q{number % 2}", f"d{number}", float(count - number)) for number in range(count)]


def refused(*arguments: str) -> str:
    outcome = rankbeam("score", *arguments, "-m", "RR", "--format", "csv")
    assert (outcome.exit_code, outcome.stdout) == (REFUSED, ""), outcome.output
    assert "Traceback" not in outcome.stderr
    return outcome.stderr[outcome.stderr.index("rankbeam: ") :]
