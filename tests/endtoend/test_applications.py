"""Deployed applications: one call answers a query with its contexts, under quota, ledger and retries."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.inputs import trec_qrels, write
from support.runs import evaluated

from rankbeam import evaluate as evaluate_here

DATA = {
    "q1": ("Who pays?", "Owners pay. Guests pay, too.", ["owners", "weather"], "en"),
    "q2": ("How does it open?", "With a code.", ["doors"], "de"),
    "q3": ("Is it green?", "It is green.", [], "en"),
}
TEXTS = {"owners": "Owners pay the invoices.", "weather": "It rains.", "doors": "The door opens with a code."}
REFERENCES = {"q1": "Owners pay.", "q2": "With a code.", "q3": "It is green."}
METRICS = ["nDCG@3", "Faithfulness", "ContextRecall", "ClaimRecall"]


class Application:
    """A small RAG application; every request whose number is in `faults` gets that status or body."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.cut = 0  # number of streams that end in the middle
        self.faults: dict[int, int | bytes] = {}
        self._lock = Lock()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        with self._lock:
            self.requests.append({"path": path, **body})
            fault = self.faults.get(len(self.requests))
        if isinstance(fault, int):
            return fault, b"{}"
        if path.startswith("/apps/"):
            return 200, b"{}"
        if path == "/run":
            return 200, json.dumps(self.events(body)).encode()
        if body.get("stream"):
            with self._lock:
                self.cut -= 1
            return 200, self.stream(body, cut=self.cut >= 0)
        return 200, fault if fault is not None else json.dumps(self.answer(path, body)).encode()

    @staticmethod
    def events(body: dict[str, Any]) -> list[dict[str, Any]]:
        question = body["newMessage"]["parts"][0]["text"]
        _, answer, ids, _ = next(entry for entry in DATA.values() if entry[0] == question)
        response = {"results": [{"id": name, "text": TEXTS[name]} for name in ids]}
        usage = {"promptTokenCount": 46, "toolUsePromptTokenCount": 4, "thoughtsTokenCount": 3}
        return [
            {"author": "a", "content": {"parts": [{"functionCall": {"name": "search"}}]}},
            {"author": "a", "content": {"parts": [{"functionResponse": {"name": "search", "response": response}}]}},
            {"author": "a", "content": {"parts": [{"text": answer}]}, "usageMetadata": usage},
        ]

    def stream(self, body: dict[str, Any], *, cut: bool) -> bytes:
        whole = self.answer("completions", body)
        message = whole["choices"][0]["message"]
        parts = [{"delta": {"content": word, "context": message["context"]}} for word in message["content"].split(" ")]
        for part in parts[1:]:
            part["delta"] = {"content": f" {part['delta']['content']}"}
        chunks = [{"choices": [part]} for part in parts] + [{"choices": [], "usage": whole["usage"]}]
        lines = [": comment", *(f"data: {json.dumps(chunk)}\n" for chunk in chunks[: 1 if cut else None])]
        return "\n".join([*lines, *([] if cut else ["data: [DONE]\n\n"])]).encode()

    @staticmethod
    def answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
        question = body["messages"][-1]["content"] if path.endswith("completions") else body["question"]
        _, answer, ids, _ = next(entry for entry in DATA.values() if entry[0] == question)
        sources = [{"id": name, "snippet": TEXTS[name]} for name in ids]
        if path.endswith("completions"):
            context = {"citations": [{"content": entry["snippet"]} for entry in sources]}
            message = {"role": "assistant", "content": answer, "context": context}
            return {"choices": [{"message": message}], "usage": {"prompt_tokens": 100, "completion_tokens": 7}}
        return {"result": {"text": answer, "sources": sources}, "usage": {"in": 90, "out": 8}}


