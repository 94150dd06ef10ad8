"""The plan: quotas of strata and types, the same for equal seeds, and met in later rounds."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.goldens import documents

from rankbeam.transforms.goldens.documents import Document
from rankbeam.transforms.goldens.library import Library, library_of
from rankbeam.transforms.goldens.origins import GatheredDocuments
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.goldens.planning import ROUNDS, GoldensPlan, PlannedBenchmark, screen_items
from rankbeam.transforms.goldens.records.items import DIMENSIONS, Candidate, State, WritingTask, WrittenItem
from rankbeam.transforms.goldens.searching import PassageSearch
from rankbeam.transforms.kernels.sampling import draw

TYPES = {"lookup": 4, "why": 2, "multi_hop": 1, "unanswerable": 2}


@pytest.fixture(scope="module")
def library() -> Library:
    rows = [Document(row["_id"], row["title"], row["text"]) for row in documents(60)]
    return library_of(GatheredDocuments(rows), 100, "english", "corpus.jsonl")


def golden(source: WritingTask, candidate: Candidate, *, accepted: bool) -> WrittenItem:
    return WrittenItem(
        candidate.item_id,
        candidate.type,
        candidate.profile,
        candidate.topic,
        candidate.number,
        candidate.round,
        tuple(span.id for span in source.spans),
        State.ACCEPTED if accepted else State.REJECTED,
        question=f"What of {candidate.item_id} {draw(0, candidate.item_id)}?",
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_the_plan_of_every_stratum_and_type_is_within_one_of_its_share(seed: int, library: Library) -> None:
    plan = GoldensPlan(library, PlannedBenchmark(50, TYPES, DIMENSIONS, seed=seed))
    sizes = {stratum: len(spans) ** 0.5 for stratum, spans in plan.strata.items()}
    planned = Counter[str]()
    of_types = Counter[str]()
    for source in plan.round(1, [], ()):
        for candidate in source.candidates:
            planned[f"{candidate.topic:02}"] += 1
            of_types[candidate.type] += 1
    assert planned.total() == 50
    for (topic,), root in sizes.items():
        assert abs(planned[topic] - 50 * root / sum(sizes.values())) < 1
    for kind, share in TYPES.items():
        assert abs(of_types[kind] - 50 * share / 9) < 1


def test_equal_seeds_plan_the_same_and_others_do_not(library: Library) -> None:
    plans = [GoldensPlan(library, PlannedBenchmark(30, TYPES, DIMENSIONS, seed=seed)) for seed in (1, 1, 2)]
    names = [[one.item_id for source in plan.round(1, [], ()) for one in source.candidates] for plan in plans]
    assert names[0] == names[1] != names[2]
    assert len(set(names[0])) == 30


@pytest.mark.parametrize("seed", [1, 2])
def test_rounds_replace_what_is_rejected_until_every_quota_is_met(seed: int, library: Library) -> None:
    plan = GoldensPlan(library, PlannedBenchmark(40, TYPES, DIMENSIONS, seed=seed))
    before: list[WrittenItem] = []
    for number in range(1, ROUNDS + 1):
        accepted = [one for one in before if one.state is State.ACCEPTED]
        sources = plan.round(number, before, {one.item_id for one in accepted})
        new = [
            golden(source, candidate, accepted=draw(seed, candidate.item_id) % 10 < 7)
            for source in sources
            for candidate in source.candidates
        ]
        before += screen_items(plan, before, accepted, new, {}, 1.0)
    accepted = [one for one in before if one.state is State.ACCEPTED]
    assert plan.shortfalls(before, {one.item_id for one in accepted}) == {}
    assert Counter(plan.cell(one) for one in accepted) == Counter({cell: q for cell, q in plan.quotas.items() if q})


def test_near_duplicate_spans_are_asked_about_once(library: Library) -> None:
    rows = list(library.documents)
    twin = replace(rows[0], id="a-twin", text=rows[0].text.replace(" days", "  days"))
    both = library_of(GatheredDocuments([twin, *rows]), 100, "english", "corpus.jsonl")
    assert set(both.duplicates) == {span.id for span in both.passages if span.doc_id == rows[0].id}
    assert {span.doc_id for span in both.spans} == {twin.id, *(row.id for row in rows[1:])}


def test_chinese_documents_are_long_enough_and_their_questions_are_easy_to_find(tmp_path: Path) -> None:
    texts = [
        "用户可以在结算页面下载过去三年的发票，每月第一天发送。",
        "管理员必须在设置菜单重置密码，链接在一小时后失效，不能再用。",
    ]
    library = library_of(
        GatheredDocuments([Document(str(number), "", text) for number, text in enumerate(texts)]),
        800,
        "english",
        "corpus.jsonl",
    )
    assert [span.doc_id for span in library.spans] == ["0", "1"]
    lines = json_lines({"_id": span.id, "title": "", "text": span.text} for span in library.passages)
    (tmp_path / "passages.jsonl").write_bytes(lines)
    search = PassageSearch.of(str(tmp_path / "passages.jsonl"), library.passages, "english", {})
    assert search.rank(search.best("怎样重置密码"), ["1"]) == 1
