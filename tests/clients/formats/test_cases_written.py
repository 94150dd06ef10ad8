"""Files that ragas 0.4.3, DeepEval 4.3.1, Phoenix and Vertex's SDK wrote from the same rows give the same cases."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inputs import write

from rankbeam.transforms.clients.formats.cases.read import read_cases
from rankbeam.transforms.clients.formats.cases.roles import queries_in, survey_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.syntax.ids import hashed_id
from rankbeam.transforms.records.errors import InputError

FOLDER = Path(__file__).parent / "written"
ROWS = [
    ("Who pays the invoices?", "Owners pay. Guests do, too.", ["Owners pay the invoices.", "It rains."], "Owners pay."),
    ("How does the door open?", "It opens with a code.", ["The door opens with a key or a code."], "With a code."),
    ("Is there a garden?", None, ["The garden is green."], "Yes."),
    ("What is lost?", "A key is lost.", [], "A key."),
]


@pytest.mark.parametrize("name", ["ragas.jsonl", "ragas.csv", "ragas.parquet"])
def test_files_of_ragas(name: str) -> None:
    source = CaseSource(str(FOLDER / name))
    cases = list(read_cases(source))
    assert survey_of(source).layout.tool.name == "ragas"
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a, r) for q, a, _, r in ROWS]
    contexts = [[text.replace(" | ", " ") for _, text in case.contexts or ()] for case in cases]
    assert contexts == [texts for _, _, texts, _ in ROWS]


@pytest.mark.parametrize("name", ["ragas_conversations.jsonl", "ragas_conversations.csv"])
def test_conversations_of_ragas(name: str) -> None:
    cases = list(read_cases(CaseSource(str(FOLDER / name))))
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a or "-", r) for q, a, _, r in ROWS]
    history = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello"}]
    assert [case.query_id for case in cases] == [hashed_id(q, history) for q, _, _, _ in ROWS]


@pytest.mark.parametrize("name", ["deepeval.json", "deepeval.jsonl", "deepeval.csv"])
def test_files_of_deepeval(name: str) -> None:
    source = CaseSource(str(FOLDER / name))
    cases, survey = list(read_cases(source)), survey_of(source)
    assert survey.layout.tool.name == "DeepEval"
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a, r) for q, a, _, r in ROWS]
    # An empty list is an empty cell in DeepEval's CSV, and so is a missing one.
    expected = [texts or None if name.endswith("csv") else texts for _, _, texts, _ in ROWS]
    assert [(case.contexts and [text for _, text in case.contexts]) or (None if case.contexts is None else [])
            for case in cases] == expected  # fmt: skip
    assert survey.counts == ({} if name.endswith("json") else {"joined": 1})


@pytest.mark.parametrize("name", ["deepeval_conversations.json", "deepeval_conversations.csv"])
def test_conversations_of_deepeval(name: str) -> None:
    cases = list(read_cases(CaseSource(str(FOLDER / name))))
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a, r) for q, a, _, r in ROWS]
    # The turn of the assistant has the contexts.
    assert [case.contexts and [text for _, text in case.contexts] for case in cases] == [
        (texts or ()) if answer else None for _, answer, texts, _ in ROWS
    ]
    assert [case.query_id for case in cases] == [hashed_id(q, HISTORY) for q, _, _, _ in ROWS]


def test_a_test_case_of_deepeval_may_leave_the_reference_answer_to_its_golden() -> None:
    source = CaseSource(str(FOLDER / "deepeval_goldens.jsonl"))  # save_as writes the goldens first
    golden, case = read_cases(source)
    assert (golden.answer, golden.reference, case.answer, case.reference) == (None, "The owner.", "Owners pay.", None)
    assert [case.reference for case in queries_in(source)] == ["The owner."]


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("autorag.parquet", {"qid": "q", "query": "Who?", "retrieval_gt": "d1", "generation_gt": "Ann"}, ("d1",)),
        ("autorag.parquet", {"qid": "q", "query": "Who?", "retrieval_gt": ["d1"], "generation_gt": ["Ann"]}, ("d1",)),
        ("rows.csv", {"question": "Who?", "answer": "Ann", "gold": "d1"}, ("d1",)),
        ("rows.jsonl", {"question": "Who?", "answer": "Ann", "gold": 7}, ("7",)),
        ("rows.parquet", {"question": "Who?", "answer": "Ann", "gold": 7.0}, ("7",)),  # pandas, beside missing ids
    ],
)
def test_a_single_relevant_document_needs_no_list(
    tmp_path: Path, name: str, row: dict[str, Any], expected: tuple[str, ...]
) -> None:
    columns = {"relevant": "gold"} if "gold" in row else {}
    (case,) = read_cases(CaseSource(rows_file(tmp_path / name, row), columns))
    assert case.relevant == expected


def test_relevant_documents_that_are_no_list_or_alternatives_are_refused(tmp_path: Path) -> None:
    """AutoRAG reads a list without inner lists as one group of alternatives."""
    row = {"qid": "q", "query": "Who?", "retrieval_gt": ["d1", "d2"], "generation_gt": ["Ann"]}
    with pytest.raises(InputError, match="1: relevant: one of several documents is enough"):
        list(read_cases(CaseSource(rows_file(tmp_path / "autorag.parquet", row))))
    for name, value in {"a.csv": "d1, d2", "b.csv": "d1|d2", "c.jsonl": {"d1": 1}}.items():
        path = rows_file(tmp_path / name, {"question": "Who?", "answer": "Ann", "gold": value})
        with pytest.raises(InputError, match=rf"{name}:\d: relevant: expected a list of ids, found a"):
            list(read_cases(CaseSource(path, {"relevant": "gold"})))


def rows_file(path: Path, row: dict[str, Any]) -> str:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif path.suffix == ".csv":
        path.write_text(f"{','.join(row)}\n{','.join(json.dumps(value) for value in row.values())}\n")
    else:
        path.write_text(json.dumps(row))
    return str(path)


@pytest.mark.parametrize("name", ["phoenix_experiment.json", "phoenix_experiment.csv"])
def test_experiments_of_phoenix(name: str) -> None:
    cases = list(read_cases(CaseSource(str(FOLDER / name))))
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a, r) for q, a, _, r in ROWS]
    assert [[text for _, text in case.contexts or ()] for case in cases] == [texts for _, _, texts, _ in ROWS]


HISTORY = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello"}]
ANSWERED = [row for row in ROWS if row[1] is not None]  # this service takes no case without a response


@pytest.mark.parametrize(
    "name",
    ["vertex.jsonl", "vertex.csv", "vertex_conversations.jsonl", "vertex_conversations.csv", "vertex_dumped.json",
     "vertex_dumped_camel.json", "vertex_gemini.jsonl", "vertex_openai.jsonl"],
)  # fmt: skip
def test_files_of_vertex_evaluation(name: str) -> None:
    """Written by pandas and the types of google-cloud-aiplatform 1.165.1, whose converters gave the same parts."""
    source = CaseSource(str(FOLDER / name))
    cases, survey = list(read_cases(source)), survey_of(source)
    assert survey.layout.tool.name == "Vertex AI evaluation"
    assert [(case.question, case.answer, case.reference) for case in cases] == [(q, a, r) for q, a, _, r in ANSWERED]
    history = [] if name.partition(".")[0] == "vertex" else HISTORY
    assert [json.loads(case.attributes.get("history", "[]")) for case in cases] == [history] * len(cases)
    if not history:
        contexts = [[text for _, text in case.contexts or ()] for case in cases]
        assert contexts == [["\n".join(texts)] if texts else [] for _, _, texts, _ in ANSWERED]
    assert survey.counts == {}


def test_scores_of_other_judges_are_counted_since_they_become_no_metrics(tmp_path: Path) -> None:
    row = {"user_input": "Who pays?", "response": "Owners.", "retrieved_contexts": ["Owners pay."]}
    rows = [
        {**row, "factual_correctness(mode=f1)": 0.8},
        {**row, "user_input": "Who?", "faithfulness": 1.0},
        {**row, "user_input": "?", "level": 3},
    ]
    path = write(tmp_path / "scored.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert list(survey_of(CaseSource(path)).notes()) == [
        "2 rows with scores of another judge, such as faithfulness; they become attributes, not metrics"
    ]
