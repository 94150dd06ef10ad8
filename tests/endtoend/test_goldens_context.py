"""Context found over the whole corpus and distilled: questions may rest on sentences of further documents."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.remote import http
from support.standin_models import KEY, service
from support.standins import Faults, serve

from rankbeam.pipelines.goldens.load import load_goldens
from rankbeam.pipelines.goldens.models import ContextModel
from rankbeam.pipelines.goldens.plan import costs_of
from rankbeam.pipelines.goldens.rounds import RoundSearches, plan_of
from rankbeam.transforms.clients.models.offline import Extractive
from rankbeam.transforms.goldens.asking import ParsedReply, WriterAndChecker
from rankbeam.transforms.goldens.distilling import EnlargeClues, EnlargedClue
from rankbeam.transforms.goldens.records import forms
from rankbeam.transforms.goldens.records.items import CallRecord, SourceSpan, WritingTask
from rankbeam.transforms.judge.judge import Model
from rankbeam.transforms.records.errors import CallError, FailureKind

FINAL = ("safety", "truncated")


def keys(folder: Path, server: Any, **more: Any) -> dict[str, Any]:
    return {
        "documents": corpus(folder, documents(24)),
        "services": {"model": service("openai", server)},
        "writer": "model",
        "checker": "model",
        "items": 8,
        "types": ["lookup", "multi_hop"],
        "context": 2,
        "reviews": {"pool": 0, "closed_book": False},
        "quotas": {"openai": {"requests_per_minute": 60_000}},
        **more,
    }


def steps_of(out: Path) -> list[list[str]]:
    return [[call["step"] for call in row["calls"]] for row in lines(out / "provenance.jsonl")]


@pytest.mark.long
def test_questions_rest_on_sentences_of_further_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        planned = rankbeam("goldens", "plan", goldens_file(tmp_path, **keys(tmp_path, server)))
        outcome = rankbeam("goldens", goldens_file(tmp_path, **keys(tmp_path, server)))
    assert "distill: 16" in planned.stdout
    assert outcome.status == 0, outcome.stderr
    out = tmp_path / "out"
    assert all(steps.count("distill") == 2 for steps in steps_of(out))
    spans = {
        row["query_id"]: {name.rpartition("#")[0] for name in row["spans"]} for row in lines(out / "provenance.jsonl")
    }
    resting: dict[str, set[str]] = {}
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    for piece in lines(out / "evidence.jsonl"):
        assert texts[piece["doc_id"]][piece["start"] : piece["end"]] == piece["quote"]
        resting.setdefault(piece["query_id"], set()).add(piece["doc_id"])
    assert all(spans[query] <= sentences for query, sentences in resting.items())
    assert any(sentences - spans[query] for query, sentences in resting.items())
    assert json.loads((out / "about.json").read_text())["context"] == 2


@pytest.mark.campaign
def test_a_passage_that_a_model_refuses_adds_no_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai", faults=Faults(contents=0.2, content_kinds=FINAL)) as server:
        outcome = rankbeam("goldens", goldens_file(tmp_path, **keys(tmp_path, server)))
    assert outcome.status in (0, 3), outcome.stderr
    assert any(steps.count("distill") < 2 for steps in steps_of(tmp_path / "out"))


@pytest.mark.long
def test_a_second_pass_distills_all_passages_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        path = goldens_file(tmp_path, **keys(tmp_path, server, context={"passages": 2, "overall": True}))
        planned, outcome = rankbeam("goldens", "plan", path), rankbeam("goldens", path)
    assert "distill: 24" in planned.stdout
    assert outcome.status == 0, outcome.stderr
    assert all(steps.count("distill") == 3 for steps in steps_of(tmp_path / "out"))
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["context"] == {"passages": 2, "neighbours": 0, "by": "bm25", "overall": True, "enlarged": False}


def test_neighbours_of_a_passage_belong_to_its_context(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, documents={"path": corpus(tmp_path, documents(24)), "span_tokens": 50}, context=2)
    goldens = load_goldens(path, str(tmp_path / "out"))
    wide = replace(goldens, context=ContextModel(passages=2, neighbours=1))
    library = plan_of(goldens).library
    sources = plan_of(goldens).round(1, [], ())
    finding = (RoundSearches(one, library, str(tmp_path), lambda *_: ()) for one in (goldens, wide))
    narrow, widened = (one.with_context(sources, 1) for one in finding)
    texts = {document.id: document.text for document in library.documents}
    for alone, together in zip(narrow, widened, strict=True):
        for passage, wider in zip(alone.context, together.context, strict=True):
            places = sorted((one.start, one.end) for one in library.passages if one.doc_id == passage.doc_id)
            at = places.index((passage.start, passage.end))
            assert (wider.start, wider.end) == (places[max(0, at - 1)][0], places[min(len(places) - 1, at + 1)][1])
            assert wider.text == texts[wider.doc_id][wider.start : wider.end]
    assert widened != narrow


@pytest.mark.parametrize("pooled", [0, 2])
def test_a_pool_that_needs_pairs_of_characters_is_named(pooled: int, tmp_path: Path) -> None:
    texts = ["用户可以在结算页面下载发票。", "管理员必须在结算页面重置密码。"]
    rows = [{"_id": str(number), "text": f"{text}每月第一天在结算页面发送发票。"} for number, text in enumerate(texts)]
    keys: dict[str, Any] = {"types": ["lookup"], "reviews": {"pool": pooled}}
    goldens = load_goldens(goldens_file(tmp_path, documents=corpus(tmp_path, rows), context=1, **keys))
    plan = plan_of(goldens)
    finding = RoundSearches(goldens, plan.library, str(tmp_path), lambda *_: ())
    assert any(source.context for source in finding.with_context(plan.round(1, [], ()), 1))
    notes = [note.partition(" are in scripts")[0] for note in finding.warnings]
    assert notes == (["reviews.pool: 100% of the terms"] if pooled else [])


def test_all_questions_about_two_texts_are_planned_to_be_checked(tmp_path: Path) -> None:
    goldens = load_goldens(goldens_file(tmp_path, context=2, items=4, types=["comparison", "multi_hop"]))
    steps = {step.step: step.calls[0] for pool in costs_of(goldens, plan_of(goldens)).pools for step in pool.steps}
    assert steps["question"] == steps["checks"] == steps["support"] == 4


@pytest.mark.long
def test_an_enlarged_clue_is_searched_for_instead_of_the_span(tmp_path: Path) -> None:
    more: dict[str, Any] = {"items": 6, "context": {"passages": 2, "enlarged": True}, "reviews": {"pool": 0}}
    planned = rankbeam("goldens", "plan", goldens_file(tmp_path, **more))
    outcome = rankbeam("goldens", goldens_file(tmp_path, **more))
    before = stable(tmp_path / "out")
    again, later = (rankbeam("goldens", *words, goldens_file(tmp_path, **more)) for words in ([], ["plan"]))
    assert re.search(r"enlarge: 6 to 12 calls", planned.stdout), planned.stdout
    assert outcome.status == 0, outcome.stderr
    assert "(0 calls, " in again.stdout
    assert stable(tmp_path / "out") == before
    assert re.search(r"enlarge: .*6 in the ledger", later.stdout), later.stdout


def test_a_clue_is_its_example_and_its_description_or_says_why_there_is_none() -> None:
    asking = WriterAndChecker(*[Model(name, "extractive", Extractive()) for name in ("writer", "checker")])
    source = WritingTask((SourceSpan("d", 0, 4, "Fees are due in May."),), ())
    works = EnlargeClues(asking)
    for outcome, clue in (
        (ParsedReply("an example of it", CallRecord("", "", "", "")), EnlargedClue(source.name, "an example of it")),
        (CallError(FailureKind.BLOCKED, "no"), EnlargedClue(source.name, failure="blocked: no")),
    ):
        steps = works.steps(source)
        (call,) = next(steps)
        assert "Fees are due in May." in call.payload
        with pytest.raises(StopIteration) as ended:
            steps.send([outcome])
        assert ended.value.value == clue
    assert forms.parse_reply("enlarge", {}, '{"description": "Of fees.", "example": "May."}') == "May. Of fees."


@pytest.mark.parametrize("faults", [None, Faults(rate=0.1, kinds=("unavailable",))])
@pytest.mark.campaign
def test_services_of_the_pool_find_the_context(faults: Faults | None, tmp_path: Path) -> None:
    names = [row["_id"] for row in documents(24)]
    with serve("http", documents=names, faults=faults) as searched:
        retrievers = {"documents": 6, "retrievers": [http(searched)]}
        more: dict[str, Any] = {"items": 6, "types": ["lookup"], "quotas": {"http": {"requests_per_minute": 6000}}}
        more |= {"context": {"passages": 2, "by": "pool"}, "reviews": {"pool": retrievers}}
        planned = rankbeam("goldens", "plan", goldens_file(tmp_path, **more))
        outcome = rankbeam("goldens", goldens_file(tmp_path, **more))
        calls, before = searched.stats().calls, stable(tmp_path / "out")
        again = rankbeam("goldens", goldens_file(tmp_path, **more))
        assert searched.stats().calls == calls
    assert "search: 12 calls" in planned.stdout or "search: 12 to" in planned.stdout
    assert outcome.status == 0, outcome.stderr
    assert calls >= 12
    assert "(0 calls, " in again.stdout
    assert stable(tmp_path / "out") == before


def test_a_context_that_the_pool_cannot_find_is_refused(tmp_path: Path) -> None:
    outcome = rankbeam("goldens", goldens_file(tmp_path, context={"passages": 2, "by": "pool"}, reviews={"pool": 1}))
    assert outcome.status == 2
    assert "context.by: pool needs reviews.pool with at least as many documents as context.passages" in outcome.stderr


@pytest.mark.long
def test_a_model_without_language_distills_by_words(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, context=2, items=6, reviews={"pool": 0})
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    before = stable(tmp_path / "out")
    assert "(0 calls, " in rankbeam("goldens", path).stdout
    assert stable(tmp_path / "out") == before
    questions = [row["text"] for row in lines(tmp_path / "out" / "queries.jsonl")]
    assert not any("further document" in question for question in questions)
