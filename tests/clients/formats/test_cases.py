"""Rows of other tools' files: each tool's schema gives the same cases; other rows are refused with their line."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import write

from rankbeam.transforms.clients.formats.cases.objects import rows_in
from rankbeam.transforms.clients.formats.cases.read import Case, read_cases
from rankbeam.transforms.clients.formats.cases.roles import queries_in, read_qrels, read_replayed, survey_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.syntax.ids import hashed_id
from rankbeam.transforms.records.errors import InputError

Q, A, R = "Who pays?", "Owners [1].", "Owners pay."
C = ["Owners pay the invoices.", "It rains."]
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": Q}]
PARTS = {"parts": [{"text": Q}]}
DONE = {"parts": [{"text": R}]}

SAME: dict[str, dict[str, Any]] = {
    "ragas": {"user_input": Q, "retrieved_contexts": C, "response": A, "reference": R},
    "ragas before 0.2": {"question": Q, "contexts": C, "answer": A, "ground_truth": R},
    "with a reference by another name": {"question": Q, "contexts": C, "answer": A, "reference": R},
    "with an id, too": {"query_id": hashed_id(Q), "question": Q, "contexts": C, "answer": A, "ground_truth": R},
    "ragas, messages": {
        "user_input": [{"content": Q, "type": "human"}, {"content": A, "type": "ai", "tool_calls": None}],
        "retrieved_contexts": C, "reference": R,
    },
    "DeepEval": {"input": Q, "actual_output": A, "expected_output": R, "retrieval_context": C, "context": None},
    "DeepEval, test run": {"name": "case", "input": Q, "actualOutput": A, "expectedOutput": R, "retrievalContext": C},
    "DeepEval, sources": {  # the `dataset_id` is the user's; rows with it were items of Langfuse, without answers
        "input": Q, "actual_output": A, "expected_output": R, "dataset_id": "d",
        "retrieval_context": [{"context": text} for text in C],
    },
    "DeepEval, conversation": {
        "scenario": None, "expected_outcome": R,
        "turns": [{"role": "user", "content": Q}, {"role": "assistant", "content": A, "retrieval_context": C}],
    },
    "Phoenix, experiment": {
        "example_id": hashed_id(Q), "repetition_number": 1, "input": {"frage": Q},
        "reference_output": {"answer": R}, "output": {"answer": A, "contexts": C}, "error": None,
    },
    "MLflow": {
        "inputs": {"question": Q}, "outputs": {"response": A, "context": C}, "expectations": {"expected_response": R},
    },
    "MLflow, results": {
        "trace_id": "tr-1", "expected_response/value": R, "request": {"question": Q},
        "response": {"answer": A, "contexts": C}, "trace_metadata": "m", "state": "OK",
    },
    "Inspect": {
        "id": hashed_id(Q), "epoch": 1, "input": Q, "target": R, "output": {"completion": A, "choices": []},
        "metadata": {"context": C},
    },
    "Phoenix": {
        "attributes.input.value": Q, "attributes.output.value": A, "reference": R,
        "attributes.retrieval.documents": [{"document.content": text} for text in C],
    },
    "Langfuse, experiment": {
        "item": {"id": hashed_id(Q), "input": {"question": Q}, "expected_output": R}, "trace_id": "t",
        "output": {"answer": A, "contexts": C}, "evaluations": None,
    },
    "LangSmith": {
        "inputs": {"question": Q}, "outputs": {"answer": A, "contexts": C}, "reference_outputs": {"answer": R},
    },
    "LangSmith, flat": {"inputs.question": Q, "outputs.answer": A, "outputs.contexts": C, "reference.answer": R},
    "LangSmith, only key": {"inputs": {"frage": Q}, "outputs": {"output": A, "context": C}, "reference": {"answer": R}},
    "promptfoo": {
        "vars": {"question": Q, "context": C, "reference": R}, "response": {"output": A},
        "provider": {"id": "openai:m", "label": "m"}, "prompt": {"raw": "…", "label": "brief"},
    },
    "OpenAI evals": {"item": {"input": Q, "ideal": R, "contexts": C}, "sample": {"output_text": A}},
    "OpenAI evals, API": {
        "datasource_item": {"ideal": R, "contexts": C},
        "sample": {"input": CHAT, "output": [{"role": "assistant", "content": A}]},
    },
    "Vertex AI": {"prompt": Q, "response": A, "reference": R, "context": C},
    "AutoRAG": {
        "qid": hashed_id(Q), "query": Q, "generation_gt": [R], "retrieved_contents": C, "generated_texts": A,
    },
    "common names": {"query": Q, "output": A, "ground_truth": R, "documents": C},
}  # fmt: skip
"""One case in the schema of each tool."""


def cases(tmp_path: Path, rows: Any, name: str = "f.jsonl", **options: Any) -> list[Case]:
    text = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
    return list(read_cases(CaseSource(write(tmp_path / name, text), **options)))


@pytest.mark.parametrize("tool", SAME)
def test_every_tool_gives_the_same_case(tmp_path: Path, tool: str) -> None:
    (case,) = cases(tmp_path, [SAME[tool]])
    assert (case.query_id, case.question, case.answer, case.reference) == (hashed_id(Q), Q, A, R)
    assert case.contexts == tuple((None, text) for text in C)
    assert case.config == ("m brief" if tool == "promptfoo" else "")


def test_rows_of_trulens_and_examples_of_langsmith(tmp_path: Path) -> None:
    row = {"app_id": "h", "app_name": "RAG", "app_version": "v2", "record_id": "r", "input": Q, "output": A}
    (case,) = cases(tmp_path, [row])
    assert (case.question, case.answer, case.config, case.query_id) == (Q, A, "v2", hashed_id(Q))
    for outputs in ({"answer": R}, {"own": R}):
        (case,) = cases(tmp_path, [{"id": "e", "dataset_id": "d", "inputs": {"frage": Q}, "outputs": outputs}])
        assert (case.query_id, case.question, case.answer, case.reference) == ("e", Q, None, R)
    (case,) = cases(tmp_path, "node_id,input.question,output.answer\ne,Who pays?,Owners pay.\n", "phoenix.csv")
    assert (case.query_id, case.question, case.answer, case.reference) == ("e", Q, None, R)


@pytest.mark.parametrize(
    "stated", [{"input": Q, "expectedOutput": R}, {"input": {"question": Q}, "expectedOutput": {"answer": R}}]
)
def test_items_of_a_dataset_of_langfuse(stated: dict[str, Any], tmp_path: Path) -> None:
    (case,) = cases(tmp_path, [{"id": "i", "status": "ACTIVE", "datasetId": "d", **stated}])
    assert (case.query_id, case.question, case.answer, case.reference) == ("i", Q, None, R)


def test_rows_of_langsmith_that_may_be_examples_are_counted(tmp_path: Path) -> None:
    row = {"inputs": {"question": Q}, "outputs": {"answer": A}}
    for more, columns, count in (({}, {}, 1), ({"error": None}, {}, 0), ({}, {"reference": "outputs.answer"}, 0)):
        cases(tmp_path, [{**row, **more}])
        survey = survey_of(CaseSource(str(tmp_path / "f.jsonl"), columns))
        assert survey.counts == ({"only outputs": 1} if count else {})


def test_outputs_that_are_a_text_are_the_answer(tmp_path: Path) -> None:
    rows = [{"inputs": {"question": Q}, "outputs": A}, {"inputs": {"question": Q}, "outputs": A, "expectations": {}},
            {"example_id": "e", "input": {"question": Q}, "output": A, "reference_output": {}},
            {"example_id": "e", "input": Q, "output": A, "reference_output": R},
            {"trace_id": "t", "request": Q, "response": A, "trace_metadata": {}}]  # fmt: skip
    assert [(case.question, case.answer) for row in rows for case in cases(tmp_path, [row])] == [(Q, A)] * 5
    (case,) = cases(tmp_path, [{"example_id": "e", "input": Q, "output": R, "metadata": {}}])
    assert (case.question, case.answer, case.reference) == (Q, None, R)


def test_the_retrieved_context_that_mlflow_expects_is_relevant(tmp_path: Path) -> None:
    expected = {"expected_retrieved_context": [{"doc_uri": "d1"}, {"doc_uri": "d2"}]}
    (case,) = cases(tmp_path, [{"inputs": {"question": Q}, "expectations": expected}])
    assert case.relevant == ("d1", "d2")


@pytest.mark.parametrize("tool", SAME)
def test_json_arrays_csv_and_parquet_hold_the_same_cases(tmp_path: Path, tool: str) -> None:
    rows = [SAME[tool], {**SAME[tool], "note": "short"}]
    expected = [case.__dict__ | {"line": 0} for case in cases(tmp_path, rows)]
    lines = {
        "array.json": json.dumps(rows, indent=2),
        "json.csv": _csv(rows, json.dumps),
        "literals.csv": _csv(rows, str),  # as ragas' to_csv writes lists
    }
    for name, text in lines.items():
        assert [case.__dict__ | {"line": 0} for case in cases(tmp_path, text, name)] == expected, name
    table = pa.Table.from_pylist([{"note": None, **row} for row in rows])
    pq.write_table(table, tmp_path / "t.parquet")
    for name, writer in (("stream.arrow", pa.ipc.new_stream), ("file.arrow", pa.ipc.new_file)):
        with writer(str(tmp_path / name), table.schema) as sink:
            sink.write_table(table)
    for name in ("t.parquet", "stream.arrow", "file.arrow"):
        read = list(read_cases(CaseSource(str(tmp_path / name))))
        assert [case.__dict__ | {"line": 0} for case in read] == expected, name
        assert [case.line for case in read] == [1, 2], name


def _csv(rows: list[dict[str, Any]], written: Any) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, ["note", *rows[0]])
    writer.writeheader()
    writer.writerows([{key: value if isinstance(value, str) or value is None else written(value)
                       for key, value in row.items()} for row in rows])  # fmt: skip
    return text.getvalue()


def test_all_texts_of_a_content_of_adk_count_and_thoughts_do_not(tmp_path: Path) -> None:
    parts = [{"thought": True, "text": "Hm."}, {"text": "Ann "}, {"functionCall": {"name": "f"}}, {"text": "did."}]
    for key, name in (("userContent", "finalResponse"), ("user_content", "final_response")):
        talk = [{key: {"parts": [{"text": "Who "}, {"text": "did it?"}]}, name: {"parts": parts}}]
        (case,) = cases(tmp_path, [{"evalId": "e", "conversation": talk}])
        assert (case.question, case.reference) == ("Who did it?", "Ann did.")


def test_lists_are_found_in_objects_and_keep_their_lines(tmp_path: Path) -> None:
    run = {"evalId": "e", "results": {"version": 3, "results": [SAME["promptfoo"]] * 2}}
    path = write(tmp_path / "p.json", json.dumps(run, indent=1))
    lines = [line for line, _ in rows_in(path)]
    text = Path(path).read_text().splitlines()
    assert [text[line - 1].strip() for line in lines] == ["{", "{"]
    assert lines[0] == next(place for place, line in enumerate(text, 1) if '"results": [' in line) + 1
    saved = write(tmp_path / "d.json", json.dumps({"testRunData": {"testCases": [SAME["DeepEval, test run"]]}}))
    assert len(list(read_cases(CaseSource(saved)))) == 1
    run = {"testRunData": {"testCases": [], "conversationalTestCases": [SAME["DeepEval, conversation"]]}}
    assert len(list(read_cases(CaseSource(write(tmp_path / "c.json", json.dumps(run)))))) == 1


def test_ids_of_contexts_and_relevant_documents(tmp_path: Path) -> None:
    ragas = {**SAME["ragas"], "retrieved_context_ids": ["d1", 2], "reference_context_ids": ["d1"]}
    (case,) = cases(tmp_path, [ragas])
    assert (case.contexts, case.relevant) == ((("d1", C[0]), ("2", C[1])), ("d1",))
    source = CaseSource(str(tmp_path / "f.jsonl"))
    assert [row for batch in read_qrels(source) for row in batch.to_pylist()] == [
        {"query_id": hashed_id(Q), "doc_id": "d1", "grade": 1.0, "line": 1}
    ]
    survey = survey_of(source)
    assert (survey.has_ids, survey.judged, survey.repeated) == (True, 1, 0)


def test_alternatives_among_relevant_documents_are_refused_or_flattened_and_counted(tmp_path: Path) -> None:
    row = {"qid": "q", "query": Q, "retrieval_gt": [["a", "b"], ["c"]], "generation_gt": [R, "Owner."]}
    with pytest.raises(InputError, match=r"f\.jsonl:1: relevant: one of several documents is enough.*groups: flatten"):
        cases(tmp_path, [row])
    (case,) = cases(tmp_path, [row], flatten=True)
    assert (case.relevant, case.reference) == (("a", "b", "c"), R)
    survey = survey_of(CaseSource(str(tmp_path / "f.jsonl"), flatten=True))
    assert list(survey.notes()) == [
        "in 1 row, alternatives among the relevant documents all count as relevant",
        "1 row with several reference answers; the first one is used",
    ]


def test_contexts_that_deepeval_joins_are_split_and_counted(tmp_path: Path) -> None:
    row = {"input": Q, "actual_output": A, "retrieval_context": "|".join(C)}
    (case,) = cases(tmp_path, [row])
    assert case.contexts == tuple((None, text) for text in C)
    assert next(survey_of(CaseSource(str(tmp_path / "f.jsonl"))).notes()).startswith("contexts of 1 row are one text")
    marked = {**row, "retrieval_context": f"deepeval_source=kb.md,deepeval_context={C[0]}|{C[1]}"}
    assert cases(tmp_path, [marked])[0].contexts == (("kb.md", C[0]), (None, C[1]))


def test_a_conversation_ends_with_its_last_question(tmp_path: Path) -> None:
    talk = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}, {"type": "human", "content": Q}]
    (case,) = cases(tmp_path, [{"user_input": talk, "response": A}])
    content = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello"}]
    assert (case.question, case.answer, json.loads(case.attributes["history"])) == (Q, A, content)
    assert case.query_id != hashed_id(Q)


@pytest.mark.parametrize("calls", [[{"name": "pay", "args": {"who": "owner"}}], []])
def test_the_steps_of_a_conversation_of_ragas_are_the_tool_calls_in_its_messages(
    tmp_path: Path, calls: list[Any]
) -> None:
    talk = [{"content": Q, "type": "human"}, {"content": "", "type": "ai", "tool_calls": calls},
            {"content": "paid", "type": "tool"}, {"content": A, "type": "ai", "tool_calls": None}]  # fmt: skip
    row = {"user_input": talk, "reference_tool_calls": [{"name": "pay", "args": {"who": "owner"}}]}
    for name, text in (("f.jsonl", json.dumps(row)), ("f.csv", _csv([row], json.dumps))):
        (case,) = cases(tmp_path, text, name)
        assert (case.answer, case.steps) == (A, case.expected_steps if calls else ()), name


def test_answers_are_empty_null_or_nan_and_contexts_may_be_missing(tmp_path: Path) -> None:
    rows = [{"question": str(n), "answer": answer} for n, answer in enumerate(["a", "", "  ", None, float("nan")])]
    read = cases(tmp_path, [*rows, {"question": "x"}])
    assert [case.answer for case in read] == ["a", *[None] * 5]
    assert {case.contexts for case in read} == {None}
    replayed = [
        row for batch in read_replayed(CaseSource(str(tmp_path / "f.jsonl")), None) for row in batch.to_pylist()
    ]
    assert [row["answer"] for row in replayed] == ["a", *[None] * 5]


def test_paths_of_the_user_come_first(tmp_path: Path) -> None:
    rows = [{"in": {"q": Q}, "my col": A, "docs": [{"body": text} for text in C]}]
    columns = {"question": "in.q", "answer": "my col", "contexts": "docs[].body"}
    (case,) = cases(tmp_path, rows, columns=columns)
    assert (case.question, case.answer, case.contexts) == (Q, A, tuple((None, text) for text in C))


def test_columns_name_the_id_where_a_row_has_different_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", '{"question": "a", "qid": "3", "query_id": "2"}\n')
    (case,) = queries_in(CaseSource(path, {"id": "qid"}))
    assert (case.query_id, case.attributes) == ("3", {"query_id": "2"})


def test_several_systems_share_a_query_and_its_attributes(tmp_path: Path) -> None:
    rows = [{**SAME["common names"], "config": name, "language": "en", "cost": 3} for name in ("a", "b")]
    cases(tmp_path, rows)
    (query,) = queries_in(CaseSource(str(tmp_path / "f.jsonl")))
    assert query.attributes == {"language": "en", "cost": "3"}
    assert survey_of(CaseSource(str(tmp_path / "f.jsonl"))).configs == ("a", "b")


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("f.jsonl", '{"name": "a"}', {}, "f.jsonl:1: no key of these rows is known as the question; name it: columns:"),
    ("f.jsonl", '{"inputs": {"a": "x", "b": "y"}, "outputs": {}}', {}, "keys: inputs.a, inputs.b"),
    ("f.jsonl", '{"question": "a"}\n{"question": ""}', {}, "f.jsonl:2: has no question"),
    ("f.jsonl", '{"question": "a", "qid": 1, "query_id": "1"}\n{"question": "b", "qid": "3", "query_id": "2"}', {},
     "f.jsonl:2: has different ids, query_id '2' and qid '3'; name the one to use: columns: {id: query_id}"),
    ("f.jsonl", '{"question": "a"}\n[1]', {}, "f.jsonl:2: expected a JSON object, found list"),
    ("f.csv", "question,[echo] {{question}},Status,Score,Named Scores,Grader Reason,Comment\na,b,PASS,1,,,\n", {},
     "is promptfoo's table"),
    ("f.yaml", "evalId: e\nresults: {}\n", {}, "is YAML; write JSON instead"),
    ("f.jsonl", '{"question": {"a": "b"}}', {}, "columns: {question: PATH}, such as one of question.a"),
    ("f.csv", 'input,output\n"{""a"": ""b""}",c\n', {}, "f.csv:2: question: expected a text, found an object"),
    ("f.jsonl", '{"question": "a", "contexts": [{"id": 3}]}', {}, "f.jsonl:1: contexts.0: has no text; its keys: id"),
    ("f.jsonl", '{"question": "a", "contexts": [null]}', {}, "contexts.0: expected a text or an object, found None"),
    ("f.jsonl", '{"question": "a", "contexts": ["b"], "context_ids": []}', {}, "has 1 context and 0 ids of contexts"),
    ("f.jsonl", '{"question": "a", "answr": "b"}', {"columns": {"answer": "anwer"}},
     "columns: no row has 'anwer' for the answer; did you mean 'answr'?"),
    ("f.csv", 'question,contexts\na,"[\'b\' \'c\']"\n', {}, "f.csv:2: holds the printed form of a NumPy array"),
    ("f.csv", 'question,answer\n"a\nb",c\nd\n', {}, "f.csv:4: has 1 cells, and the header 2"),
    ("f.csv", 'question,answer\na,"b\n', {}, "f.csv:2: is not valid CSV"),
    ("f.csv", "question,question\na,b\n", {}, "f.csv:1: has two columns named 'question'"),
    ("f.json", '[{"question": "a"},\n {"question": }]', {}, "f.json:2: is not valid JSON"),
    ("f.json", '[{"question": "a"},\n 3]', {}, "f.json:2: expected a JSON object, found int"),
    ("f.json", '{\n"a": {"b": 1}}', {}, "holds no list of rows that rankbeam knows; its keys: a"),
    ("f.json", '{"testRunData": {"testCases": [{"input": "a"}], "conversationalTestCases": [{"turns": []}]}}', {},
     "has test cases and conversations"),
    ("f.json", '{"question": {"0": "a"}, "answer": {"0": "b"}}', {}, "f.json: holds one object of columns instead of"),
    ("f.json", '{\n"question": ["a", "b"], "contexts": [["c"], []]}', {}, "f.json: holds one object of columns"),
    ("f.jsonl", " \n", {}, "the file is empty; rows of questions and answers were expected"),
    ("f.jsonl", '{"question": "\\ud83d"}', {}, "f.jsonl:1: holds half a character"),
    ("f.csv", "question,contexts\na,\"['b', 'c\"\n", {}, "f.csv:2: contexts: begin as a list does"),
    ("f.csv", 'question,contexts\na,"[""\\ud83d""]"\n', {}, "f.csv:2: holds half a character"),
    ("f.json", '{"reference": {"parts": [{"text": "\\ud83d"}]}, "prompt": "a", "response": "b"}', {}, "holds half a"),
    ("f.jsonl", f'{{"question": "a", "n": {"9" * 5_000}}}\n{{}}\n', {}, "f.jsonl:1: is not valid JSON: it holds"),
    ("f.json", f'[{{"question": "a", "n":\n {"9" * 5_000}}}]', {}, "f.json: is not valid JSON: it holds a number"),
    ("f.jsonl", '{"question": "a", "b": ' + '["a",' * 100_000 + "\n", {}, "f.jsonl:1: is not valid JSON"),
    ("f.jsonl", '{"vars": {"question": "a"}, "response": {}, "provider": 1}', {}, "f.jsonl:1: config: "),
    ("f.jsonl", '{"prompt": "a", "response": "b", "responses": 1}', {}, "f.jsonl:1: is not a row as Vertex AI"),
    ("f.jsonl", '{"eval_id": "c", "conversation": [{"user_content": 1, "intermediate_data": {"tool_uses": "x"}}]}', {},
     "f.jsonl:1: is not a row as ADK writes it: AttributeError"),
    ("f.jsonl", '{"prompt": "a", "response": "b", "intermediate_events": [{"content": "x"}]}', {}, "it: Attribute"),
]  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
def test_systems_that_answered_one_question_are_one_query_on_one_line_too(indent: int | None, tmp_path: Path) -> None:
    """JSON without line breaks, as json.dump writes it, was refused: its query was given more than once."""
    rows = [{"question": "who?", "answer": name, "config": name, "reference": "Ann"} for name in "ab"]
    (case,) = queries_in(CaseSource(write(tmp_path / "f.json", json.dumps(rows, indent=indent))))
    assert (case.question, case.reference) == ("who?", "Ann")
    path = write(tmp_path / "g.json", json.dumps([*rows, {**rows[0], "reference": "Bob"}], indent=indent))
    with pytest.raises(InputError, match="has two questions or two reference answers"):
        list(queries_in(CaseSource(path)))


@pytest.mark.parametrize(("name", "text", "options", "expected"), WRONG)
def test_what_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        for _ in queries_in(CaseSource(write(tmp_path / name, text), **options)):
            pass
    assert expected in str(caught.value)


def test_a_question_with_two_reference_answers_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "question,answer,reference,config\na,b,c,x\na,b,d,y\n")
    with pytest.raises(
        InputError, match=r"f\.csv:3: query .* has two questions or two reference answers \(also at line 2\)"
    ):
        list(queries_in(CaseSource(path)))


json_values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)
                           | st.dictionaries(st.text(), inner), max_leaves=8)  # fmt: skip


@pytest.mark.long
@given(
    items=st.lists(st.dictionaries(st.text(), json_values), min_size=1, max_size=5),
    indent=st.sampled_from([None, 0, 3]),
)
def test_items_of_an_array_are_those_of_a_parser(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, Any]], indent: int | None
) -> None:
    text = json.dumps(items, indent=indent)
    read = list(rows_in(write(tmp_path_factory.mktemp("array") / "f.json", text)))
    assert [value for _, value in read] == items
    lines = text.split("\n")
    assert all("{" in lines[line - 1] for line, _ in read)


@pytest.mark.parametrize(("user", "final"), [("user_content", "final_response"), ("userContent", "finalResponse")])
def test_each_turn_of_an_eval_case_of_adk_is_a_query_with_its_history(tmp_path: Path, user: str, final: str) -> None:
    first = {user: {"parts": [{"text": "Hi"}, {"text": "!"}]}, final: {"parts": [{"text": "Hello"}]}}
    opening, case = cases(tmp_path, [{"eval_id": "e1", "conversation": [first, {user: PARTS, final: DONE}]}])
    assert (opening.query_id, opening.question, opening.reference) == ("e1", "Hi!", "Hello")
    assert (opening.attributes["turn"], opening.attributes.get("history")) == ("1", None)
    assert (case.query_id, case.question, case.reference) == ("e1:2", Q, R)
    assert (case.attributes["conversation"], case.attributes["turn"]) == ("e1", "2")
    history = [{"role": "user", "text": "Hi!"}, {"role": "assistant", "text": "Hello"}]
    assert json.loads(case.attributes["history"]) == history


def test_a_folder_is_refused_with_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, and rows are read from one file; name a file in it"):
        survey_of(CaseSource(str(tmp_path)))


def test_a_page_of_html_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="begins with '<', as HTML and XML do"):
        cases(tmp_path, "<html>\n<body>Log in</body></html>\n")
