"""Reference answers: read, joined to their queries, and refused with their lines; queries without judgements."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.inputs import json_texts, trec_qrels, write
from support.pipeline import run

from rankbeam.transforms.clients.formats.judged import judge
from rankbeam.transforms.clients.formats.references import from_attribute, read_references, with_references
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.read import ReadDataset
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary, References
from rankbeam.transforms.records.errors import InputError

ANSWERS = """\
{"query_id": "q1", "answer": "one", "source": "a person"}
{"query_id": "q2", "answerable": false}

{"query_id": 3, "answer": "three", "answerable": true, "nuggets": [{"text": "n", "vital": false}, {"text": "m"}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "queries.jsonl", json_texts([("q1", "a"), ("q2", "b"), ("3", "c"), ("q4", "d")]))
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0), ("q4", "d2", 0.0)]))
    write(tmp_path / "answers.jsonl", ANSWERS)
    return tmp_path


def read(folder: Path, references: References | None, *, qrels: bool = True) -> tuple[dict[str, Any], DatasetSummary]:
    """The rows by query, and the summary, of a dataset whose queries are all asked."""
    dataset = ReadDataset(
        str(folder / "qrels") if qrels else None,
        str(folder / "queries.jsonl"),
        3,
        references=references,
        everyone=True,
    )
    rows, (summary,) = run(folder, lambda pipeline: pipeline | dataset)
    return {row["query_id"]: row for _, batch in rows for row in batch.to_pylist()}, summary


def test_references_are_joined_to_their_queries(folder: Path) -> None:
    rows, summary = read(folder, References(path=str(folder / "answers.jsonl")))
    assert {query: row["reference"] for query, row in rows.items()} == {
        "q1": {"answer": "one", "answerable": None, "nuggets": None, "expected_steps": None},
        "q2": {"answer": None, "answerable": False, "nuggets": None, "expected_steps": None},
        "3": {
            "answer": "three",
            "answerable": True,
            "nuggets": [{"text": "n", "vital": False}, {"text": "m", "vital": True}],
            "expected_steps": None,
        },
        "q4": None,
    }
    assert (summary.judged, summary.also_asked, summary.referenced) == (2, 2, 3)
    assert "1 query without a reference answer: 'q4'" in list(summary.warnings())
    assert "2 queries without judgements, in judged metrics only: '3', 'q2'" in list(summary.warnings())


def test_a_query_without_judgements_has_none_and_one_with_them_keeps_its_own(folder: Path) -> None:
    rows, _ = read(folder, None)
    assert {query: row["judgements"] for query, row in rows.items()} == {
        "q1": [{"doc_id": "d1", "grade": 1.0}],
        "q2": None,
        "3": None,
        "q4": [{"doc_id": "d2", "grade": 0.0}],
    }
    assert "reference" not in rows["q1"]


def test_a_dataset_needs_no_judgements(folder: Path) -> None:
    rows, summary = read(folder, None, qrels=False)
    assert [row["judgements"] for row in rows.values()] == [None] * 4
    assert (summary.judged, summary.also_asked, summary.queries) == (0, 4, 4)


def test_an_attribute_may_hold_the_reference_and_is_an_attribute_no_longer(folder: Path) -> None:
    lines = [
        '{"_id": "q1", "text": "a", "language": "de", "answer": "one"}',
        '{"_id": "q2", "text": "b", "answer": " "}',
        '{"_id": "3", "text": "c"}',
        '{"_id": "q4", "text": "d", "answer": "four", "zone": "x"}',
    ]
    write(folder / "queries.jsonl", "\n".join(lines))
    rows, summary = read(folder, References(attribute="answer"))
    assert {query: row["reference"] and row["reference"]["answer"] for query, row in rows.items()} == {
        "q1": "one",
        "q2": None,
        "3": None,
        "q4": "four",
    }
    assert rows["q1"]["attributes"] == [{"name": "language", "value": "de"}]
    assert rows["q4"]["attributes"] == [{"name": "zone", "value": "x"}]
    assert summary.attributes == ("language", "zone")


