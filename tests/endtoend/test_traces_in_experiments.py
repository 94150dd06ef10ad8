"""Traces inside an experiment: the same tables as of `rankbeam traces`, and what is refused or counted."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import runs
from support.campaigns import in_campaigns
from support.cli import Outcome, rankbeam
from support.traces import attributes, message, otlp, span

import rankbeam as rankbeam_package
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.traces import UNKNOWN

METRICS = ["AnswerRelevance", "Faithfulness"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))


def spans(number: int) -> list[dict[str, Any]]:
    name = f"{number:032x}"
    texts = {"input.value": f"Who pays invoice {number}?", "output.value": f"Owners pay invoice {number}."}
    documents = [{"document.id": f"d{number % 5}", "document.content": "Owners pay invoices. " * (number % 3)}]
    retrieved = {"openinference.span.kind": "RETRIEVER", "retrieval.documents": documents}
    texts = texts if number % 4 else {**texts, "output.value": f"It rains on day {number}."}
    return [span(name, 0, number, {**texts, "session.id": f"s{number // 3}"}), span(name, 1, number, retrieved)]


def sources(folder: Path, *numbers: int) -> None:
    rows = [otlp(*spans(number), **{"service.version": f"v{number % 2}"}) for number in numbers]
    (folder / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def experiment(folder: Path, run_id: str, dataset: Any, answers: Any, **more: Any) -> str:
    text = yaml.safe_dump({
        "name": "t", "dataset": dataset, "services": {"judge": {"type": "lexical"}}, "judge": {"service": "judge"},
        "configurations": [{"name": "production", "answers": answers}], "metrics": METRICS,
        "slices": ["configuration"], "output": {"path": f"out-{run_id}"}, **more,
    })  # fmt: skip
    (folder / "e.yaml").write_text(text, encoding="utf-8")
    return str(folder / "e.yaml")


def evaluated(folder: Path, run_id: str, dataset: Any, answers: Any) -> Outcome:
    return rankbeam("evaluate", experiment(folder, run_id, dataset, answers), "--run-id", run_id)


def values(results: Results) -> tuple[list[Any], list[Any]]:
    by_query = {
        (row["query_id"], metric["metric"]): metric["value"]
        for row in results.table("query_metrics").to_pylist()
        for metric in row["metrics"]
    }
    names = ("slice", "metric", "mean", "ci_low", "ci_high", "queries", "clusters")
    means = [tuple(row[name] for name in names) for row in results.table("configuration_metrics").to_pylist()]
    return sorted(by_query.items()), sorted(means, key=str)


@pytest.mark.long
@pytest.mark.parametrize(
    ("dataset", "answers"),
    [
        ({"traces": "spans.jsonl"}, {"type": "traces"}),
        *in_campaigns(
            ({"traces": {"path": "spans.jsonl"}}, {"type": "traces", "path": "spans.jsonl"}),
            ({}, {"type": "traces", "path": "spans.jsonl"}),
        ),
    ],
)
def test_an_experiment_over_traces_has_the_tables_of_the_command(tmp_path: Path, dataset: Any, answers: Any) -> None:
    sources(tmp_path, *range(24))
    assert rankbeam("traces", str(tmp_path / "spans.jsonl"), "--output", str(tmp_path / "p")).status == 0
    runs.evaluated(tmp_path / "p" / "experiment.yaml", "r")
    done = evaluated(tmp_path, "own", dataset, answers)
    assert done.status == 0, done.stderr
    expected, own = (
        values(Results(str(tmp_path / "p" / "out"), "r")),
        values(Results(str(tmp_path / "out-own"), "own")),
    )
    assert len(expected[0]) == 48
    assert len({value for _, value in expected[0]}) > 2
    assert {mean[-1] for mean in expected[1]} >= {8}  # conversations
    assert own == expected
    assert "spans.jsonl: 24 of 24 traces became queries" in done.stderr


@pytest.mark.long
def test_labelled_queries_of_traces_are_answered_by_the_traces(tmp_path: Path) -> None:
    sources(tmp_path, *range(6))
    rows = [{"_id": f"{number:032x}", "text": f"Who pays invoice {number}?", "configuration": "x"} for number in (1, 3)]
    (tmp_path / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    answers = {"type": "traces", "path": "spans.jsonl", "redact": ["invoice"], "drop_self": True}
    done = evaluated(tmp_path, "r", {"queries": "labelled.jsonl"}, answers)
    assert done.status == 0, done.stderr
    assert "spans.jsonl: 4 answers to queries that are not evaluated" in done.stderr
    stored = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "cache").rglob("answers.jsonl"))
    assert "[redacted]" in stored
    assert "invoice" not in stored


@pytest.mark.long
def test_traces_are_read_once_until_they_change_and_identities_do_not_depend_on_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources(tmp_path, 0, 1, 2, 5)
    ids = []
    whole, sample = {"traces": "spans.jsonl"}, {"traces": {"path": "spans.jsonl", "sample": 3}}
    for run_id, dataset, reads in (("a", whole, True), ("b", whole, False), ("c", sample, True)):
        path = experiment(tmp_path, run_id, dataset, {"type": "traces"})
        done = rankbeam("validate", path)
        assert done.status == 0, done.stderr
        assert ("fetching the traces" in done.stderr) == reads
        ids.append(load_experiment(path).evaluation.configurations[0].config_id)
    sources(tmp_path, 0, 1, 2, 5, 7)
    monkeypatch.setenv(FOLDER, str(tmp_path / "elsewhere"))
    path = experiment(tmp_path, "d", whole, {"type": "traces"})
    assert "5 of 5 traces" in rankbeam("validate", path).stderr
    ids.append(load_experiment(path).evaluation.configurations[0].config_id)
    assert ids[0] == ids[1] == ids[3] != ids[2]


def test_missing_parts_of_traces_are_named(tmp_path: Path) -> None:
    sources(tmp_path, 1, 2)
    (tmp_path / "spans.jsonl").rename(tmp_path / "spans-00000-of-00002.jsonl")
    message = "spans-00000-of-00002.jsonl is one of several files, and others are not read: spans-00001-of-00002.jsonl"
    command = rankbeam("traces", str(tmp_path / "spans-*"), "--output", str(tmp_path / "out"))
    validated = rankbeam("validate", experiment(tmp_path, "r", {"traces": "spans-*"}, {"type": "traces"}))
    for outcome in (command, validated):
        assert (outcome.status, message in " ".join(outcome.stderr.split())) == (0, True), outcome.stderr


def test_spans_of_other_versions_of_the_conventions_are_counted_by_version(tmp_path: Path) -> None:
    known = {"gen_ai.input.messages": message("user", "Who?"), "gen_ai.output.messages": message("assistant", "Ann.")}
    exports = [otlp(span("a", 0, 0, known)), otlp(span("b", 0, 0, known)), otlp(span("c", 0, 0, known))]
    exports += [otlp(span("d", 0, 0, {"input.value": "Who?", "output.value": "Ann."}))]  # not of these conventions
    urls = ("1.37.0", "1.30.0", "2.0.0", "1.30.0")
    for export, url in zip(exports, urls, strict=True):
        export["resourceSpans"][0]["scopeSpans"][0]["schemaUrl"] = f"https://opentelemetry.io/schemas/{url}"
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in exports), encoding="utf-8")
    done = rankbeam("traces", str(tmp_path / "spans.jsonl"), "--output", str(tmp_path / "out"))
    other = "spans of another version of the GenAI conventions, of which known attributes are read:"
    assert done.stdout.splitlines()[1:-1] == [
        f"  4 {UNKNOWN}",
        f"  1 {other} https://opentelemetry.io/schemas/1.30.0", f"  1 {other} https://opentelemetry.io/schemas/2.0.0",
    ]  # fmt: skip


def test_older_names_logs_and_events_of_other_versions_are_counted_by_name(tmp_path: Path) -> None:
    known = {"input.value": "Who?", "output.value": "Ann."}
    url = "https://opentelemetry.io/schemas/1.30.0"
    details = attributes({"gen_ai.input.messages": message("user", "Who?")})
    log = {"eventName": "gen_ai.client.inference.operation.details", "traceId": "a", "spanId": "a-0"}
    log |= {"timeUnixNano": "1", "attributes": details}
    old_log = {**log, "eventName": "gen_ai.user.message", "traceId": "b", "spanId": "b-0"}
    logs = [{"resourceLogs": [{"scopeLogs": [{"logRecords": [log], "schemaUrl": url}]}]},
            {"resourceLogs": [{"scopeLogs": [{"logRecords": [old_log]}]}]}]  # fmt: skip
    old = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Who?", "gen_ai.completion.0.content": "Ann."}
    spans_ = [span("a", 0, 0, known), span("b", 0, 0, known), span("c", 0, 0, old)]
    spans_ += [span("d", 0, 0, known, events=[{"name": "gen_ai.content.prompt"}]), span("e", 0, 0, {})]
    rows = [*map(otlp, spans_), *logs]
    row = {"trace_id": "f", "span_id": "f0", "schema_url": url, "attributes": {"gen_ai.prompt": "x", **known}}
    rows.append({**row, "start_time": "2026-11-25T00:00:00Z", "end_time": "2026-11-25T00:00:01Z"})
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = rankbeam("traces", str(tmp_path / "spans.jsonl"), "--output", str(tmp_path / "out"))
    other = "spans of another version of the GenAI conventions, of which known attributes are read:"
    assert done.stdout.splitlines()[:-1] == [
        "5 of 6 traces became queries",
        f"  5 {UNKNOWN}",
        "  1 spans without any attribute, in traces without a question",
        "  1 without a question",
        f"  3 {other} before 1.37, without a schemaUrl",
        f"  2 {other} {url}",
    ], done.stderr


def test_paths_are_proposed_where_inputs_and_outputs_are_json(tmp_path: Path) -> None:
    talk = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Who?"}]})
    answer = json.dumps({"result": {"answer": "Ann.", "id": "7"}})
    rows = [otlp(span(name, 0, 0, {"input.value": talk, "output.value": answer})) for name in "ab"]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = ["traces", str(tmp_path / "spans.jsonl"), "--output", str(tmp_path / "out")]
    first = rankbeam(*command)
    assert first.status == 2
    assert "  try --question 'messages[-1].content': a text in 2 inputs of a sample\n" in first.stderr
    second = rankbeam(*command, "--question", "messages[-1].content")
    assert second.status == 2
    assert "  try --answer 'result.answer': a text in 2 outputs of a sample\n" in second.stderr
    done = rankbeam(*command, "--question", "messages[-1].content", "--answer", "result.answer")
    assert (done.status, "try --" in done.stdout) == (0, False)
    line = json.loads((tmp_path / "out" / "answers.jsonl").read_text().splitlines()[0])
    assert line["answer"] == "Ann."


def test_events_of_another_version_of_adk_and_observations_of_langfuse(tmp_path: Path) -> None:
    event = {"timestamp": "2026-11-25T00:00:00Z", "session_id": "s", "agent": "a", "status": "OK"}
    rows = [
        {**event, "invocation_id": "i", "event_type": "USER_MESSAGE_RECEIVED", "content": {"text_summary": "Who?"}},
        {**event, "invocation_id": "i", "event_type": "AGENT_SPOKE", "content": {"text": "Ann."}},
        {**event, "invocation_id": "i", "event_type": "STATE_DELTA", "content": {}},
        {**event, "invocation_id": "j", "event_type": "USER_MESSAGE_RECEIVED", "content": {"text_summary": "Who?"}},
        {**event, "invocation_id": "j", "event_type": "AGENT_RESPONSE", "content": {"response": "Ann."}},
    ]
    rows = [{**row, "span_id": f"n{number}"} for number, row in enumerate(rows)]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = rankbeam("traces", str(tmp_path / "events.jsonl"), "--output", str(tmp_path / "out"))
    assert "  1 without an answer\n" in done.stdout
    assert "known attributes are read: event type AGENT_SPOKE of agent_events\n" in done.stdout
    times = {"startTime": "2026-11-25T00:00:00Z", "endTime": "2026-11-25T00:00:01Z"}
    root = {"id": "o1", "traceId": "t", "type": "SPAN", "parentObservationId": None, "input": "Who?", "output": "Ann."}
    search = {"id": "o2", "traceId": "t", "type": "RETRIEVER", "parentObservationId": "o1", "output": [{"text": "x"}]}
    lines = [json.dumps({**row, **times}) + "\n" for row in (root, search)]
    (tmp_path / "observations.jsonl").write_text("".join(lines), encoding="utf-8")
    done = rankbeam("traces", str(tmp_path / "observations.jsonl"), "--output", str(tmp_path / "observed"))
    assert done.status == 0, done.stderr
    (answer,) = map(json.loads, (tmp_path / "observed" / "answers.jsonl").read_text().splitlines())
    assert (answer["answer"], answer["contexts"][0]["text"]) == ("Ann.", "x")


@pytest.mark.long
@pytest.mark.parametrize(
    ("dataset", "answers", "problem"),
    [
        ({"traces": "spans.jsonl"}, {"type": "traces", "pth": "x"}, "answers.pth: unknown key; did you mean 'path'?"),
        ({"traces": "nothing.jsonl"}, {"type": "traces"}, "dataset.traces: "),
        ({"traces": {"sample": 3}}, {"type": "traces"}, "path is missing"),
        ({"traces": "spans.jsonl", "queries": "q.jsonl"}, {"type": "traces"}, "dataset.queries: is given twice"),
        ({"queries": "q.jsonl"}, {"type": "traces"}, "the dataset names no traces; write dataset: {traces: PATH}"),
        ({"traces": {"path": "spans.jsonl", "per_day": True}}, {"type": "traces"}, "per_day, which applies to sample"),
        ({"traces": {"path": "spans.jsonl", "redact": ["("]}}, {"type": "traces"}, "is not a regular expression"),
        ({"traces": {"path": "spans.jsonl", "question": "a["}}, {"type": "traces"}, "is not valid JMESPath"),
        ({"traces": "e.yaml"}, {"type": "traces"}, "dataset.traces: "),
        ({"traces": "spans.jsonl"}, {"type": "trace"}, "unknown type 'trace'; did you mean 'traces'?"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_their_key(tmp_path: Path, dataset: Any, answers: Any, problem: str) -> None:
    sources(tmp_path, 1)
    done = evaluated(tmp_path, "r", dataset, answers)
    assert done.status == 2
    assert problem in done.stderr
    assert "e.yaml:" in done.stderr


@pytest.mark.long
def test_traces_are_read_again_by_another_commit(tmp_path: Path) -> None:
    sources(tmp_path, 0, 1)
    path = experiment(tmp_path, "r", {"traces": "spans.jsonl"}, {"type": "traces"})
    code = Path(shutil.copytree(Path(rankbeam_package.__file__).parent, tmp_path / "rankbeam"))

    def reads() -> bool:
        done = subprocess.run(
            [sys.executable, "-m", "rankbeam", "validate", path],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return "fetching the traces" in done.stderr

    assert "fetching the traces" in rankbeam("validate", path).stderr
    assert not reads()
    with (code / "transforms" / "records" / "trajectories.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert reads()