@contextmanager
def serving() -> Iterator[tuple[str, Application]]:
    application = Application()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = application.reply(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            application.deleted.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", application
        server.shutdown()


def asking(url: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "http", "url": f"{url}/ask", "version": "1", "body": {"question": "{query}"},
        "answer": "result.text", "results": "result.sources", "id": "id", "text": "snippet",
        "usage": {"input": "usage.in", "output": "usage.out"}, **more,
    }  # fmt: skip


def written(folder: Path, *answers: dict[str, Any], **more: Any) -> str:
    lines = [{"_id": name, "text": entry[0], "reference": REFERENCES[name], "language": entry[3]}
             for name, entry in DATA.items()]  # fmt: skip
    write(folder / "queries.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    write(folder / "qrels.txt", trec_qrels([("q1", "owners", 1), ("q2", "doors", 1), ("q3", "weather", 1)]))
    experiment: dict[str, Any] = {
        "name": "e", "dataset": {"queries": "queries.jsonl", "qrels": "qrels.txt", "answers": "reference"},
        "services": {"overlap": {"type": "lexical"}}, "judge": {"service": "overlap", "repeat_share": 0},
        "configurations": [{"name": f"app{place}", "answers": entry} for place, entry in enumerate(answers)],
        "quotas": {kind: {"requests_per_minute": 60_000, "price_per_1000": 2,
                          "price_per_million": {"input": 10, "output": 20}}
                   for kind in {entry["type"] for entry in answers} & {"http", "openai_chat"}},
        "metrics": METRICS, "statistics": {"replicates": 0}, "max_failure_rate": 0.5, "output": {"path": "out"},
    }  # fmt: skip
    return write(folder / "e.yaml", yaml.safe_dump({**experiment, **more}))


def evaluate(folder: Path, *answers: dict[str, Any], command: str = "evaluate", **more: Any) -> Outcome:
    return rankbeam(command, written(folder, *answers, **more))


def values(folder: Path, name: str) -> dict[tuple[str, str], tuple[float | None, str]]:
    ids = {row["config_id"]: row["name"] for row in pq.read_table(folder / "out" / "configurations").to_pylist()}
    return {
        (row["query_id"], entry["metric"]): (entry["value"], entry["status"] or row["status"])
        for row in pq.read_table(folder / "out" / "query_metrics").to_pylist()
        if ids[row["config_id"]] == name
        for entry in row["metrics"]
    }


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = pq.read_table(folder / "out" / table).to_pylist()
    return sorted(result, key=lambda row: str(row.get("query_id")))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Application]:
    """The folder of an experiment with an application and with the same answers in a file, and what was requested."""
    folder = tmp_path_factory.mktemp("compared")
    lines = [
        {"query_id": name, "answer": answer, "contexts": [{"doc_id": entry, "text": TEXTS[entry]} for entry in ids]}
        for name, (_, answer, ids, _) in DATA.items()
    ]
    write(folder / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    with serving() as (url, application):
        own = asking(url, citations="result.sources[-1:].id")
        evaluated(written(folder, own, {"type": "replay", "path": "answers.jsonl"}))
    return folder, application


@pytest.fixture
def experiment(compared: tuple[Path, Application], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same without its applications, in the folder where this process works."""
    for name in ("e.yaml", "queries.jsonl", "qrels.txt"):
        shutil.copy(compared[0] / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load(Path("e.yaml").read_text())
    return {key: value for key, value in content.items() if key not in ("configurations", "quotas", "output")}


def test_values_are_those_of_the_same_answers_in_a_file(compared: tuple[Path, Application]) -> None:
    folder, application = compared
    assert values(folder, "app0") == values(folder, "app1")
    assert sorted(entry["question"] for entry in application.requests) == sorted(entry[0] for entry in DATA.values())
    requested, replayed = (
        [row for row in rows(folder, "answers") if (row["seconds"] is None) == is_null] for is_null in (False, True)
    )
    assert [(row["input_tokens"], row["output_tokens"]) for row in requested] == [(90, 8)] * 3
    assert [row["citations"] for row in requested] == [ids[-1:] for _, _, ids, _ in DATA.values()]
    assert [row["cost"] for row in requested] == pytest.approx([0.002 + (90 * 10 + 8 * 20) / 1e6] * 3)
    assert all(row["seconds"] > 0 for row in requested)
    names_kept = ("query_id", "answer", "contexts", "status")
    assert [{name: row[name] for name in names_kept} for row in requested] == [
        {name: row[name] for name in names_kept} for row in replayed
    ]


@pytest.mark.long
def test_faults_are_retried_a_second_run_asks_nothing_and_wrong_replies_fail_their_query_only(tmp_path: Path) -> None:
    with serving() as (url, application):
        planned = evaluate(tmp_path, asking(url), command="plan")
        assert "http: 3 calls to make" in planned.stdout, planned.stderr
        assert "overlap: " in planned.stdout  # calls of the judge, with imagined answers
        application.faults = {1: 503, 3: 429}
        evaluated(written(tmp_path, asking(url)), "first-run")
        assert len(application.requests) == 5
        good = values(tmp_path, "app0")
        before = [row["seconds"] for row in rows(tmp_path, "answers")]
        again = evaluate(tmp_path, asking(url))
        assert len(application.requests) == 5
        planned = evaluate(tmp_path, asking(url), command="plan")
        assert "http: 0 calls to make" in planned.stdout
        application.requests.clear()
        application.faults = dict.fromkeys((1, *range(4, 9)), b"<html>Login</html>")
        evaluated(written(tmp_path, asking(url, version="2"), max_failure_rate=1.0), "wrong")
        assert {entry["question"] for entry in application.requests} == {entry[0] for entry in DATA.values()}
    assert again.status == 0, again.stderr
    assert good == {key: value for key, value in good.items() if value[1] != "failed"}
    assert {row["query_id"] for row in rows(tmp_path, "failures")} <= set(DATA)
    assert [row["seconds"] for row in rows(tmp_path, "answers") if row["run_id"] in again.stdout] == before
    head, _, line = (entry.split() for entry in again.stdout.split("application ")[1].splitlines()[:3])
    assert head == ["answers", "p50", "p95", "input", "tokens", "output", "tokens", "cost"]
    assert (line[0], line[1], line[-3:]) == ("app0", "3", ["270", "24", "0.01318"])  # five calls


def test_requests_hold_ids_and_attributes_the_grid_changes_them_and_a_path_without_tokens_is_named(
    tmp_path: Path,
) -> None:
    body = {"question": "{query}", "session": "{query_id}-{attempt}", "language": "{language}"}
    bodies = {"short": {**body, "top_k": 3}, "long": {**body, "top_k": 5}}
    paths = {"input": "usage.in", "output": "usage.output_tokens", "cached": "usage.cached"}
    with serving() as (url, application):
        system = {key: value for key, value in asking(url, usage=paths).items() if key != "body"}
        done = evaluate(tmp_path, system, grid={"body": bodies})
        assert done.status == 0, done.stderr
        sent = {(entry["session"], entry["language"], entry["top_k"]) for entry in application.requests}
    assert sent == {(f"{name}-1", entry[3], top_k) for name, entry in DATA.items() for top_k in (3, 5)}
    problem = f"{url}/ask: no reply has output tokens at usage.output_tokens (usage: output), so they count as 0"
    assert problem in " ".join(done.stderr.split())
    assert done.stderr.count("no reply has") == 1
    assert [warning for row in rows(tmp_path, "runs") for warning in row["warnings"] if problem in warning]


@pytest.mark.long
def test_a_path_without_contexts_is_named_also_for_answers_in_the_ledger(tmp_path: Path) -> None:
    with serving() as (url, application):
        for paths in (["result.souces"], ["result.sauces", "result.sources"]):
            results = evaluated(written(tmp_path, *(asking(url, results=path) for path in paths)))
            (named,) = (text for text in results.run["warnings"] if "no answer has contexts" in text)
            assert named.startswith(f"app0: no answer has contexts at {paths[0]}, so")
        assert len(application.requests) == len(DATA)


@pytest.mark.long
def test_chat_endpoints_streams_and_agents_of_adk_answer_with_their_contexts(tmp_path: Path) -> None:
    with serving() as (url, application):
        application.cut = 1
        chat = {"type": "openai_chat", "url": f"{url}/v1/chat/completions"}
        whole = {**chat, "model": "agent", "contexts": "choices[0].message.context.citations"}
        stream = {**chat, "version": "1", "contexts": "choices[0].delta.context.citations", "stream": True}
        adk = {"type": "adk", "url": url, "app": "my agent", "version": "1", "contexts": "results", "id": "id"}
        done = evaluate(tmp_path, stream, whole, adk)
    assert done.status == 0, done.stderr
    names = {row["config_id"]: row["name"] for row in rows(tmp_path, "configurations")}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for row in rows(tmp_path, "answers"):
        answers[names[row["config_id"]]].append(row)

    chats = [request for request in application.requests if request["path"].startswith("/v1")]
    assert [request["model"] for request in chats if "stream" not in request] == ["agent"] * 3
    assert "without version:" in done.stderr
    first = answers["app1"][0]
    assert (first["answer"], first["input_tokens"], len(first["contexts"])) == (DATA["q1"][1], 100, 2)
    statuses = {row["status"] for row in rows(tmp_path, "query_metrics") if names[row["config_id"]] == "app1"}
    assert statuses <= {"missing", "empty"}  # no ids

    assert len([request for request in chats if "stream" in request]) == 4  # one was cut in the middle
    for row, (_, answer, ids, _) in zip(answers["app0"], DATA.values(), strict=True):
        assert (row["answer"], len(row["contexts"]), row["output_tokens"]) == (answer, len(ids), 7)
        assert 0 < row["first_token_s"] <= row["seconds"]
    table = done.stdout.split("application ")[1].splitlines()
    assert "first token p50" in table[0]
    # Configurations with equal values share a row of the leaderboard, but not their durations and tokens.
    assert {line.split()[0] for line in table[2:5]} == {"app0", "app1", "app2"}
    usage = (tmp_path / "out" / "report.html").read_text().partition('id="usage-title"')[2].partition("<h2")[0]
    assert [f"<bdi>{name}</bdi></th>" in usage for name in ("app0", "app1", "app0 = app1")] == [True, True, False]

    created = [request["path"] for request in application.requests if request["path"].startswith("/apps/")]
    assert len(created) == 3
    assert sorted(created) == sorted(application.deleted)
    assert all(path.startswith("/apps/my%20agent/users/rankbeam/sessions/rankbeam-") for path in created)
    sessions = {request["sessionId"] for request in application.requests if request["path"] == "/run"}
    assert sessions == {path.rpartition("/")[2] for path in created}
    for row, (_, answer, ids, _) in zip(answers["app2"], DATA.values(), strict=True):
        found_ids = [context["doc_id"] for context in row["contexts"]]
        assert (row["answer"], found_ids, row["input_tokens"], row["output_tokens"]) == (answer, ids, 50, 3)


def test_a_reply_without_the_answer_is_a_failed_query_that_names_the_path(tmp_path: Path) -> None:
    with serving() as (url, application):
        application.faults = dict.fromkeys(range(1, 100), b'{"result": {}}')
        quotas = {"http": {"requests_per_second": 1000, "attempts": 1}}
        evaluated(written(tmp_path, asking(url), max_failure_rate=1.0, quotas=quotas))
    messages = {row["message"] for row in rows(tmp_path, "failures") if row["stage"] == "retrieve"}
    assert messages == {'answer: result.text is missing, found {"result": {}}'}
    assert {status for _, status in values(tmp_path, "app0").values()} == {"failed"}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"url": "ftp://x/ask"}, "answers.url: write http:// or https://"),
        ({"answer": "a["}, "answers.answer: 'a[' is not valid JMESPath"),
        ({"usage": {"tokens": "a"}}, "answers.usage: has 'tokens'; it takes input, output, cached"),
        ({"body": {"question": "fixed"}}, "contains {query}"),
        ({"body": {"question": "{query}", "language": "{langage}"}}, "no query has this attribute; did you mean"),
        ({"type": "htp"}, "unknown type 'htp'; did you mean 'http'?"),
        ({"anser": "a"}, "did you mean"),
        ({"headers": {"Authorization": "Bearer abc"}}, "${env:"),
    ],
)
def test_a_wrong_application_is_refused_before_anything_is_asked(
    tmp_path: Path, wrong: dict[str, Any], problem: str
) -> None:
    with serving() as (url, application):
        done = evaluate(tmp_path, {**asking(url), **wrong})
    assert (done.status, application.requests) == (2, [])
    assert problem in done.stderr


class Node:
    """A document as LangChain, LlamaIndex and Haystack have it."""

    def __init__(self, name: str, text: str) -> None:
        self.id, self.content = name, text


def answered(query: str) -> dict[str, Any]:
    _, answer, ids, _ = next(entry for entry in DATA.values() if entry[0] == query)
    return {"answer": answer, "contexts": [Node(name, TEXTS[name]) for name in ids]}


@pytest.mark.long
def test_python_functions_are_applications(compared: tuple[Path, Application], experiment: dict[str, Any]) -> None:
    expected = values(compared[0], "app0")
    calls: list[str] = []

    async def slow(query: str, attributes: dict[str, str]) -> dict[str, Any]:
        calls.append(query)
        assert attributes["language"] == DATA[attributes["query_id"]][3]
        return answered(query)

    class Chain:
        def invoke(self, query: str) -> dict[str, Any]:
            return answered(query)

    systems = {"slow": slow, "plain": answered, "chain": Chain()}
    for _ in range(2):
        result = evaluate_here(experiment, output="again", system=systems, version="1")
        assert len(calls) == 3
        rows = result.per_query().to_pylist()
        for name in systems:
            result = {(row["query_id"], row["metric"]): (row["value"], row["status"]) for row in rows
                     if row["configuration"] == name}  # fmt: skip
            assert result == expected
    evaluate_here(experiment, output="again", system={"slow": slow})
    assert len(calls) == 6


@pytest.mark.long
def test_what_a_function_raises_fails_its_query(experiment: dict[str, Any]) -> None:
    def system(query: str) -> Any:
        if query == DATA["q1"][0]:
            raise KeyError("no index")
        return {"answer": None} if query == DATA["q2"][0] else {"answer": "Owners.", "contexts": ["Owners pay."]}

    result = evaluate_here(experiment, output="failing", system=system, max_failure_rate=1.0)
    failed = {row["query_id"] for row in result.per_query().to_pylist() if row["status"] == "failed"}
    assert failed == {"q1", "q2"}
    unranked = "system: 1 answer has no contexts, or contexts without an id, so metrics of rankings are missing there"
    assert f"{unranked}; give every context an id" in result.warnings
    result = evaluate_here(experiment, output="bare", system=lambda _: "Owners pay.")
    missing = "system: no answer has contexts, so judges and metrics see none; return them as contexts"
    assert missing in result.warnings
    with pytest.raises(TypeError, match="neither a function nor an object"):
        evaluate_here(experiment, output="none", system=3)
