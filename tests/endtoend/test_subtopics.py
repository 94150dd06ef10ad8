"""Judgements by subtopic: values of TREC's ndeval, from every format, and what is refused."""

import random
from collections.abc import Iterable
from math import isnan
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyndeval
import pytest
from support import runs
from support.inputs import write

import rankbeam
from rankbeam.transforms.records.metrics.definitions import SUBTOPIC_METRICS

Judgement = tuple[str, str, str, int]
Row = tuple[str, str, float]

CUTOFFS = (5, 10, 20)
NAMES = {
    "alpha-nDCG": "alpha_nDCG",
    "alpha-DCG": "alpha_DCG",
    "ERR-IA": "ERR_IA",
    "nERR-IA": "nERR_IA",
    "P-IA": "P_IA",
    "strec": "StRecall",
}
WHOLE = {"NRBP": "NRBP", "nNRBP": "nNRBP", "MAP-IA": "AP_IA"}


def collection(seed: int, queries: int = 60) -> tuple[list[Judgement], list[Row]]:
    """Judgements and a run: subtopics without a relevant document, unjudged documents, queries without a result."""
    chance = random.Random(seed)
    judgements, rows = [], []
    for number in range(queries):
        query, documents = f"q{number}", [f"d{i}" for i in range(chance.randint(1, 40))]
        pairs = {(str(chance.randint(1, 12)), chance.choice(documents)) for _ in range(chance.randint(1, 80))}
        judgements += [(query, *pair, chance.choice([-2, 0, 1, 1, 2])) for pair in sorted(pairs)]
        retrieved = chance.sample([*documents, *(f"u{i}" for i in range(10))], chance.randint(0, len(documents)))
        rows += [(query, doc, float(score)) for score, doc in enumerate(retrieved)]
    return judgements, rows


def as_trec(judgements: Iterable[Judgement]) -> str:
    return "".join(f"{query} {subtopic} {doc} {grade}\n" for query, subtopic, doc, grade in judgements)


def as_csv(judgements: Iterable[Judgement]) -> str:
    lines = (f"{query},{doc},{grade},{subtopic}\n" for query, subtopic, doc, grade in judgements)
    return "query_id,doc_id,relevance,iteration\n" + "".join(lines)


def as_run(rows: Iterable[Row]) -> str:
    return "".join(f"{query} Q0 {doc} 1 {score} tag\n" for query, doc, score in rows)


def scored(qrels: Path, run: Path, metrics: list[str]) -> dict[tuple[str, str], float]:
    """The values by query and metric."""
    table = rankbeam.score(str(qrels), [str(run)], metrics).per_query()
    return {(row["query_id"], row["metric"]): row["value"] for row in table.to_pylist()}


@pytest.mark.long
def test_values_are_those_of_ndeval(tmp_path: Path) -> None:
    # With these alphas sums of gains are exact. With others, ndeval breaks some ties of its ideal ranking by rounding.
    judgements, rows = collection(1, queries=120)
    queries = {query for query, *_ in judgements}
    measures = [*(f"{name}@{cutoff}" for name in NAMES for cutoff in CUTOFFS), *WHOLE]
    expected: dict[tuple[str, str], float] = {}
    for alpha, beta, rel in [(0.5, 0.5, 1), (0.25, 0.8, 1), (1.0, 0.0, 1), (0.0, 0.5, 2), (0.5, 1.0, 0)]:
        theirs = pyndeval.RelevanceEvaluator(judgements, measures, rel, alpha, beta).evaluate(rows)
        for measure in measures:
            name, _, cutoff = measure.partition("@")
            metric = {**NAMES, **WHOLE}[name]
            chosen = {"alpha": alpha, "beta": beta, "rel": float(rel)}
            definition = SUBTOPIC_METRICS[metric].options
            options = {key: value for key, value in chosen.items() if key in definition}
            changed = [f"{key}={value:g}" for key, value in options.items() if value != definition[key].default]
            metric += f"({','.join(changed)})" * bool(changed) + f"@{cutoff}" * bool(cutoff)
            for query in queries:
                value = theirs.get(query, {}).get(measure, 0.0)
                expected[query, metric] = 0.0 if isnan(value) else value  # nNRBP of nothing relevant
    qrels = Path(write(tmp_path / "qrels.txt", as_trec(judgements)))
    run = Path(write(tmp_path / "run.txt", as_run(rows)))
    assert scored(qrels, run, sorted({metric for _, metric in expected})) == pytest.approx(expected, abs=1e-12)


