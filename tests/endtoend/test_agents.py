"""Agents through the command line: steps of every kind of application and file, and the values that they make."""

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
from support.campaigns import in_campaigns
from support.cli import Outcome, rankbeam
from support.inputs import write

ANSWER = "Owners pay."
FIND = {"tool": "find", "args": {"q": "invoices"}}
TELL = {"tool": "tell", "args": {"to": "owner"}}
METRICS = ["TrajectoryExact", "TrajectoryRecall", "TrajectoryPrecision(args=ignore)", "Steps", "Retrievals"]
VALUES = {"TrajectoryExact": 0.0, "TrajectoryRecall": 0.5, "TrajectoryPrecision(args=ignore)": 1.0, "Steps": 2.0}
"""The values of an agent that finds as expected, and tells somebody else."""
DOCUMENTS = [{"id": "d3", "text": "Three."}, {"id": "d1", "text": "One."}]


def replies(path: str) -> Any:
    """The same two calls in the words of each protocol."""
    other = {"to": "nobody"}
    if path == "/run":
        parts: list[dict[str, Any]] = [
            {"functionCall": {"id": "1", "name": "find", "args": FIND["args"]}},
            {"functionResponse": {"id": "1", "name": "find", "response": {"results": DOCUMENTS}}},
            {"functionCall": {"id": "2", "name": "tell", "args": other}},
            {"functionResponse": {"id": "2", "name": "tell", "response": {"error": "nobody is there"}}},
            {"text": ANSWER},
        ]
        return [{"content": {"parts": [part]}} for part in parts]
    calls = [
        {"type": "function", "function": {"name": "find", "arguments": json.dumps(FIND["args"])}},
        {"type": "function", "function": {"name": "tell", "arguments": json.dumps(other)}},
    ]
    steps = [{**FIND, "doc_ids": ["d3", "d1"]}, {"tool_name": "tell", "tool_input": other}]
    return {"answer": ANSWER, "trace": steps, "choices": [{"message": {"content": ANSWER, "tool_calls": calls}}]}


@contextmanager
def serving() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            content = json.dumps(replies(self.path)).encode()
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
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def evaluate(folder: Path, answers: dict[str, Any], **more: Any) -> Outcome:
    write(folder / "queries.jsonl", '{"_id": "q", "text": "Who pays?"}\n')
    expected = {"query_id": "q", "answer": ANSWER, "expected_steps": [FIND, TELL]}
    write(folder / "expected.jsonl", json.dumps(expected) + "\n")
    experiment = {
        "name": "agents", "dataset": {"queries": "queries.jsonl", "answers": {"path": "expected.jsonl"}},
        "configurations": [{"name": "agent", "answers": answers}], "metrics": METRICS, "output": {"path": "out"},
        **more,
    }  # fmt: skip
    return rankbeam("evaluate", write(folder / "e.yaml", yaml.safe_dump(experiment)))


def values(folder: Path, query_id: str = "q", output: str = "out") -> dict[str, Any]:
    rows = pq.read_table(folder / output / "query_metrics").to_pylist()
    (row,) = [row for row in rows if row["query_id"] == query_id]
    return {one["metric"]: one["reason"] if one["value"] is None else one["value"] for one in row["metrics"]}


APPLICATIONS = {
    "http": ({"type": "http", "path": "/ask", "answer": "answer", "steps": "trace"}, 1.0),
    "openai_chat": ({"type": "openai_chat", "path": "/chat"}, 0.0),
    "adk": ({"type": "adk", "path": "", "app": "a", "contexts": "results", "id": "id"}, 1.0),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ["http", *in_campaigns("openai_chat", "adk")])
def test_steps_of_an_application_are_compared_and_stored(tmp_path: Path, name: str) -> None:
    answers, retrievals = APPLICATIONS[name]
    with serving() as url:
        settings = {key: value for key, value in answers.items() if key != "path"}
        known = {"version": "1", "url": url + str(answers["path"]), **settings}
        assert evaluate(tmp_path, known, quotas={name: {"requests_per_minute": 6000}}).status == 0
    assert values(tmp_path) == {**VALUES, "Retrievals": retrievals}
    (row,) = pq.read_table(tmp_path / "out" / "answers").to_pylist()
    stored = json.loads(row["steps"])
    assert [(step["tool"], step["args"]) for step in stored] == [
        ("find", FIND["args"]), ("tell", {"to": "nobody"}),
    ]  # fmt: skip
    if name == "adk":
        known = [(step["status"], step.get("doc_ids")) for step in stored]
        assert known == [("ok", ["d3", "d1"]), ("error", None)]


