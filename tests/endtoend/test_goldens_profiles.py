"""Profiles that a model suggests from a sample of the documents: a file that is refused until a person accepts it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines
from support.inputs import write
from support.standin_models import KEY, service
from support.standins import Standin, serve

from rankbeam.pipelines.goldens.load import load_goldens
from rankbeam.pipelines.goldens.rounds import plan_of
from rankbeam.transforms.goldens.planning import sample_spans


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        yield server


def file(folder: Path, server: Standin, rows: list[dict[str, str]] | None = None, **more: Any) -> str:
    prices = {"requests_per_minute": 60_000, "price_per_million": {"input": 1, "output": 1}}
    base = {
        "documents": corpus(folder, documents(24) if rows is None else rows),
        "services": {"model": service("openai", server)},
        "writer": "model",
        "checker": "model",
        "types": ["lookup"],
        "reviews": {"pool": 0, "closed_book": False},
        "quotas": {"openai": prices},
        "profiles": "suggested.json",
    }
    return goldens_file(folder, **base | more)


@pytest.mark.long
def test_suggested_profiles_are_refused_until_a_person_accepts_them(tmp_path: Path, server: Standin) -> None:
    path, target = file(tmp_path, server), tmp_path / "suggested.json"
    planned = rankbeam("goldens", "profiles", path, "--sample", "5", "--plan")
    assert "5 texts of 5 documents to model; 1 call, about " in planned.stdout, planned.stderr
    assert server.stats().calls == 0
    outcome = rankbeam("goldens", "profiles", path, "--sample", "5")
    assert outcome.status == 0, outcome.stderr
    assert "suggested.json: Goal (2 values), Of 5 (2 values); read and edit it" in outcome.stdout
    content = json.loads(target.read_text())
    assert content["accepted"] is False
    assert content["suggested_by"]["model_version"]
    goldens = load_goldens(path, profiles=False)
    assert content["documents"] == [span.doc_id for span in sample_spans(plan_of(goldens), 5)]
    for words in (["goldens", path], ["goldens", "plan", path]):
        refused = rankbeam(*words)
        assert refused.status == 2
        assert "suggested.json:2: accepted: a model suggested these profiles; read and edit them" in refused.stderr
    assert server.stats().calls == 1
    target.write_text(target.read_text().replace('"accepted": false', '"accepted": true'))
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    metadata = [row["metadata"] for row in lines(tmp_path / "out" / "queries.jsonl")]
    for name in ("profile_goal", "profile_of_5"):
        assert sorted(row[name] for row in metadata) == ["long"] * 4 + ["short"] * 4


def test_a_suggestion_is_paid_once_and_never_replaces_a_file(tmp_path: Path, server: Standin) -> None:
    path, target = file(tmp_path, server, profiles=None), tmp_path / "profiles.json"
    assert rankbeam("goldens", "profiles", path).status == 0
    again = rankbeam("goldens", "profiles", path)
    assert again.status == 2
    assert "profiles.json: exists; delete it, or name another file with --output" in again.stderr
    first = target.read_bytes()
    target.unlink()
    assert "0 calls, 1 in the ledger; cost 0" in rankbeam("goldens", "profiles", path, "--plan").stdout
    assert rankbeam("goldens", "profiles", path).status == 0
    assert target.read_bytes() == first
    assert server.stats().calls == 1


def test_dimensions_that_share_a_column_are_malformed_and_leave_no_file(tmp_path: Path, server: Standin) -> None:
    rows = [row | {"text": f"{row['text']} lie=repeated"} for row in documents(24)]
    outcome = rankbeam("goldens", "profiles", file(tmp_path, server, rows))
    assert outcome.status == 3
    assert "no profiles were suggested: malformed: " in outcome.stderr
    assert "the name 'goal' occurs twice" in outcome.stderr
    assert not (tmp_path / "suggested.json").exists()
    values = {"a": {"description": ""}}
    twice = {"parameters": {"User role": {"values": values}, "user-role": {"values": values}}}
    write(tmp_path / "suggested.json", json.dumps(twice, indent=1))
    refused = rankbeam("goldens", "plan", file(tmp_path, server))
    assert "suggested.json:10: parameters.user-role: 'user-role' has the column of another dimension" in refused.stderr


def test_a_call_above_the_budget_and_a_writer_without_a_model_are_refused(tmp_path: Path, server: Standin) -> None:
    outcome = rankbeam("goldens", "profiles", file(tmp_path, server, max_cost=0.0001))
    assert outcome.status == 2
    assert "max_cost: is 0.0001, and the calls are planned to cost 0.00" in outcome.stderr
    offline = rankbeam("goldens", "profiles", goldens_file(tmp_path))
    assert offline.status == 2
    assert "writer: the writer 'sentences' is word overlap, no language model, and suggests" in offline.stderr
    assert server.stats().calls == 0


def test_the_sample_takes_topics_in_turn(tmp_path: Path, server: Standin) -> None:
    plan = plan_of(load_goldens(file(tmp_path, server), profiles=False))
    topics = [plan.library.topics[span.doc_id] for span in sample_spans(plan, len(plan.strata))]
    assert sorted(topics) == sorted({*plan.library.topics.values()})
    assert len(sample_spans(plan, 10_000)) == len(plan.library.spans)
