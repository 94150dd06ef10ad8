# ruff: noqa: F811  fixtures are named as what they give
"""ADK's table `agent_events`: rows of its BigQuery plugin become turns with steps, from files and tables."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.bigquery_tables import new_dataset
from support.cli import rankbeam
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.runs import evaluated

from rankbeam.transforms.clients.formats.traces.spans import spans_of
from rankbeam.transforms.clients.formats.traces.turns import Naming, Turn, turn_of

DOCUMENTS = [{"id": "d1", "text": "Owners pay."}, {"id": "d2", "text": "It rains."}]
EVENTS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("USER_MESSAGE_RECEIVED", "s0", {"text_summary": "Who pays?"}, {}),
    ("INVOCATION_STARTING", "s0", None, {}),
    ("LLM_REQUEST", "s1", {"prompt": []}, {}),
    ("LLM_RESPONSE", "s1", {"response": "call: find", "usage": {"prompt": 50, "completion": 5, "total": 55}}, {}),
    ("TOOL_STARTING", "s2", {"tool": "find", "args": {"q": "invoices"}, "tool_origin": "LOCAL"}, {}),
    ("TOOL_COMPLETED", "s2", {"tool": "find", "result": {"results": DOCUMENTS}, "tool_origin": "LOCAL"}, {}),
    ("TOOL_STARTING", "s3", {"tool": "mail", "args": {}, "tool_origin": "LOCAL"}, {}),
    ("TOOL_ERROR", "s3", {"tool": "mail", "args": {}}, {"status": "ERROR", "error_message": "no"}),
    ("LLM_RESPONSE", "s4", {"response": "text: 'Owners pay.'", "usage": {"prompt": 70, "completion": 9}}, {}),
]  # fmt: skip


def rows(invocation: str = "i1", *, as_text: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "timestamp": f"2026-11-24 10:00:{second:02}.500000 UTC", "event_type": event, "agent": "helper",
            "session_id": "s", "invocation_id": invocation, "user_id": "u", "trace_id": "t",
            "span_id": f"{invocation}-{span}", "content": json.dumps(content) if as_text else content,
            "attributes": "{}" if as_text else {}, "status": "OK", "error_message": None, "is_truncated": False, **more,
        }
        for second, (event, span, content, more) in enumerate(EVENTS)
    ]  # fmt: skip


def turn(some: list[dict[str, Any]], documents: str | None = "results") -> Turn:
    result = turn_of([span for row in some for span in spans_of(row)], 0.0, Naming(documents=documents))
    assert isinstance(result, Turn)
    return result


@pytest.mark.parametrize("as_text", [False, True])
def test_an_invocation_is_a_turn_in_any_order(as_text: bool) -> None:
    some = rows(as_text=as_text)
    random.Random(3).shuffle(some)
    result = turn(some)
    assert (result.trace_id, result.question, result.answer, result.conversation) == (
        "i1",
        "Who pays?",
        "Owners pay.",
        "s",
    )
    assert result.contexts == (("d1", "Owners pay."), ("d2", "It rains."))
    assert (result.tokens, result.seconds) == ({"input": 120, "output": 14}, 8.0)
    assert [(step.tool, json.loads(step.args), step.status, step.doc_ids) for step in result.steps or ()] == [
        ("find", {"q": "invoices"}, "ok", ("d1", "d2")), ("mail", {}, "error", None),
    ]  # fmt: skip


def test_an_invocation_without_a_call_has_no_steps() -> None:
    assert turn([row for row in rows() if not row["event_type"].startswith("TOOL")]).steps == ()


def test_without_a_path_contexts_are_not_known_and_truncated_ones_neither() -> None:
    assert turn(rows(), None).contexts is None
    cut = turn([{**row, "is_truncated": row["event_type"] == "TOOL_COMPLETED"} for row in rows()])
    assert (cut.contexts, cut.is_cut, cut.answer) == (None, True, "Owners pay.")
    assert turn([{**row, "is_truncated": row["span_id"] == "i1-s4"} for row in rows()]).answer is None


def test_an_answer_of_the_agent_is_taken_as_it_is() -> None:
    last = {**rows()[-1], "event_type": "AGENT_RESPONSE", "timestamp": "2026-11-24T10:01:00Z"}
    assert turn([*rows(), {**last, "content": {"response_text": "call: me"}}]).answer == "call: me"


def folder_of(source: str, output: Path) -> list[dict[str, Any]]:
    done = rankbeam("traces", source, "--output", str(output), "--documents", "results")
    assert done.status == 0, done.stderr
    assert "2 of 2 traces became queries" in done.stdout
    return [json.loads(line) for line in (output / "answers.jsonl").read_text().splitlines()]


@pytest.mark.long
def test_exported_rows_become_an_experiment(tmp_path: Path) -> None:
    lines = [json.dumps(row) for name in ("i1", "i2") for row in rows(name, as_text=True)]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    answers = folder_of(str(tmp_path / "events.jsonl"), tmp_path / "out")
    assert [(row["query_id"], row["answer"], len(row["steps"])) for row in answers] == [
        ("i1", "Owners pay.", 2), ("i2", "Owners pay.", 2),
    ]  # fmt: skip
    assert evaluated(str(tmp_path / "out" / "experiment.yaml")).run["state"] == "done"


def test_a_table_of_bigquery_gives_the_same_answers(cloud: Cloud, tmp_path: Path) -> None:
    some = [row for name in ("i1", "i2") for row in rows(name, as_text=True)]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in some), encoding="utf-8")
    expected = folder_of(str(tmp_path / "events.jsonl"), tmp_path / "file")
    tables = new_dataset(cloud)
    source = tables.add("agent_events", pa.Table.from_pylist(some))
    assert folder_of(source, tmp_path / "table") == expected
    tables.client.delete_dataset(tables.dataset, delete_contents=True)
