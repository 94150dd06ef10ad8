"""`rankbeam traces`: from files of spans to an experiment, and what is counted or refused on the way."""

import json
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.runs import evaluated
from support.traces import otlp, phoenix, span, untyped

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.folders import sole_writer
from rankbeam.pipelines.traces import collect
from rankbeam.transforms.clients.formats.traces.turns import Naming, Turn
from rankbeam.transforms.traces import Choice, WriteTurns

DAY = 86_400


def trace(number: int, second: int = 0) -> list[dict[str, Any]]:
    texts = {"input.value": f"Who pays invoice {number}, ann@x.org?", "output.value": f"Owners pay invoice {number}."}
    documents = [{"document.id": "d1", "document.content": "Owners pay invoices."}]
    name = f"{number:032x}"
    return [
        span(name, 0, second, {**texts, "session.id": f"s{number // 2}"}),
        span(name, 1, second, {"openinference.span.kind": "RETRIEVER", "retrieval.documents": documents}),
    ]


def written(folder: Path, name: str, rows: Iterable[dict[str, Any]]) -> str:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(folder / name)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.long
def test_spans_of_two_files_become_an_experiment_that_runs(tmp_path: Path) -> None:
    spans = [one for number in range(12) for one in trace(number, number)]
    spans += spans[:1]  # twice
    spans += [span("open", 1, 5, {"input.value": "x"}), span("blank", 0, 5, {"input.value": " "})]
    spans.append(span(f"{3:032x}", 0, 90, {"input.value": "And when?"}) | {"spanId": "second root"})
    random.Random(7).shuffle(spans)
    written(tmp_path, "a.jsonl", [otlp(*spans[:9], **{"service.version": "v1"})])
    written(tmp_path, "b.jsonl", map(phoenix, spans[9:]))
    written(tmp_path, "c.jsonl", [])  # just opened by a collector
    done = rankbeam("traces", str(tmp_path / "*.jsonl"), "--output", str(tmp_path / "out"))
    assert done.status == 0, done.stderr
    assert done.stdout.splitlines()[:5] == [
        "12 of 14 traces became queries", "  1 spans that occur twice",
        "  1 further spans without a parent, whose questions and answers are left out",
        "  1 still running: left for the next time", "  1 without a question",
    ]  # fmt: skip
    assert evaluated(str(tmp_path / "out" / "experiment.yaml"), run_id="r").run["state"] == "done"
    results = Results(str(tmp_path / "out" / "out"), "r")
    values = [value for row in results.table("query_metrics").to_pylist() for value in row["metrics"]]
    assert len(values) == 24
    assert {value["value"] for value in values if value["metric"].startswith("Faithfulness")} == {1.0}


def test_a_trace_without_a_start_has_no_day_and_no_duration(tmp_path: Path) -> None:
    row = phoenix(trace(1)[0]) | {"start_time": None}
    done = rankbeam("traces", written(tmp_path, "a.jsonl", [row]), "--output", str(tmp_path / "out"))
    assert "  1 whose root has no start, so that their day and duration are unknown" in done.stdout.splitlines()
    (query,), (answer,) = (read(tmp_path / "out" / name) for name in ("queries.jsonl", "answers.jsonl"))
    assert "day" not in query["metadata"]
    assert "seconds" not in answer
    row = phoenix(trace(1)[0]) | {"end_time": None}
    rankbeam("traces", written(tmp_path, "b.jsonl", [row]), "--output", str(tmp_path / "endless"))
    (query,), (answer,) = (read(tmp_path / "endless" / name) for name in ("queries.jsonl", "answers.jsonl"))
    assert "day" in query["metadata"]
    assert "seconds" not in answer


