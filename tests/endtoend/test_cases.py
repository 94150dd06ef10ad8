"""Files of other tools through the command line: values equal those of the same data in rankbeam's own files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write
from support.traces import message, otlp, span

from rankbeam.transforms.clients.formats.syntax.ids import hashed_id
from rankbeam.transforms.clients.local_folders import FOLDER

DATA = [
    ("Who pays the invoices?", "Owners pay. Guests do, too.", ["Owners pay the invoices.", "It rains."], "Owners pay."),
    ("How does the door open?", "It opens with a code.", ["The door opens with a key or a code."], "With a code."),
    ("Is there a garden?", None, ["The garden is green."], "Yes."),
    ("What is lost?", "A key is lost.", [], "A key."),
]  # fmt: skip
METRICS = ["Faithfulness", "ClaimRecall", "ContextRecall", "AnswerRelevance"]
Values = dict[tuple[str, str], tuple[float | None, str]]

FILES: dict[str, Any] = {
    "ragas.jsonl": lambda q, a, c, r: {"user_input": q, "response": a, "retrieved_contexts": c, "reference": r},
    "deepeval.json": lambda q, a, c, r: {
        "input": q, "actual_output": a, "retrieval_context": c, "expected_output": r
    },
    "promptfoo.json": lambda q, a, c, r: {
        "vars": {"question": q, "context": c, "reference": r}, "response": {"output": a}, "provider": {"id": "p"}
    },
    "langsmith.csv": lambda q, a, c, r: {
        "inputs": {"question": q}, "outputs": {"output": a, "contexts": c}, "reference_outputs": {"answer": r}
    },
    "mlflow.jsonl": lambda q, a, c, r: {
        "inputs": {"question": q}, "outputs": {"response": a, "contexts": c}, "expectations": {"expected_response": r}
    },
    "openai.jsonl": lambda q, a, c, r: {
        "item": {"question": q, "ideal": r, "contexts": c}, "sample": {"output_text": a}
    },
    "autorag.parquet": lambda q, a, c, r: {
        "qid": hashed_id(q), "query": q, "generated_texts": a, "retrieved_contents": c, "generation_gt": [r],
        "retrieved_ids": [f"d{place}" for place, _ in enumerate(c)],
    },
    "phoenix.jsonl": lambda q, a, c, r: {
        "attributes.input.value": q, "attributes.output.value": a, "reference": r,
        "attributes.retrieval.documents": [{"document.content": text} for text in c],
    },
    "vertex.jsonl": lambda q, a, c, r: {"prompt": q, "response": a, "contexts": c, "reference": r},
}  # fmt: skip
"""The rows of each file."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Values:
    folder = tmp_path_factory.mktemp("own")
    lines = [{"_id": hashed_id(q), "text": q, "reference": r} for q, _, _, r in DATA]
    write(folder / "queries.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    answers = [{"query_id": hashed_id(q), "answer": a, "contexts": c} for q, a, c, _ in DATA if a is not None]
    write(folder / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in answers))
    dataset = {"queries": "queries.jsonl", "answers": "reference"}
    return evaluated(folder, dataset, {"type": "replay", "path": "answers.jsonl"})


def evaluated(
    folder: Path, dataset: Mapping[str, Any], answers: Mapping[str, Any], metrics: Sequence[str] = METRICS
) -> Values:
    experiment = {
        "name": "e", "dataset": dataset, "services": {"overlap": {"type": "lexical"}},
        "judge": {"service": "overlap"}, "configurations": [{"name": "bot", "answers": answers}],
        "metrics": list(metrics), "max_failure_rate": 0.5, "statistics": {"replicates": 0}, "output": {"path": "out"},
    }  # fmt: skip
    done = rankbeam("evaluate", write(folder / "e.yaml", yaml.safe_dump(experiment)))
    assert done.status == 0, done.stderr
    return values(folder / "out")


def values(out: Path) -> Values:
    return {
        (row["query_id"], entry["metric"]): (entry["value"], entry["status"] or row["status"])
        for row in pq.read_table(out / "query_metrics").to_pylist()
        for entry in row["metrics"]
    }


def written(folder: Path, name: str) -> str:
    rows = [FILES[name](*row) for row in DATA]
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(".csv"):
        header = list(rows[0])
        lines = [",".join('"' + json.dumps(row[key]).replace('"', '""') + '"' for key in header) for row in rows]
        write(path, "\n".join([",".join(header), *lines]) + "\n")
    elif name.endswith(".jsonl"):
        write(path, "".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        write(path, json.dumps({"results": {"results": rows}} if "promptfoo" in name else rows, indent=2))
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [*list(FILES)[1:2], *in_campaigns(*(name for name in FILES if "deepeval" not in name))]
)
def test_values_are_those_of_the_same_data_in_our_own_files(tmp_path: Path, name: str, expected: Values) -> None:
    written(tmp_path, name)
    answers = {"type": "replay", **({"config": "p"} if "promptfoo" in name else {})}
    assert evaluated(tmp_path, {"file": name}, answers) == expected


