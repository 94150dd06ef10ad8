"""Answers that users should not see: cut by a limit or a filter, or with a model's thoughts."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.inputs import write
from support.json_server import responding

from rankbeam.transforms.clients.retrievers.applications.ask import AdkApplication, ChatApplication

REPLIES = {
    "Who pays?": ("Owners pay for", "length"),
    "And who else?": ("Guests may", "length"),
    "How?": ("With", "content_filter"),
    "Where?": ("The user asks for a place.</think>In the office.", "stop"),
}
LENGTH = "app: 2 answers ended early (finish reason: length); judges and metrics take what there is"
FILTER = "app: 1 answer ended early (finish reason: content_filter)"
THOUGHTS = "1 answer with a model's thoughts (<think>)"


def reply(query: str) -> tuple[int, bytes]:
    text, finish = REPLIES[query]
    return 200, json.dumps({"choices": [{"message": {"content": text}, "finish_reason": finish}]}).encode()


def evaluate(folder: Path, url: str, **judge: Any) -> Outcome:
    rows = [{"_id": f"q{place}", "text": text, "reference": "Owners."} for place, text in enumerate(REPLIES)]
    write(folder / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    rows = [{"query_id": row["_id"], "answer": "<think>Hm"[: 9 if row["_id"] == "q0" else 0] + "Ok."} for row in rows]
    write(folder / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    chat = {"type": "openai_chat", "url": url, "version": "1", "body": {"query": "{query}"}}
    experiment = {
        "name": "e", "dataset": {"queries": "queries.jsonl", "answers": "reference"}, **judge,
        "configurations": [
            {"name": "app", "answers": chat},
            {"name": "file", "answers": {"type": "replay", "path": "answers.jsonl"}},
        ],
        "quotas": {"openai_chat": {"requests_per_minute": 60_000}},
        "metrics": ["ClaimRecall"] if judge else ["TokenF1"], "statistics": {"replicates": 0},
        "output": {"path": "out"},
    }  # fmt: skip
    return rankbeam("evaluate", write(folder / "e.yaml", yaml.safe_dump(experiment)))


@pytest.mark.long
def test_cut_answers_and_thoughts_are_counted_also_for_answers_in_the_ledger(tmp_path: Path) -> None:
    judge = {"services": {"overlap": {"type": "lexical"}}, "judge": {"service": "overlap", "repeat_share": 0}}
    with responding(reply) as (url, log):
        for is_judged in (False, True, False):
            done = evaluate(tmp_path, url, **(judge if is_judged else {}))
            stderr = " ".join(done.stderr.split())
            assert done.status == 0, stderr
            for warning in (LENGTH, FILTER, f"app: {THOUGHTS}", f"file: {THOUGHTS}"):
                assert stderr.count(warning) == 1, stderr
            assert stderr.count("ended early") == stderr.count("model's thoughts") == 2
        assert len(log) == len(REPLIES)


def test_streams_and_agents_of_adk_say_why_they_ended() -> None:
    chat = ChatApplication(url="http://localhost/", stream=True)
    events: list[Any] = [{"choices": [{"delta": {"content": "Owners"}}]}, {"choices": []}]
    adk = AdkApplication(url="http://localhost/", app="a")
    event = {"content": {"parts": [{"text": "Owners"}]}}
    for finish, cut in (("length", "length"), ("stop", None), ("tool_calls", None)):
        events[1:1] = [{"choices": [{"delta": {}, "finish_reason": finish}]}]
        streamed = {"seconds": 1, "reply": {"first_token_s": 1, "events": events}}
        assert chat.read(json.dumps(streamed)).cut == cut
        del events[1]
    for finish, cut in (("MAX_TOKENS", "MAX_TOKENS"), ("STOP", None), (None, None)):
        assert adk.read(json.dumps({"seconds": 1, "reply": [{**event, "finishReason": finish}]})).cut == cut