def test_a_sample_is_the_same_each_time_and_texts_are_redacted(tmp_path: Path) -> None:
    rows = [one for number in range(40) for one in trace(number, DAY * (number % 2))]
    source = written(tmp_path, "spans.jsonl", [otlp(one) for one in rows])
    drawn = []
    for place, more in enumerate([["--sample", "5"], ["--sample", "5"], ["--sample", "5", "--per-day"]]):
        out = tmp_path / str(place)
        done = rankbeam("traces", source, "--output", str(out), "--redact", r"\S+@\S+", *more)
        assert done.status == 0, done.stderr
        drawn.append([query["_id"] for query in read(out / "queries.jsonl")])
        assert {query["text"].partition(", ")[2] for query in read(out / "queries.jsonl")} == {"[redacted]"}
        assert f"{40 - len(drawn[-1])} not drawn" in done.stdout
    assert drawn[0] == drawn[1]
    assert (len(drawn[0]), len(drawn[2])) == (5, 10)


def test_a_refused_source_keeps_what_an_earlier_one_had(tmp_path: Path) -> None:
    source, out = written(tmp_path, "spans.jsonl", [otlp(*trace(1))]), tmp_path / "out"
    (out / ".turns-of-a-killed-process").mkdir(parents=True)
    assert rankbeam("traces", source, "--output", str(out)).status == 0
    earlier = {path.name: path.read_bytes() for path in out.iterdir()}
    silent = written(tmp_path, "silent.jsonl", [otlp(span(f"{2:032x}", 0, 0, {"input.value": "Who?"}))])
    assert rankbeam("traces", silent, "--output", str(out)).status == 2
    with sole_writer(str(out), "traces", "it", "--output"):  # as another process would
        assert "another process is writing this dataset" in rankbeam("traces", source, "--output", str(out)).stderr
    assert earlier.keys() == {"queries.jsonl", "answers.jsonl", "experiment.yaml"}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == earlier


def test_an_interrupt_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(WriteTurns, "expand", interrupted)
    source = written(tmp_path, "spans.jsonl", [otlp(*trace(1))])
    with pytest.raises(KeyboardInterrupt):
        collect(source, str(tmp_path / "out"), Naming(), Choice(), {})
    assert [*(tmp_path / "temporary").iterdir(), *(tmp_path / "out").iterdir()] == []


def test_what_people_have_changed_is_not_overwritten(tmp_path: Path) -> None:
    source, out = written(tmp_path, "spans.jsonl", [otlp(*trace(1))]), tmp_path / "out"
    assert rankbeam("traces", source, "--output", str(out)).stderr == ""
    experiment, queries = out / "experiment.yaml", out / "queries.jsonl"
    experiment.write_text("name: mine\n", encoding="utf-8")
    again = rankbeam("traces", source, "--output", str(out))
    assert (again.status, experiment.read_text(encoding="utf-8")) == (0, "name: mine\n")
    assert "experiment.yaml exists already and is kept" in again.stderr
    own = written(out, "queries.jsonl", [{**row, "reference": "Owners."} for row in read(queries)])
    refused = rankbeam("traces", source, "--output", str(out))
    assert (refused.status, f"{own}: has reference answers" in refused.stderr) == (2, True)
    assert read(queries)[0]["reference"] == "Owners."


