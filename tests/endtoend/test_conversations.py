"""Conversations: turns are asked with their history, compared by conversation, and refused where one is missing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.inputs import write
from support.runs import evaluated

from rankbeam import evaluate as evaluate_here

FIRST, REPLY, SECOND = "Who pays?", "Owners pay.", "And when?"
HISTORY = [{"role": "user", "text": FIRST}, {"role": "assistant", "text": REPLY}]
TURNS: list[dict[str, Any]] = [
    turn
    for name in ("a", "b", "c")
    for turn in (
        {"_id": f"{name}1", "text": f"{FIRST} {name}", "conversation": name, "turn": 1, "reference": REPLY},
        {"_id": f"{name}2", "text": f"{SECOND} {name}", "conversation": name, "turn": 2, "history": HISTORY,
         "reference": "Each month."},
    )
]  # fmt: skip
Requests = list[tuple[str, dict[str, Any]]]


@contextmanager
def serving() -> Iterator[tuple[str, Requests]]:
    requests: Requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, body))
            choice = {"message": {"content": "Owners pay each month."}}
            run = [{"content": {"parts": [{"text": "Owners pay each month."}]}}]
            content = json.dumps(
                run if self.path == "/run" else {"answer": "Owners pay.", "choices": [choice]}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


def experiment(folder: Path, *systems: dict[str, Any], turns: list[dict[str, Any]] = TURNS) -> dict[str, Any]:
    write(folder / "turns.jsonl", "".join(f"{json.dumps(turn)}\n" for turn in turns))
    return {
        "name": "e", "dataset": {"queries": "turns.jsonl", "answers": "reference", "conversations": True},
        "services": {"overlap": {"type": "lexical"}}, "judge": {"service": "overlap", "repeat_share": 0},
        "configurations": [{"name": answers["type"], "answers": {"version": "1", **answers}} for answers in systems],
        "quotas": {answers["type"]: {"requests_per_minute": 60_000} for answers in systems},
        "metrics": ["ClaimRecall"], "slices": ["turn"], "output": {"path": "out"},
    }  # fmt: skip


def evaluate(folder: Path, *systems: dict[str, Any], turns: list[dict[str, Any]] = TURNS) -> Outcome:
    return rankbeam("evaluate", write(folder / "e.yaml", yaml.safe_dump(experiment(folder, *systems, turns=turns))))


@pytest.mark.long
def test_every_kind_of_application_has_the_history_and_means_count_conversations(tmp_path: Path) -> None:
    with serving() as (url, requests):
        body = {"question": "{query}", "before": "{history}"}
        systems = (
            {"type": "http", "url": f"{url}/ask", "answer": "answer", "body": body},
            {"type": "openai_chat", "url": f"{url}/v1/chat/completions"},
            {"type": "adk", "url": url, "app": "help", "agent": "root"},
        )
        done = evaluate(tmp_path, *systems)
        assert done.status == 0, done.stderr
        count = len(requests)
        evaluated(tmp_path / "e.yaml", "again")
    assert len(requests) == count  # the second run takes the answers from the ledger
    check_bodies([body for path, body in requests if path == "/ask"])
    check_messages([body for path, body in requests if path == "/v1/chat/completions"])
    check_sessions([(path, body) for path, body in requests if path == "/run" or path.endswith("/sessions")])
    rows = pq.read_table(tmp_path / "out" / "configuration_metrics").to_pylist()
    configurations = pq.read_table(tmp_path / "out" / "configurations").to_pylist()
    (config_id,) = {row["config_id"] for row in configurations if row["name"] == "http"}
    means = {
        row["slice"]: (row["queries"], row["clusters"], row["mean"]) for row in rows if row["config_id"] == config_id
    }
    assert means == {"all": (6, 3, 0.5), "turn=1": (3, 3, 1.0), "turn=2": (3, 3, 0.0)}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "function dialogue" in page


def check_bodies(bodies: list[dict[str, Any]]) -> None:
    """A body of the user's own holds the history where the experiment says."""
    assert len(bodies) == len(TURNS)
    sent = {body["question"]: body["before"] for body in bodies}
    assert sent == {turn["text"]: turn.get("history", []) for turn in TURNS}


def check_messages(bodies: list[dict[str, Any]]) -> None:
    """A chat has the messages before the query."""
    before = [{"role": entry["role"], "content": entry["text"]} for entry in HISTORY]
    sent = {body["messages"][-1]["content"]: body["messages"][:-1] for body in bodies}
    assert sent == {turn["text"]: before if turn["turn"] == 2 else [] for turn in TURNS}


