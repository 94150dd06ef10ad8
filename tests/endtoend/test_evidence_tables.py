"""Evidence from Parquet and BigQuery: the same judgements as from JSON lines, and mistakes with the row."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.bigquery_tables import Tables, new_dataset
from support.data import REPOSITORY
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.inputs import trec_run, write
from support.runs import rankbeam, run_experiment, without_run

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.records.errors import InputErrors

HELPDESK = REPOSITORY / "examples" / "helpdesk"
TABLES = ("query_metrics", "configuration_metrics", "rankings")
LINES = [json.loads(line) for line in (HELPDESK / "evidence.jsonl").read_text("utf-8").splitlines()]


def rows() -> dict[str, list[Any]]:
    """The demo's evidence by column; where a line has no group, there is null."""
    names = ("query_id", "doc_id", "start", "end", "quote", "group", "grade")
    columns: dict[str, list[Any]] = {name: [line.get(name) for line in LINES] for name in names}
    return {**columns, "grade": [float(grade) for grade in columns["grade"]]}


@pytest.fixture
def tables(cloud: Cloud) -> Tables:  # noqa: F811  the fixture
    return new_dataset(cloud)


def judged(folder: Path, evidence: str) -> list[list[str]]:
    """The tables of a run whose judgements are this evidence."""
    run = trec_run([(line["query_id"], f"{line['doc_id']}#0-400", 1.0 / (1 + n)) for n, line in enumerate(LINES[::3])])
    dataset = {"evidence": evidence, "corpus": str(HELPDESK / "corpus.jsonl"), "unit": "span"}
    experiment = {
        "dataset": dataset,
        "configurations": [
            {"name": "a", "retriever": {"type": "run_file", "path": write(folder.parent / "a.run", unique(run))}}
        ],
        "metrics": ["nDCG@5", "SpanRecall@5", "AllGroups@5"],
    }
    results = run_experiment(folder, experiment)
    assert max(row["mean"] for row in results.table("configuration_metrics").to_pylist()) > 0.1
    return [without_run(results.table(name)) for name in TABLES]


def unique(run: str) -> str:
    return "".join({tuple(line.split()[:3]): f"{line}\n" for line in run.splitlines()}.values())


@pytest.mark.long
def test_parquet_judges_as_json_lines_do(tmp_path: Path) -> None:
    columns = rows()
    renamed = {"qid": columns.pop("query_id"), "docid": columns.pop("doc_id"), "relevance": columns.pop("grade")}
    pq.write_table(pa.table(renamed | columns | {"note": ["of the user"] * len(LINES)}), tmp_path / "e.parquet")
    expected = judged(tmp_path / "lines", str(HELPDESK / "evidence.jsonl"))
    assert judged(tmp_path / "parquet", str(tmp_path / "e.parquet")) == expected
    run, corpus = tmp_path / "a.run", HELPDESK / "corpus.jsonl"
    scored = rankbeam("score", tmp_path / "e.parquet", run, "--corpus", corpus, "--output", tmp_path / "s")
    assert scored.exit_code == 0, scored.stderr
    assert "SpanRecall" in str(find_run(str(tmp_path / "s")).run["experiment_yaml"])


@pytest.mark.campaign
def test_bigquery_judges_as_json_lines_do(tmp_path: Path, tables: Tables) -> None:
    path = tables.add("evidence", rows())
    assert judged(tmp_path / "table", path) == judged(tmp_path / "lines", str(HELPDESK / "evidence.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"quote": "not what stands there"[:5]}, "the quote has 5 characters, the span"),
        ({"start": None}, "start: is missing"),
        ({"end": 0}, "end: must be at least 1"),
        ({"grade": -1.0}, "grade: must be greater than 0"),
        ({"doc_id": "gone"}, "document 'gone' is not in the corpus"),
        ({"doc_id": None}, "doc_id: is missing"),
    ],
)
def test_wrong_rows_are_refused_with_file_and_row(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    columns = rows()
    for name, value in change.items():
        columns[name][2] = value
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    run = write(tmp_path / "a.run", trec_run([(LINES[0]["query_id"], "d#0-1", 1.0)]))
    outcome = rankbeam("score", tmp_path / "e.parquet", run, "--corpus", HELPDESK / "corpus.jsonl")
    assert outcome.exit_code == 2
    assert f"{tmp_path / 'e.parquet'}:3: {problem}" in outcome.stderr


def test_a_column_that_is_missing_is_named(tmp_path: Path, tables: Tables) -> None:
    columns = rows()
    del columns["quote"]
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    for path in (str(tmp_path / "e.parquet"), tables.add("odd", columns)):
        with pytest.raises(InputErrors, match="no column for quote"):
            judged(tmp_path / "x", path)