def _part(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


DATASETS: dict[str, Any] = {
    "benchmark.json": [{"Question": q, "Answer": r, "item_id": hashed_id(q), "context": c} for q, _, c, r in DATA],
    "flat.json": [
        {"query": q, "reference": r, "expected_tool_use": [], "item_id": hashed_id(q)} for q, _, _, r in DATA
    ],
    "agent.evalset.json": {
        "evalSetId": "s",
        "evalCases": [
            {"evalId": hashed_id(q), "conversation": [{"userContent": _part(q), "finalResponse": _part(r)}]}
            for q, _, _, r in DATA
        ],
    },
}
"""Datasets without answers: both files of Auto RAG Eval, and an eval set of ADK."""


@pytest.mark.parametrize("name", [*list(DATASETS)[:1], *in_campaigns(*list(DATASETS)[1:])])
def test_values_over_datasets_without_answers_are_the_same(tmp_path: Path, name: str, expected: Values) -> None:
    write(tmp_path / name, json.dumps(DATASETS[name], indent=1))
    answers = [{"query_id": hashed_id(q), "answer": a, "contexts": c} for q, a, c, _ in DATA if a is not None]
    write(tmp_path / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in answers))
    assert evaluated(tmp_path, {"file": name}, {"type": "replay", "path": "answers.jsonl"}) == expected


@pytest.mark.campaign
def test_values_of_results_of_adk_are_the_same(tmp_path: Path, expected: Values) -> None:
    def invocation(question: str, answer: str | None) -> dict[str, Any]:
        return {"userContent": _part(question), **({} if answer is None else {"finalResponse": _part(answer)})}

    results = [
        {"evalId": hashed_id(q), "evalMetricResultPerInvocation": [
            {"actualInvocation": invocation(q, a), "expectedInvocation": invocation(q, r)}
        ]} for q, a, _, r in DATA
    ]  # fmt: skip
    write(tmp_path / "results.json", json.dumps({"evalCaseResults": results}))
    metrics = ["ClaimRecall", "AnswerRelevance"]  # these results have no contexts
    known = {key: value for key, value in expected.items() if key[1].partition("(")[0] in metrics}
    assert evaluated(tmp_path, {"file": "results.json"}, {"type": "replay"}, metrics) == known


def _langfuse(q: str, a: str | None, c: list[str]) -> list[dict[str, Any]]:
    times = {"startTime": "2026-11-20T10:00:00Z", "endTime": "2026-11-20T10:00:01Z"}
    search = {"id": "s", "type": "RETRIEVER", "output": [{"text": text} for text in c], **times}
    return [{"id": hashed_id(q), "timestamp": times["startTime"], "input": q, "output": a, "observations": [search]}]


def _phoenix(q: str, a: str | None, c: list[str]) -> list[dict[str, Any]]:
    shared = {"start_time": "2026-11-20T10:00:00Z", "end_time": "2026-11-20T10:00:01Z"}
    documents = {"retrieval.documents": [{"document.content": text} for text in c]}
    place = {"context.trace_id": hashed_id(q), **shared}
    root = {**place, "context.span_id": "r", "attributes": {"input.value": q, "output.value": a}}
    kind = {"openinference.span.kind": "RETRIEVER"}
    return [root, {**place, "context.span_id": "s", "parent_id": "r", "attributes": {**documents, **kind}}]


def _otel(q: str, a: str | None, c: list[str]) -> list[dict[str, Any]]:
    documents = {"gen_ai.retrieval.documents": json.dumps([{"content": text} for text in c])}
    known = {"gen_ai.input.messages": message("user", q)}
    known |= {} if a is None else {"gen_ai.output.messages": message("assistant", a)}
    name = hashed_id(q)
    return [otlp(span(name, 0, 0, known), span(name, 1, 0, documents))]


def _agent_events(q: str, a: str | None, c: list[str]) -> list[dict[str, Any]]:
    shared = {"timestamp": "2026-11-20 10:00:00 UTC", "invocation_id": hashed_id(q), "session_id": "s", "agent": "bot"}
    result = {"tool": "search", "result": {"results": [{"text": text} for text in c]}}
    events = [("USER_MESSAGE_RECEIVED", {"text_summary": q}), ("TOOL_STARTING", {"tool": "search", "args": {}})]
    events += [("TOOL_COMPLETED", result), *([] if a is None else [("AGENT_RESPONSE", {"response": a})])]
    return [
        {**shared, "span_id": kind[:4], "event_type": kind, "content": json.dumps(content)} for kind, content in events
    ]