def check_sessions(requests: Requests) -> None:
    """A session of the ADK begins with the events before the query."""
    events = [
        {"author": "user", "content": {"role": "user", "parts": [{"text": FIRST}]}},
        {"author": "root", "content": {"role": "model", "parts": [{"text": REPLY}]}},
    ]
    sessions = {body["sessionId"]: body["events"] for path, body in requests if path != "/run"}
    runs = {body["newMessage"]["parts"][0]["text"]: body for path, body in requests if path == "/run"}
    assert list(sessions.values()) == [events] * 3
    assert {runs[turn["text"]]["sessionId"] for turn in TURNS if turn["turn"] == 2} == sessions.keys()
    assert all(set(body) == {"appName", "userId", "sessionId", "newMessage"} for body in runs.values())


@pytest.mark.long
def test_a_function_finds_the_history_among_the_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = experiment(tmp_path, {"type": "adk"})
    histories: dict[str, Any] = {}

    def system(query: str, attributes: dict[str, Any]) -> str:
        histories[query] = attributes.get("history")
        return REPLY

    del value["configurations"], value["quotas"], value["output"]
    evaluate_here(value, output="out", system=system, version="1")
    assert histories == {turn["text"]: turn.get("history") for turn in TURNS}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"turn": 3}, "turns.jsonl:2: is turn 3, and its history has 1 message of the user instead of 2"),
        ({"turn": 1}, "turns.jsonl:2: is turn 1, and its history has 1 message of the user instead of 0"),
        ({"turn": "second"}, "turn: expected a number from 1, found 'second'"),
        ({"history": [{"role": "bot", "text": "a"}]}, "history.0: has the role 'bot'; write user or assistant"),
        ({"history": [{"role": "user", "text": " "}]}, "history.0: has no text"),
        ({"history": []}, "turns.jsonl:2: is turn 2, and its history has 0 messages of the user instead of 1"),
        ({"history": [{"role": "user", "content": FIRST}]}, "turns.jsonl:2: history: expected a list of {role, text}"),
        ({"history": json.dumps(HISTORY[1:])}, "its history has 0 messages of the user instead of 1"),
    ],
)
def test_a_conversation_with_a_gap_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    turns = [TURNS[0], {**TURNS[1], **change}]
    done = evaluate(
        tmp_path, {"type": "http", "url": "http://h/", "answer": "a", "body": ["{query}", "{history}"]}, turns=turns
    )
    assert done.status == 2
    assert problem in done.stderr


def test_a_gap_is_reported_beside_other_problems(tmp_path: Path) -> None:
    system = {"type": "http", "url": "http://h/", "answer": "a", "body": ["{query}", "{history}", "{tenant}"]}
    done = evaluate(tmp_path, system, turns=[TURNS[0], {**TURNS[1], "history": []}])
    assert "turns.jsonl:2: is turn 2, and its history has 0 messages of the user instead of 1" in done.stderr
    assert "contains {tenant}, but no query has this attribute" in done.stderr


def test_an_application_that_takes_no_history_is_refused(tmp_path: Path) -> None:
    done = evaluate(tmp_path, {"type": "http", "url": "http://h/", "answer": "a"})
    assert done.status == 2
    assert "queries have a history, but the request does not contain {history}" in done.stderr
    plain = [{key: value for key, value in turn.items() if key != "conversation"} for turn in TURNS]
    done = evaluate(tmp_path, {"type": "openai_chat", "url": "http://h/"}, turns=plain)
    assert done.status == 2
    assert "no query has the attribute 'conversation'" in done.stderr


@pytest.mark.campaign
def test_prompts_without_history_and_missing_first_turns_are_warnings(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", '{"_id": "d", "text": "Who pays and when? Owners pay each month."}\n')
    settings = experiment(tmp_path, {"type": "http"}, turns=[turn for turn in TURNS if turn["_id"] != "b1"])
    generate = {"retriever": {"type": "bm25"}, "top_k": 1, "generate": {"service": "reader", "contexts": 1}}
    settings |= {
        "dataset": {**settings["dataset"], "corpus": "corpus.jsonl"}, "metrics": ["AnswerRelevance"], "quotas": {},
        "services": {**settings["services"], "reader": {"type": "extractive"}},
        "configurations": [{"name": "rag", **generate}],
    }  # fmt: skip
    outcome = rankbeam("evaluate", write(tmp_path / "e.yaml", yaml.safe_dump(settings)))
    assert outcome.status == 0, outcome.stderr
    messages = " ".join(outcome.stderr.split())
    assert "rankbeam's own template lacks {history}" in messages
    assert "1 conversation lacks a turn, such as turn 1 of 'b'" in messages
    verdicts = pq.read_table(tmp_path / "out" / "verdicts").to_pylist()
    assert {row["query_id"] for row in verdicts if row["step"] == "answer_kind"} == {"a1", "a2", "b2", "c1", "c2"}
