"""Grades so high that gains overflow: refused by `rankbeam score`, with the metric, the file and the line."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import qrels_table, trec_qrels, trec_run, write, write_table


@pytest.mark.long
@pytest.mark.parametrize("form", ["trec", "parquet"])
@pytest.mark.parametrize(
    ("arguments", "grade", "metric"),
    [
        (["-m", "nDCG(gain=exp)@10"], "1024", "nDCG(gain=exp)@10"),
        (["-m", "AP", "-m", "nDCG@10"], "1e+291", "nDCG@10"),
        (["-m", "nDCG@10", "--dialect", "notebook"], "1024", "chunk_nDCG@10"),
    ],
)
def test_a_grade_whose_gain_overflows(tmp_path: Path, form: str, arguments: list[str], grade: str, metric: str) -> None:
    rows = [("q1", "d1", 1.0), ("q1", "d2", float(grade)), ("q2", "d1", 3.0)]
    path = tmp_path / "qrels"
    qrels = write(path, trec_qrels(rows)) if form == "trec" else write_table(path, qrels_table(rows))
    run = write(tmp_path / "a.run", trec_run([("q1", "d1", 1.0)]))
    outcome = rankbeam("score", qrels, run, *arguments)
    assert (outcome.status, outcome.stdout) == (2, "")
    expected = f"rankbeam: {qrels}:2: {metric} cannot be computed with the grade {grade}: gains overflow above "
    assert expected in outcome.stderr


def test_a_high_grade_is_no_harm_to_metrics_without_gains(tmp_path: Path) -> None:
    rows = [("q1", "d1", 1.0), ("q1", "d2", 1e291), ("q2", "d1", 1024.0), ("q2", "d3", 0.0)]
    qrels = write(tmp_path / "qrels", trec_qrels(rows))
    run = write(tmp_path / "a.run", trec_run([("q1", "d1", 2.0), ("q1", "d3", 1.0), ("q2", "d1", 1.0)]))
    outcome = rankbeam("score", qrels, run, "-m", "AP", "-m", "ERR", "--replicates", "0", "--format", "csv")
    assert (outcome.status, outcome.stdout.splitlines()[1]) == (0, "a,all,AP,0.75")


@pytest.mark.long
def test_the_highest_grades_that_are_taken_make_numbers(tmp_path: Path) -> None:
    documents = [f"d{number}" for number in range(50)]
    run = write(tmp_path / "a.run", trec_run([("q1", name, -float(rank)) for rank, name in enumerate(documents)]))
    for metric, grade in (("nDCG(gain=exp)", 990.0), ("nDCG", 1e290)):
        qrels = write(tmp_path / "qrels", trec_qrels([("q1", name, grade) for name in documents]))
        outcome = rankbeam("score", qrels, run, "-m", metric, "--replicates", "0", "--format", "csv")
        assert (outcome.status, outcome.stdout.splitlines()[1]) == (0, f"a,all,{metric},1.0")
