"""Exports with null cells, truncated lists and several versions of a span."""

import csv
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import write
from support.traces import START, otlp, span

from rankbeam.transforms.clients.formats.cases.read import read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.traces.spans import Span, read_spans, spans_of
from rankbeam.transforms.clients.formats.traces.turns import Naming, Turn, turn_of
from rankbeam.transforms.records.errors import InputError

ROOT = {"input.value": "Who?", "output.value": "Ann."}


def turn(spans: list[Span]) -> Turn:
    result = turn_of(spans, START + 10, Naming())
    assert isinstance(result, Turn)
    return result


def columns(documents: Any) -> dict[str, list[Any]]:
    return {
        "context.trace_id": ["t", "t"], "context.span_id": ["a", "b"], "parent_id": [None, "a"],
        "start_time": ["2026-11-20T10:00:00Z"] * 2, "end_time": ["2026-11-20T10:00:01Z"] * 2,
        "attributes.input.value": ["Who?", None], "attributes.output.value": ["Ann.", None],
        "attributes.error.type": [None, None], "attributes.reranker.output_documents": [None, None],
        "attributes.retrieval.documents": [None, documents],
    }  # fmt: skip


def test_null_cells_of_parquet_are_absent_attributes(tmp_path: Path) -> None:
    documents = [{"document.id": "d1", "document.content": "one"}]
    pq.write_table(pa.table(columns(documents)), tmp_path / "spans.parquet")
    whole = turn(list(read_spans(str(tmp_path / "spans.parquet"))))
    assert (whole.answer, whole.contexts) == ("Ann.", (("d1", "one"),))
    pq.write_table(pa.table(columns(None)), tmp_path / "bare.parquet")
    assert turn(list(read_spans(str(tmp_path / "bare.parquet")))).contexts is None


def test_lists_in_csv_are_python_literals(tmp_path: Path) -> None:
    table = columns("[{'document.id': 'd1', 'document.content': \"it's one\"}]")
    with (tmp_path / "spans.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    whole = turn(list(read_spans(str(tmp_path / "spans.csv"))))
    assert (whole.answer, whole.contexts) == ("Ann.", (("d1", "it's one"),))


@pytest.mark.parametrize(
    "values",
    [
        {"gen_ai.retrieval.documents": '[{"id": "d1", "content": "one"}, {"id": "d'},
        {f"retrieval.documents.{rank}.document.content": "text" for rank in (0, 2)},
    ],
)
def test_truncated_documents_are_not_the_contexts(values: dict[str, Any]) -> None:
    whole = turn(list(spans_of(otlp(span("t", 0, 0, ROOT), span("t", 1, 0, values)))))
    assert whole.is_cut
    assert whole.contexts is None
    assert [step.doc_ids for step in whole.steps or ()] == [None]  # else they would be the contexts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_of_several_versions_of_a_span_the_one_that_ended_last_counts(ends: list[int], order: random.Random) -> None:
    versions = []
    for end in ends:
        nanoseconds = str((START + end) * 1_000_000_000)
        versions.append({**span("t", 0, 0, {**ROOT, "output.value": f"at {end}"}), "endTimeUnixNano": nanoseconds})
    order.shuffle(versions)
    whole = turn(list(spans_of(otlp(*versions))))
    assert (whole.answer, whole.duplicates) == (f"at {max(ends)}", len(ends) - 1)


def test_judging_a_file_of_spans_names_the_command(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").write_text(json.dumps(otlp(span("t", 0, 0, ROOT))) + "\n{}\n")
    with pytest.raises(InputError, match="first run: rankbeam traces"):
        list(read_cases(CaseSource(str(tmp_path / "spans.jsonl"))))


@pytest.mark.parametrize("has_trace", [True, False])
def test_traces_that_opik_exports(has_trace: bool, tmp_path: Path) -> None:
    """As `opik export` of Opik 2.2 writes a trace, or its spans alone."""
    dialog, at = {"input": {"question": "Who pays?"}, "output": {"output": "Owners."}}, "2026-11-25 03:00:0{}+00:00"
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    names = [("a", None, "general", dialog), ("b", "a", "llm", {"model": "m", "usage": usage, "input": {}})]
    spans = [
        {"id": name, "trace_id": "t", "parent_span_id": parent, "name": name, "type": kind,
         "start_time": at.format(place), "end_time": at.format(5), "error_info": None, **more}
        for place, (name, parent, kind, more) in enumerate(names)
    ]  # fmt: skip
    trace = {"id": "t", "name": "t", "start_time": at.format(0), "thread_id": "c", **dialog}
    value = {"trace": trace, "spans": spans} if has_trace else spans
    path = write(tmp_path / "trace_t.json", json.dumps(value, indent=2))
    turn = turn_of([*read_spans(path)], START, Naming(question="question"))
    assert isinstance(turn, Turn)
    assert (turn.question, turn.answer, turn.seconds, turn.model) == ("Who pays?", "Owners.", 5.0, "m")
    assert turn.tokens == {"input": 9, "output": 3}
    assert turn.conversation == ("c" if has_trace else None)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_observations_in_a_bucket_of_langfuse(form: str, tmp_path: Path) -> None:
    """Its documented columns: empty texts mean none, objects are maps in Parquet and JSON in CSV, times are in UTC."""
    shared = {"trace_id": "t", "session_id": "s", "release": "v7", "end_time": "2026-11-20 10:00:02.000000"}
    documents = json.dumps([{"id": "d1", "content": "one"}])
    rows: list[dict[str, Any]] = [
        {"id": name, "type": kind, "parent_observation_id": parent, "input": text, "output": output, **shared}
        | {"start_time": f"2026-11-20 10:00:0{place}.500000", "name": name, "level": "DEFAULT"}
        | {"provided_model_name": "m" if kind == "GENERATION" else "", "usage_details": usage}
        for place, (name, kind, parent, text, output, usage) in enumerate(
            [
                ("root", "SPAN", "", "Who?", "Ann.", {}),
                ("search", "RETRIEVER", "root", "Who?", documents, {}),
                ("llm", "GENERATION", "root", "", "", {"input": 7, "output": 2, "total": 9}),
            ]
        )
    ]
    path = tmp_path / f"observations.{form}"
    if form == "parquet":
        usage = pa.array([[*row["usage_details"].items()] for row in rows], pa.map_(pa.string(), pa.int64()))
        table = pa.table({name: [row[name] for row in rows] for name in rows[0] if name != "usage_details"})
        pq.write_table(table.append_column("usage_details", usage), path)
    elif form == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        with path.open("w", newline="") as handle:
            writer = csv.DictWriter(handle, rows[0])
            writer.writeheader()
            writer.writerows(row | {"usage_details": json.dumps(row["usage_details"])} for row in rows)
    whole = turn_of(list(read_spans(str(path))), START + 1e9, Naming())
    assert isinstance(whole, Turn)
    assert (whole.question, whole.answer, whole.contexts) == ("Who?", "Ann.", (("d1", "one"),))
    assert (whole.conversation, whole.configuration, whole.model) == ("s", "v7", "m")
    assert whole.start_s == datetime(2026, 11, 20, 10, 0, 0, 500_000, tzinfo=UTC).timestamp()
    assert (whole.tokens, whole.seconds) == ({"input": 7, "output": 2}, 1.5)
