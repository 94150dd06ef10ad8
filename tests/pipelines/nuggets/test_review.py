"""People review nuggets as a table: what they edit, drop and add is in the file that the next run reads."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.inputs import write

HELPDESK = Path("examples/helpdesk").absolute()
EXPERIMENT = """name: review
dataset: {{queries: {folder}/queries.jsonl, corpus: {folder}/corpus.jsonl}}
services: {{overlap: {{type: lexical}}}}
judge: {{service: overlap}}
configurations:
  - {{name: bm25, retriever: {{type: bm25}}, top_k: 5}}
metrics: [ContextRelevance@5]
output: {{path: out}}
"""
FIRST = {
    "query_id": "q1", "answer": "Yes.", "query": "=Can I?", "evidence": {"a fact": ["d1", "d2"], "+1 month": ["d3"]},
    "nuggets": [{"text": "a fact", "vital": True}, {"text": "+1 month", "vital": False}, {"text": "third"}],
}  # fmt: skip
SECOND = {"query_id": "q2", "query": "And?", "nuggets": [{"text": "lonely", "vital": True}]}


@pytest.fixture
def path(tmp_path: Path) -> str:
    write(tmp_path / "out" / "nuggets" / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in (FIRST, SECOND)))
    return write(tmp_path / "experiment.yaml", EXPERIMENT.format(folder=HELPDESK))


def run(path: str, *words: str, status: int = 0) -> Any:
    outcome = rankbeam("nuggets", path, "--output", str(Path(path).parent / "out"), *words)
    assert outcome.status == status, outcome.stderr
    return outcome


def table(path: str) -> list[dict[str, str]]:
    target = Path(path).parent / "table.csv"
    run(path, "--review", str(target))
    return list(csv.DictReader(io.StringIO(target.read_text("utf-8-sig"), newline="")))


def saved(path: str, rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write(Path(path).parent / "edited.csv", text.getvalue())


def answers(path: str) -> list[dict[str, Any]]:
    lines = (Path(path).parent / "out" / "nuggets" / "answers.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_table_has_a_row_for_each_nugget_and_no_formula(path: str) -> None:
    rows = table(path)
    assert [row["nugget"] for row in rows] == ["a fact", "'+1 month", "third", "lonely"]
    assert [row["vital"] for row in rows] == ["yes", "no", "yes", "yes"]
    assert (rows[0]["query"], rows[0]["documents"], rows[3]["documents"]) == ("'=Can I?", "d1 d2", "")
    again = run(path, "--review", str(Path(path).parent / "table.csv"), status=2)
    assert "exists already" in again.stderr


def test_a_table_without_changes_changes_nothing(path: str) -> None:
    outcome = run(path, "--apply", saved(path, table(path)))
    assert "0 nuggets edited, 0 dropped, 0 added; 4 are unchanged" in outcome.stdout
    first, second = answers(path)
    assert first == {**FIRST, "nuggets": [*FIRST["nuggets"][:2], {"text": "third", "vital": True}]}
    assert second == SECOND


def test_edits_are_written_to_the_file(path: str) -> None:
    rows = table(path)
    rows[0]["nugget"], rows[1]["vital"], rows[3]["decision"] = "a better fact", "Yes", "drop"
    rows[2] = {**rows[2], "id": "", "nugget": "new", "vital": "no"}
    outcome = run(path, "--apply", saved(path, rows))
    assert "2 nuggets edited, 1 dropped, 1 added; 0 are unchanged; 1 have no row" in outcome.stdout
    assert "1 query has none any more" in outcome.stdout
    (first,) = answers(path)
    assert first["nuggets"] == [
        {"text": "a better fact", "vital": True},
        {"text": "+1 month", "vital": True},
        {"text": "third"},
        {"text": "new", "vital": False},
    ]
    assert first["evidence"] == {"a better fact": ["d1", "d2"], "+1 month": ["d3"]}
    assert first["answer"] == "Yes."


@pytest.mark.parametrize(
    ("place", "column", "cell", "problem"),
    [
        (1, "id", "nothing", "there is no nugget 'nothing'"),
        (0, "query_id", "q2", "belongs to query 'q1', not 'q2'"),
        (1, "decision", "dorp", "unknown value 'dorp' in the column decision; did you mean 'drop'?"),
        (1, "vital", "maybe", "unknown value 'maybe' in the column vital"),
        (1, "nugget", " ", "to delete it, write drop"),
        (2, "nugget", "a fact", "query 'q1' has this nugget in line 2 already"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(path: str, place: int, column: str, cell: str, problem: str) -> None:
    rows, before = table(path), answers(path)
    rows[place][column] = cell
    outcome = run(path, "--apply", edited := saved(path, rows), status=2)
    assert f"{edited}:{place + 2}: " in outcome.stderr
    assert problem in outcome.stderr
    assert answers(path) == before


def test_new_rows_and_repetitions_are_checked(path: str) -> None:
    rows, before = table(path), answers(path)
    wrong = [
        ([*rows, {**rows[0], "id": "", "query_id": "q9", "nugget": "x"}], "no query 'q9' has nuggets"),
        ([*rows, rows[0]], "is in line 2 already"),
        ([*rows[1:], {**rows[0], "id": ""}], "whose row is missing; write its id"),
        ([{key: cell for key, cell in row.items() if key != "vital"} for row in rows], "has no column vital"),
    ]
    for content, problem in wrong:
        assert problem in run(path, "--apply", saved(path, content), status=2).stderr
    empty = write(Path(path).parent / "empty.csv", ",".join(rows[0]) + "\n")
    assert "has no rows" in run(path, "--apply", empty, status=2).stderr
    assert answers(path) == before


def test_two_options_and_missing_nuggets_are_refused(path: str, tmp_path: Path) -> None:
    assert rankbeam("nuggets", path, "--plan", "--review", "x.csv").status == 2
    outcome = rankbeam("nuggets", path, "--output", str(tmp_path / "none"), "--review", str(tmp_path / "x.csv"))
    assert (outcome.status, "has no nuggets to review" in outcome.stderr) == (2, True)
    assert not (tmp_path / "x.csv").exists()