@pytest.mark.long
def test_the_ranking_of_an_agent_is_what_all_steps_saw(tmp_path: Path) -> None:
    seen = [["d3", "d1"], ["d1", "d7"], []]
    steps = [{"tool": "find", "doc_ids": doc_ids} for doc_ids in seen]
    line = {"query_id": "q", "answer": ANSWER, "steps": steps, "tokens": {"input": 9, "output": 2}, "seconds": 1.5}
    write(tmp_path / "answers.jsonl", f"{json.dumps(line)}\n")
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nq\td7\t1\n")
    dataset = {"queries": "queries.jsonl", "qrels": "qrels.tsv", "answers": {"path": "expected.jsonl"}}
    replay = {"type": "replay", "path": "answers.jsonl"}
    metrics = ["RR", "Retrievals", "Tokens", "Seconds", "Cost"]
    assert evaluate(tmp_path, replay, dataset=dataset, metrics=metrics).status == 0
    expected = {"RR": 1 / 3, "Retrievals": 3.0, "Tokens": 11.0, "Seconds": 1.5, "Cost": "cost_not_known"}
    assert values(tmp_path) == pytest.approx(expected)
    (row,) = pq.read_table(tmp_path / "out" / "rankings").to_pylist()
    assert [document["doc_id"] for document in row["documents"]] == ["d3", "d1", "d7"]


@pytest.mark.campaign
def test_texts_of_what_an_agent_retrieved_come_from_the_corpus(tmp_path: Path) -> None:
    steps = [{"tool": "find", "doc_ids": ["d1"]}]
    write(tmp_path / "answers.jsonl", f"{json.dumps({'query_id': 'q', 'answer': ANSWER, 'steps': steps})}\n")
    write(tmp_path / "corpus.jsonl", '{"_id": "d1", "text": "Owners pay."}\n')
    dataset = {"queries": "queries.jsonl", "answers": {"path": "expected.jsonl"}}
    judge = {"services": {"overlap": {"type": "lexical"}}, "judge": {"service": "overlap"}, "metrics": ["Faithfulness"]}
    name = "Faithfulness(judge=lexical)"
    for corpus, value in (({}, "contexts_not_given"), ({"corpus": "corpus.jsonl"}, 1.0)):
        folder = {"output": {"path": "out" if corpus else "first"}}
        replay = {"type": "replay", "path": "answers.jsonl"}
        assert evaluate(tmp_path, replay, dataset={**dataset, **corpus}, **judge, **folder).status == 0
        assert values(tmp_path, output=folder["output"]["path"]) == {name: value}


@pytest.mark.long
def test_keys_that_are_no_steps_stay_the_users_own_and_wrong_steps_are_refused(tmp_path: Path) -> None:
    expected = {3: "steps_not_given", None: "steps_not_given", (): 0.0}
    lines = [
        {"query_id": f"q{place}", "answer": ANSWER, "steps": value, "tokens": "many", "seconds": "long"}
        for place, value in enumerate(expected)
    ]
    write(tmp_path / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    write(
        tmp_path / "three.jsonl", "".join(json.dumps({"_id": line["query_id"], "text": "?"}) + "\n" for line in lines)
    )
    replay, dataset = {"type": "replay", "path": "answers.jsonl"}, {"queries": "three.jsonl"}
    assert evaluate(tmp_path, replay, dataset=dataset, metrics=["Steps"]).status == 0
    for line, reason in zip(lines, expected.values(), strict=True):
        assert values(tmp_path, str(line["query_id"])) == {"Steps": reason}, line["steps"]
    write(tmp_path / "answers.jsonl", '{"query_id": "q", "answer": "a", "steps": [{"tool": "a"}, {"args": {}}]}\n')
    refused = evaluate(tmp_path, {"type": "replay", "path": "answers.jsonl"})
    assert refused.status == 2
    assert "answers.jsonl:1" in refused.stderr
    assert "1: has no tool; its keys: args" in refused.stderr


def invocation(question: str, answer: str, uses: list[dict[str, Any]] | None) -> dict[str, Any]:
    data = None if uses is None else {"toolUses": uses, "toolResponses": [], "intermediateResponses": []}
    return {
        "userContent": {"parts": [{"text": question}]}, "finalResponse": {"parts": [{"text": answer}]},
        "intermediateData": data,
    }  # fmt: skip


@pytest.mark.long
def test_an_eval_set_of_adk_has_a_query_for_each_turn_and_results_match_it(tmp_path: Path) -> None:
    use = {"name": "find", "args": FIND["args"]}
    expected = [
        invocation("Who pays?", ANSWER, [use]),
        invocation("When?", "In May.", []),
        invocation("Why?", "So.", None),
    ]
    cases = [{"evalId": "pay", "conversation": expected}, {"evalId": "hi", "conversation": expected[1:2]}]
    write(tmp_path / "a.evalset.json", json.dumps({"evalSetId": "a", "evalCases": cases}))
    actual = [invocation("Who pays?", "Guests.", [use, use]), invocation("When?", "In June.", [])]  # a turn is missing
    results = [
        {"evalId": "pay", "evalMetricResultPerInvocation": [
            {"actualInvocation": one, "expectedInvocation": other}
            for one, other in zip(actual, expected[:2], strict=True)
        ]},
        {"evalId": "hi", "evalMetricResultPerInvocation": [{"actualInvocation": actual[1]}]},
        {"evalId": "more", "evalMetricResultPerInvocation": [{"actualInvocation": actual[1]}]},
    ]  # fmt: skip
    write(tmp_path / "results.json", json.dumps({"evalCaseResults": results}))
    outcome = evaluate(
        tmp_path, {"type": "replay", "path": "results.json"}, dataset={"file": "a.evalset.json"},
        metrics=["TrajectoryExact", "TrajectoryInOrder", "TrajectoryRecall"], max_failure_rate=1.0,
    )  # fmt: skip
    assert outcome.status == 0, outcome.stderr
    assert values(tmp_path, "pay") == {"TrajectoryExact": 0.0, "TrajectoryInOrder": 1.0, "TrajectoryRecall": 1.0}
    nothing = {"TrajectoryExact": 1.0, "TrajectoryInOrder": 1.0, "TrajectoryRecall": "no_steps_expected"}
    assert values(tmp_path, "pay:2") == values(tmp_path, "hi") == nothing
    assert set(values(tmp_path, "pay:3").values()) == {"no_expected_steps"}
    assert "1 answer to queries that are not evaluated, such as 'more'" in outcome.stderr
    (row,) = [row for row in pq.read_table(tmp_path / "out" / "answers").to_pylist() if row["query_id"] == "pay:3"]
    assert row["status"] == "failed"
    new = tmp_path / "new.json"
    exported = rankbeam("export", str(tmp_path / "out"), "--like", str(tmp_path / "results.json"), "--output", str(new))
    assert exported.status == 0, exported.stderr
    assert "1 of 4 turns were not evaluated" in exported.stderr
    copies = json.loads(new.read_text(encoding="utf-8"))["evalCaseResults"]
    assert [copy["TrajectoryExact"] for copy in copies] == [[0.0, 1.0], [1.0], [None]]
    assert [copy["TrajectoryRecall"] for copy in copies] == [[1.0, None], [None], [None]]
    assert copies[0]["rankbeam_status"] == ["ok", "TrajectoryRecall: no_steps_expected"]
    assert copies[2]["rankbeam_status"] == ["not evaluated"]
    own = [{key: copy[key] for key in case} for case, copy in zip(results, copies, strict=True)]
    assert own == results


def test_a_metric_of_trajectories_without_expected_steps_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "answers.jsonl", '{"query_id": "q", "answer": "a"}\n')
    replay = {"type": "replay", "path": "answers.jsonl"}
    outcome = evaluate(tmp_path, replay, dataset={"queries": "queries.jsonl"}, metrics=["TrajectoryExact"])
    assert outcome.status == 2
    assert "TrajectoryExact needs expected steps, which reference answers have" in outcome.stderr
    assert "write TrajectoryExact or TrajectoryExact(args=ignore)" in evaluate(
        tmp_path, replay, metrics=["TrajectoryExact(args=some)"]
    ).stderr.replace("\n", " ")


