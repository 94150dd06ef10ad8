"""Control characters that a server sends act on no terminal: they are spelled out wherever its words are shown."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.json_server import responding
from support.remote import answers, dataset, failure_rows, write_experiment

from rankbeam.transforms.records.errors import CallError, FailureKind, InputError

QUERIES = 30
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "\x07\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\x00\rrankbeam: all is well\x85\x7f"


@pytest.mark.long
@pytest.mark.parametrize("status", [403, *in_campaigns(200, 500)])
def test_of_a_service(status: int, tmp_path: Path) -> None:
    rankings = answers(QUERIES)
    received: list[str] = []

    def respond(query: str) -> tuple[int, bytes]:
        evil = EVIL.encode() if status != 200 else json.dumps({"hits": EVIL}, ensure_ascii=False).encode()
        received.append(query)  # a first call that is refused ends the run
        refused = "question 3" if received[0] != "question 3" else "question 4"
        return (status, evil) if query == refused else (200, json.dumps({"hits": rankings[query]}).encode())

    with responding(respond) as (url, _):
        retriever = {"type": "http", "url": url, "results": "hits", "id": "id"}
        base = {"dataset": dataset(tmp_path, QUERIES), "configurations": [{"name": "a", "retriever": retriever}]}
        base |= {"quotas": {"http": {"requests_per_minute": 60_000, "attempts": 2}}}
        outcome = rankbeam("evaluate", write_experiment(tmp_path, base), "--run-id", "r1")
    assert outcome.status == 0, outcome.stderr
    (row,) = failure_rows(tmp_path / "out", "r1")
    assert "\\u202egnp.exe" in outcome.stderr
    for shown in (outcome.stderr, outcome.stdout, row["message"]):
        assert ACTING.findall(shown) == []
    assert "\n" not in row["message"]


@given(st.text(st.one_of(st.characters(), st.sampled_from(EVIL))))
def test_no_message_holds_any(text: str) -> None:
    call = CallError(FailureKind.INVALID, text)
    refused = InputError(text, path="e.yaml", line=3)
    again = InputError(refused.problem)
    for shown in (str(call), call.message, str(refused), refused.problem):
        assert ACTING.findall(shown) == []
    assert str(again) == refused.problem
    assert re.search("[\n\t]", call.message) is None