@pytest.mark.parametrize("name", ["queries.jsonl", "answers.jsonl"])
def test_files_of_people_in_the_output_are_not_overwritten(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    own = written(out, name, [{"_id": "q1", "text": "Who pays?", "answer": "Owners."}])
    refused = rankbeam("traces", written(tmp_path, "spans.jsonl", [otlp(*trace(1))]), "--output", str(out))
    assert (refused.status, read(Path(own))[0]["_id"]) == (2, "q1")
    assert f"{own}: was not written by `rankbeam traces` and would be overwritten" in refused.stderr


def test_documents_that_are_the_question_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [one for number in range(3) for one in trace(number)]
    texts = ["who pays invoice 1 — ANN@x.org", "Who pays invoice 1", "Owners pay."]
    documents = [{"document.id": str(place), "document.content": text} for place, text in enumerate(texts)]
    rows[3] = span(f"{1:032x}", 1, 0, {"openinference.span.kind": "RETRIEVER", "retrieval.documents": documents})
    source = written(tmp_path, "spans.jsonl", [otlp(*rows)])
    for options, left in (([], ["0", "1", "2"]), (["--drop-self"], ["1", "2"])):
        out = tmp_path / f"out{len(options)}"
        done = rankbeam("traces", source, "--output", str(out), *options)
        assert done.status == 0, done.stderr
        assert ("1 documents that equal their question, left out (--drop-self)" in done.stdout) == bool(options)
        answers = {answer["query_id"]: answer for answer in read(out / "answers.jsonl")}
        assert [document["doc_id"] for document in answers[f"{1:032x}"]["contexts"]] == left


def test_a_sample_of_samples_is_the_sample_of_all() -> None:
    turns = [Turn(f"t{number}", "s", number * DAY / 4, "q", None, None, 1.0) for number in range(50)]
    for choice in (Choice(7), Choice(3, per_day=True), Choice()):
        parts = [choice.chosen(turns[place::4]) for place in range(4)]
        assert choice.chosen([turn for part in parts for turn in part]) == choice.chosen(turns)


@pytest.mark.long
def test_scores_go_back_as_events_of_the_traces(tmp_path: Path) -> None:
    rows = [one for number in range(3) for one in trace(number)]
    rows[2]["attributes"] = rows[2]["attributes"][:1]  # a trace without an answer
    rows[0]["spanId"], rows[1]["parentSpanId"] = "a" * 16, "a" * 16
    source = written(tmp_path, "spans.jsonl", [otlp(*rows)])
    out, new = str(tmp_path / "out"), str(tmp_path / "scores.jsonl")
    assert rankbeam("traces", source, "--output", out).status == 0
    assert rankbeam("evaluate", f"{out}/experiment.yaml").status == 3  # one of three queries has no answer
    arguments = ["export", f"{out}/out", "--like", f"{out}/answers.jsonl", "--output", new, "--events"]
    assert rankbeam(*arguments).status == 0
    records = [
        record
        for export in read(Path(new))
        for resource in export["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert [record["traceId"][-1] for record in records] == ["0", "0", "2", "2"]
    assert [record.get("spanId") for record in records] == ["a" * 16] * 2 + [None] * 2
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    values = [{entry["key"]: untyped(entry["value"]) for entry in record["attributes"]} for record in records]
    scores = {value["gen_ai.evaluation.name"]: value["gen_ai.evaluation.score.value"] for value in values}
    assert scores["Faithfulness(judge=lexical)"] == 1.0
    assert {value["gen_ai.evaluation.score.label"] for value in values} == {"ok"}
    assert "exists already" in rankbeam(*arguments).stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        ([{"question": "Who?"}], [], "spans.jsonl:1: is not a span: KeyError 'trace_id'; write OTLP"),
        ([otlp(span("t", 0, 0, {}))], [], "holds no question: 0 of 1 trace became"),
        ([otlp(span("t", 0, 0, {"input.value": '{"q": "x"}'}))], [], "name the question with --question PATH"),
        ([otlp(span("t", 0, 0, {"input.value": "x"}))], [], "holds no answer; name the answer in outputs"),
        ([{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t"}]}]}]}], [], "not a span: KeyError 'spanId'"),
        ([], ["--redact", "("], "is not a regular expression"),
        ([], ["--per-day"], "--per-day belongs to --sample N"),
        ([], ["--question", "a["], "--question 'a[' is not valid JMESPath"),
        ([], ["--service", "gpt"], "--service: unknown type 'gpt'"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(
    rows: list[dict[str, Any]], options: list[str], problem: str, tmp_path: Path
) -> None:
    source = written(tmp_path, "spans.jsonl", rows or [otlp(*trace(1))])
    done = rankbeam("traces", source, "--output", str(tmp_path / "out"), *options)
    assert done.status == 2
    assert problem in done.stderr
    assert not (tmp_path / "out" / "experiment.yaml").exists()