@pytest.mark.parametrize("rows_of", [_otel, *in_campaigns(_langfuse, _phoenix, _agent_events)])
def test_values_of_traces_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of: Any, expected: Values
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    lines = [row for q, a, c, _ in DATA for row in rows_of(q, a, c)]
    write(tmp_path / "spans.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    metrics = ["Faithfulness", "AnswerRelevance"]
    traces = {"path": "spans.jsonl", "documents": "results"}
    known = {key: value for key, value in expected.items() if key[1].partition("(")[0] in metrics}
    assert evaluated(tmp_path, {"traces": traces}, {"type": "traces"}, metrics) == known


def test_a_file_is_judged_without_yaml_and_copied_with_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "ragas.jsonl")
    done = rankbeam("judge", "ragas.jsonl", "-m", "Faithfulness", "--service", "lexical", "--output", "out")
    metric = "Faithfulness(judge=lexical)"
    assert metric in done.stdout, done.stderr
    result = values(Path("out"))
    for name in FILES:  # all have the same queries, and so the values of the run
        written(tmp_path, name)
        original = Path(name).read_bytes()
        named = [] if name == "ragas.jsonl" else ["--configuration", "ragas"]
        copied = rankbeam("export", "out", "--like", name, *named, "--output", f"copies/{name}")
        assert (copied.status, copied.stdout, copied.stderr) == (0, f"copies/{name}\n", "")
        assert Path(name).read_bytes() == original
        before, after = rows(name), rows(f"copies/{name}")
        added = [{key: row[key] for key in row if key not in first} for first, row in zip(before, after, strict=True)]
        assert [{key: row[key] for key in first} for first, row in zip(before, after, strict=True)] == before
        for (q, answer, *_), row in zip(DATA, added, strict=True):
            value, status = result[hashed_id(q), metric]
            assert (float(row[metric]) if row[metric] not in (None, "") else None) == value
            assert (row["rankbeam_status"] == "ok") == (value is not None)
            assert answer is not None or ("empty answer" in row["rankbeam_status"] and status == "failed")
    again = rankbeam("export", "out", "--like", name, *named, "--output", f"copies/{name}")
    assert (again.status, "exists already" in again.stderr) == (2, True)


@pytest.mark.campaign
@pytest.mark.parametrize("name", FILES)
def test_any_file_is_judged_without_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, name)
    done = rankbeam("judge", name, "-m", "Faithfulness", "--service", "lexical", "--output", "out")
    assert "Faithfulness(judge=lexical)" in done.stdout, done.stderr
    copied = rankbeam("export", "out", "--like", name, "--output", f"copies/{name}")
    assert (copied.status, copied.stdout, copied.stderr) == (0, f"copies/{name}\n", "")


def rows(path: str) -> list[dict[str, Any]]:
    from rankbeam.transforms.clients.formats.cases.objects import rows_in

    return [value for _, value in rows_in(path)]


def test_init_writes_an_experiment_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "ragas.jsonl")
    created = rankbeam("init", "e.yaml", "--from", "ragas.jsonl")
    assert created.status == 0, created.stderr
    assert (
        "# 4 rows (JSON lines, ragas): 3 answers, 4 with contexts, 4 with a reference answer."
        in Path("e.yaml").read_text()
    )
    assert rankbeam("validate", "e.yaml").status == 0
    Path("ragas.jsonl").rename(".latest_test_run.json")  # DeepEval begins names of files with a dot
    assert rankbeam("init", "hidden.yaml", "--from", ".latest_test_run.json").status == 0
    assert "name: latest_test_run" in Path("hidden.yaml").read_text()


WRONG = [
    (["judge", "no.jsonl", "--service", "lexical"], "no.jsonl: no such file"),
    (["judge", "ragas.jsonl", "--service", "lexicl"], "--service: unknown type 'lexicl'; did you mean 'lexical'?"),
    (["judge", "ragas.jsonl", "--service", "lexical", "--column", "answer"], "--column 'answer': write NAME=KEY"),
    (["judge", "ragas.jsonl", "--service", "lexical", "--column", "anser=x"], "names 'anser'; did you mean 'answer'?"),
    (["judge", "questions.jsonl", "--service", "lexical"], "the key response; the first row has: user_input; name"),
    (["init", "e.yaml", "--from", "questions.jsonl"], "the key response; the first row has: user_input; name"),
    (["init", "e.yaml", "--from", "qrels.txt"], "--from needs judgements and at least one run"),
]


@pytest.mark.parametrize(("command", "expected"), WRONG)
def test_wrong_commands_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "ragas.jsonl")
    write(Path("questions.jsonl"), '{"user_input": "Who?"}\n')
    write(Path("qrels.txt"), "q1 0 d1 1\n")
    done = rankbeam(*command)
    assert (done.status, expected in done.stderr) == (2, True), done.stderr


def test_two_answers_of_one_system_are_refused_with_both_lines(tmp_path: Path) -> None:
    write(tmp_path / "f.csv", "question,answer\na,b\nc,d\na,e\n")
    experiment = write(
        tmp_path / "e.yaml",
        "name: e\ndataset: {file: f.csv}\nconfigurations: [{name: a, answers: {type: replay}}]\n"
        "services: {j: {type: lexical}}\njudge: {service: j}\nmetrics: [AnswerRelevance]\noutput: {path: out}\n",
    )
    done = rankbeam("evaluate", experiment)
    assert done.status == 2
    assert f"f.csv:4: query '{hashed_id('a')}' has two answers (also at line 2); keep one" in done.stderr