@pytest.mark.long
def test_an_eval_set_may_have_tool_uses_alone(tmp_path: Path) -> None:
    turn = {"userContent": {"parts": [{"text": "Who pays?"}]}}
    turn["intermediateData"] = {"toolUses": [{"name": "find", "args": FIND["args"]}]}
    write(tmp_path / "a.evalset.json", json.dumps({"evalCases": [{"evalId": "pay", "conversation": [turn]}]}))
    write(tmp_path / "answers.jsonl", json.dumps({"query_id": "pay", "answer": ANSWER, "steps": [FIND]}) + "\n")
    replay = {"type": "replay", "path": "answers.jsonl"}
    outcome = evaluate(tmp_path, replay, dataset={"file": "a.evalset.json"}, metrics=["TrajectoryExact"])
    assert outcome.status == 0, outcome.stderr
    assert values(tmp_path, "pay") == {"TrajectoryExact": 1.0}


@pytest.mark.parametrize("is_attribute", [True, False])
def test_references_without_expected_steps_are_named_and_so_are_steps_in_their_place(
    is_attribute: bool, tmp_path: Path
) -> None:
    texts = {"_id": "q", "text": "Who pays?"}
    stated = {"reference": ANSWER, "steps": [FIND]}
    query = {**texts, **stated} if is_attribute else texts
    write(tmp_path / "queries.jsonl", json.dumps(query) + "\n")
    write(tmp_path / "answers.jsonl", json.dumps({"query_id": "q", "answer": ANSWER, "steps": [FIND]}) + "\n")
    references = "reference" if is_attribute else {"path": "answers.jsonl"}
    experiment = {
        "name": "e", "dataset": {"queries": "queries.jsonl", "answers": references}, "output": {"path": "out"},
        "configurations": [{"name": "agent", "answers": {"type": "replay", "path": "answers.jsonl"}}],
    }  # fmt: skip
    for metrics, are_missing in ((["TrajectoryExact", "Steps"], True), (["Steps", "TokenF1"], False)):
        path = write(tmp_path / "e.yaml", yaml.safe_dump({**experiment, "metrics": metrics}))
        done = rankbeam("validate", path)
        problem = "no reference answer has expected_steps, so there is no value of TrajectoryExact; 1 row has steps,"
        assert (done.status, problem in done.stderr) == (0, are_missing), done.stderr