def test_the_relevance_level_of_the_command_line_holds_for_subtopics(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", "q1 1 d1 1\nq1 2 d2 2\n")
    run = write(tmp_path / "run.txt", "q1 Q0 d1 1 2.0 tag\nq1 Q0 d2 2 1.0 tag\n")
    result = runs.rankbeam("score", qrels, run, "-l", "2", "-m", "StRecall@1", "-m", "AP_IA", "--format", "csv")
    assert result.stdout.splitlines()[1:] == ["run,all,StRecall(rel=2)@1,0.0", "run,all,AP_IA(rel=2),0.5"]


@pytest.mark.long
def test_every_format_has_the_same_values_and_ordinary_metrics_take_the_highest_grade(tmp_path: Path) -> None:
    judgements, rows = collection(7)
    highest: dict[tuple[str, str], int] = {}
    for query, _, doc, grade in judgements:
        highest[query, doc] = max(grade, highest.get((query, doc), grade))
    plain = "".join(f"{query} 0 {doc} {grade}\n" for (query, doc), grade in highest.items())
    run = Path(write(tmp_path / "run.txt", as_run(rows)))
    metrics = ["nDCG@10", "AP", "P(rel=2)@5"]
    by_document = scored(Path(write(tmp_path / "plain.txt", plain)), run, metrics)
    names = ("query_id", "subtopic", "doc_id", "grade")
    table = pa.table({name: [row[place] for row in judgements] for place, name in enumerate(names)})
    pq.write_table(table, tmp_path / "qrels.parquet")
    write(tmp_path / "qrels.txt", as_trec(judgements))
    write(tmp_path / "qrels.csv", as_csv(judgements))
    by_text, *others = (
        scored(tmp_path / f"qrels.{form}", run, [*metrics, "alpha_nDCG@20", "ERR_IA@20"])
        for form in ("txt", "csv", "parquet")
    )
    assert by_document.items() <= by_text.items()
    assert others == [by_text, by_text]


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "metric", "problem"),
    [
        (
            "q1 1 d1 1\nq1 2 d2 1\nq1 1 d1 0\n",
            "alpha_nDCG@20",
            r"qrels\.txt:3: document 'd1' has two grades for query 'q1' and subtopic '1'; keep one \(also at line 1\)",
        ),
        ("q1 1 d1 1\nq1 2 d1 0\n", "nDCG@10", r"add a metric of subtopics such as alpha_nDCG@20"),
        ("q1 0 d1 1\nq2 0 d1 0\n", "StRecall@5", r"names one subtopic for each query"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "ERR_IA@5", r"without subtopics; .* TREC's four columns"),
        ("query_id,doc_id,grade\nq1,d1,1\n", "ERR_IA@5", r"no column for subtopic"),
        ("q1 1 d1 1\n", "alpha_nDCG", r"needs a cutoff"),
        ("q1 1 d1 1\n", "alpha_nDCG(alpha=2)@5", r"alpha=2 is not a number from 0 to 1"),
    ],
)
def test_what_is_refused(content: str, metric: str, problem: str, tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", content)
    run = write(tmp_path / "run.txt", "q1 Q0 d1 1 1.0 tag\n")
    with pytest.raises(rankbeam.InputError, match=problem):
        rankbeam.score(str(qrels), [str(run)], [metric])


def test_equal_judgements_are_counted(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", "q1 1 d1 1\nq1 1 d1 1\nq1 2 d1 1\n")
    run = write(tmp_path / "run.txt", "q1 Q0 d1 1 1.0 tag\n")
    result = rankbeam.score(str(qrels), [str(run)], ["StRecall@1", "alpha_nDCG@5"])
    assert any("1 judgement given more than once" in warning for warning in result.warnings)
    assert {row["value"] for row in result.per_query().to_pylist()} == {1.0}