def test_expected_steps_of_a_query_that_are_none_are_refused_with_its_id(folder: Path) -> None:
    row = {"_id": "q1", "text": "a", "answer": "one", "expected_steps": [{"tool": "find"}, {"args": {}}]}
    (queries,) = [
        batch.drop_columns(["line"]) for batch in read_queries(write(folder / "steps.jsonl", json.dumps(row)))
    ]
    with pytest.raises(InputError, match="query 'q1': expected_steps: 1: has no tool; its keys: args"):
        from_attribute(queries, "answer", DatasetSummary())


def test_the_fingerprint_has_references_only_where_there_are_some(folder: Path) -> None:
    (queries,) = [batch.drop_columns(["line"]) for batch in read_queries(str(folder / "queries.jsonl"))]
    with_judgements, without = judge([queries], [], everyone=True)

    def fingerprint(answers: str) -> str:
        path = write(folder / "changed.jsonl", answers)
        batches = [batch.drop_columns(["line"]) for batch in read_references(path)]
        return with_references(with_judgements, pa.chunked_array([queries["query_id"]]), batches, without)[
            1
        ].fingerprint

    first = fingerprint(ANSWERS)
    assert without.fingerprint.count("-") == 1
    assert first.startswith(f"{without.fingerprint}-")
    assert fingerprint("\n".join(reversed(ANSWERS.splitlines()))) == first
    assert fingerprint(ANSWERS.replace('"one"', '"uno"')) != first


MISTAKES = [
    ('{"query_id": "q9", "answer": "x"}', "answers.jsonl:5: no query has the id 'q9'; take it out"),
    ('{"query_id": "q1", "answer": "x"}',
     "answers.jsonl:5: query 'q1' has two reference answers (also at line 1); keep one"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), MISTAKES)
def test_what_contradicts_itself_is_refused_with_its_line(folder: Path, line: str, expected: str) -> None:
    write(folder / "answers.jsonl", f"{ANSWERS}{line}\n")
    with pytest.raises(Exception, match="answers") as caught:
        read(folder, References(path=str(folder / "answers.jsonl")))
    assert expected in str(caught.value)


LINES = [
    ('{"answer": "x"}', "query_id: is missing"),
    ('{"query_id": "q"}', "has no answer, and does not say answerable: false"),
    ('{"query_id": "q", "answer": "  "}', "has no answer, and does not say answerable: false"),
    ('{"query_id": "q", "answer": 5}', "answer: must be a text"),
    ('{"query_id": "q", "answer": "x", "answerable": "no"}', "answerable: must be true or false"),
    ('{"query_id": "q", "answer": "x", "nuggets": [{"vital": true}]}', "nuggets.0.text: is missing"),
    ('{"query_id": ["q"], "answer": "x"}', 'the id is ["q"]; an id is a text or a number'),
    ('{"query_id": "q", "answer": "\\ud83d"}', "holds half a character"),
    ("[1]", "expected a JSON object, found list"),
    ("{", "is not valid JSON"),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_line_that_is_no_reference_is_refused(tmp_path: Path, line: str, expected: str) -> None:
    path = write(tmp_path / "answers.jsonl", f'{{"query_id": "q1", "answer": "x"}}\n\n{line}\n')
    with pytest.raises(InputError) as caught:
        list(read_references(path))
    assert str(caught.value).startswith(f"{path}:3: {expected}")


def test_references_of_which_none_fits_are_refused() -> None:
    summary = DatasetSummary(queries=2, judged=2)
    with pytest.raises(InputError, match=r"a\.jsonl: answers none of the queries in q\.jsonl"):
        summary.check("q.jsonl", "qrels", (), References(path="a.jsonl"))
    attributes = DatasetSummary(queries=2, judged=2, attributes=("answers", "zone"))
    with pytest.raises(InputError, match=r"q\.jsonl: no query has the attribute 'answer' .*; did you mean 'answers'"):
        attributes.check("q.jsonl", "qrels", (), References(attribute="answer"))


def test_a_bucket_without_queries_that_are_asked() -> None:
    rows, summary = judge([pa.RecordBatch.from_pylist([], columns.QUERIES)], [])
    joined, after = with_references(rows, pa.chunked_array([[]], pa.string()), [], summary)
    assert (joined.num_rows, joined.schema) == (0, columns.REFERENCED_QUERIES)
    assert (after.referenced, after.without_reference) == (0, 0)
