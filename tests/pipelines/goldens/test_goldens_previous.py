"""Questions of an earlier benchmark are taken over if their documents have not changed."""

import csv
import io
import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cli import Outcome, rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.inputs import write

ITEMS = 12
SPLIT = {"dev": 1, "test": 2}
OPTIONS: dict[str, Any] = {"items": ITEMS, "split": SPLIT, "reviews": {"pool": 3}}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark with a rejected, an edited and an accepted question."""
    folder = tmp_path_factory.mktemp("earlier")
    assert rankbeam("goldens", goldens_file(folder, **OPTIONS)).status == 0
    table = list(csv.DictReader(io.StringIO(rankbeam("goldens", "review", str(folder / "out")).stdout)))
    answerable = [row for row in table if row["type"] != "unanswerable"]
    for row, decision in zip(answerable, ("reject", "edit", "accept"), strict=False):
        row["decision"] = decision
    answerable[1]["question"] = "Who knows?"
    text = io.StringIO()
    writer = csv.DictWriter(text, table[0].keys())
    writer.writeheader()
    writer.writerows(table)
    write(folder / "review.csv", text.getvalue())
    assert rankbeam("goldens", "apply", str(folder / "out"), str(folder / "review.csv")).status == 0
    return folder / "out"


def queries(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["_id"]: row for row in lines(folder / "queries.jsonl")}


def make_next(earlier: Path, folder: Path, rows: list[dict[str, str]], **keys: Any) -> Outcome:
    file = goldens_file(folder, documents=corpus(folder, rows), previous=str(earlier), **{**OPTIONS, **keys})
    return rankbeam("goldens", file)


def sources(earlier: Path) -> dict[str, set[str]]:
    """The documents on which each question of the benchmark rests, also those that people rejected."""
    items = (item["made"] for item in lines(earlier / "items.jsonl"))
    return {
        item["item_id"]: {
            *(name.rpartition("#")[0] for name in item["spans"]),
            *(piece["doc_id"] for piece in item["evidence"]),
        }
        for item in items
    }


@pytest.mark.long
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    deleted=st.sets(st.integers(0, 23), max_size=4),
    changed=st.sets(st.integers(0, 23), max_size=4),
    added=st.integers(0, 4),
    more=st.integers(0, 8),
    shuffle=st.randoms(use_true_random=False),
)
def test_questions_of_unchanged_documents_are_taken_over_with_their_reviews_and_splits(
    earlier: Path,
    tmp_path_factory: pytest.TempPathFactory,
    deleted: set[int],
    changed: set[int],
    added: int,
    more: int,
    shuffle: random.Random,
) -> None:
    folder = tmp_path_factory.mktemp("next")
    rows = [
        {**row, "text": row["text"].replace("after", "before", 1)} if place in changed else row
        for place, row in enumerate(documents(24 + added))
        if place not in deleted
    ]
    shuffle.shuffle(rows)
    outcome = make_next(earlier, folder, rows, items=ITEMS + more)
    before, after = queries(earlier), queries(folder / "out")
    gone = {f"d{place:03}" for place in deleted | changed}
    outdated = {name for name, names in sources(earlier).items() if names & gone}
    expected = before.keys() - outdated
    dropped = {row["item_id"] for row in lines(folder / "out" / "rejected.jsonl")}  # a new document answers them
    assert expected <= after.keys() | dropped
    assert not after.keys() & (sources(earlier).keys() - expected)
    assert f"previous: {len(expected)} of {ITEMS} questions are taken over" in outcome.stderr
    moved = sum(after[name]["metadata"]["split"] != before[name]["metadata"]["split"] for name in expected - dropped)
    assert moved == 0 or "left a split" in outcome.stderr
    for name in expected - dropped:
        assert after[name]["text"] == before[name]["text"]
        assert after[name]["metadata"]["reviewed"] == before[name]["metadata"]["reviewed"]
    if outcome.status == 0:
        assert len(after) == ITEMS + more
    else:
        assert (outcome.status, "questions are missing" in outcome.stderr) == (3, True)
    _refuse_common_documents(folder / "out")


def _refuse_common_documents(folder: Path) -> None:
    relevant = []
    for split in SPLIT:
        with (folder / "qrels" / f"{split}.tsv").open() as file:
            relevant.append({row["corpus-id"] for row in csv.DictReader(file, delimiter="\t") if row["score"] != "0"})
    assert relevant[0].isdisjoint(relevant[1])


def test_a_deleted_document_costs_its_own_questions_and_a_second_run_nothing(earlier: Path, tmp_path: Path) -> None:
    lost = next(names for name, names in sorted(sources(earlier).items()) if name in queries(earlier))
    rows = [row for row in documents(24) if row["_id"] != min(lost)]
    first = make_next(earlier, tmp_path, rows)
    calls = int(re.search(r"\((\d+) calls", first.stdout.replace(",", ""))[1])  # type: ignore[index]
    everything = sum(row["calls"] for row in map(json.loads, (earlier / "usage.json").read_text().splitlines()))
    assert 0 < calls < everything / 2
    content = stable(tmp_path / "out")
    again = rankbeam("goldens", str(tmp_path / "goldens.yaml"))
    assert "(0 calls, " in again.stdout
    assert stable(tmp_path / "out") == content


def test_equal_documents_only_replace_rejected_questions(earlier: Path, tmp_path: Path) -> None:
    planned = goldens_file(tmp_path, previous=str(earlier), **OPTIONS)
    shown = rankbeam("goldens", "plan", planned)
    assert "11 of these questions are taken over" in shown.stdout
    assert json.loads(rankbeam("goldens", "plan", planned, "--format", "json").stdout)["planned"] == 1
    outcome = rankbeam("goldens", planned)
    assert "previous: 11 of 12 questions are taken over; 1 was rejected by reviewers" in outcome.stderr
    before, after = queries(earlier), queries(tmp_path / "out")
    assert len(after) == ITEMS
    assert before.keys() < after.keys()
    graded = {item["made"]["item_id"]: item["grades"] for item in lines(earlier / "items.jsonl")}
    again = {item["made"]["item_id"]: item["grades"] for item in lines(tmp_path / "out" / "items.jsonl")}
    assert all(again[name] == graded[name] for name in before)


def test_documents_under_other_ids_keep_their_questions_unless_two_have_the_same_text(
    earlier: Path, tmp_path: Path
) -> None:
    rows = documents(24)
    renamed = [{**row, "_id": f"docs/{row['_id']}#new"} for row in rows]
    make_next(earlier, tmp_path, renamed)
    before, after = queries(earlier), queries(tmp_path / "out")
    assert before.keys() < after.keys()
    for name, row in before.items():
        assert after[name]["metadata"]["reviewed"] == row["metadata"]["reviewed"]
    expected = {name: {f"docs/{doc_id}#new" for doc_id in ids} for name, ids in sources(earlier).items()}
    now = sources(tmp_path / "out")
    assert {name: now[name] for name in expected} == expected
    graded = {
        item["made"]["item_id"]: {(grade["doc_id"], grade["grade"]) for grade in item["grades"]}
        for item in lines(tmp_path / "out" / "items.jsonl")
    }
    for item in lines(earlier / "items.jsonl"):
        grades = {(f"docs/{grade['doc_id']}#new", grade["grade"]) for grade in item["grades"]}
        assert grades <= graded[item["made"]["item_id"]]

    twice = make_next(earlier, tmp_path / "twice", [*renamed, *({**row, "_id": f"copy-{row['_id']}"} for row in rows)])
    assert f"previous: 0 of {ITEMS} questions are taken over" in twice.stderr


def test_previous_is_checked_before_any_work(earlier: Path, tmp_path: Path) -> None:
    for keys, problem in (
        ({"previous": "nowhere"}, "previous: "),
        ({"previous": str(earlier), "output": str(earlier)}, "is the output itself; name another output"),
        ({"previous": str(earlier), "items": 5}, "has 11 questions to take over, and items is 5; raise items"),
    ):
        outcome = rankbeam("goldens", goldens_file(tmp_path, **{**OPTIONS, **keys}))
        assert (outcome.status, problem in outcome.stderr) == (2, True), outcome.stderr
    assert not (tmp_path / "out").exists()
    (tmp_path / "link").symlink_to(earlier)
    outcome = rankbeam("goldens", goldens_file(tmp_path, **{**OPTIONS, "previous": str(earlier), "output": "link"}))
    assert "is the output itself" in outcome.stderr
    damaged = shutil.copytree(earlier, tmp_path / "damaged")
    write(damaged / "items.jsonl", "{\n")
    outcome = rankbeam("goldens", goldens_file(tmp_path, **{**OPTIONS, "previous": str(damaged)}))
    assert outcome.status == 2
    assert "items.jsonl:1: is damaged" in outcome.stderr


@pytest.mark.long
def test_a_rejected_question_is_in_no_later_benchmark(earlier: Path, tmp_path: Path) -> None:
    written = [item["made"] for item in lines(earlier / "items.jsonl")]
    rejected = [item for item in written if item["item_id"] not in queries(earlier)]
    place = str(earlier)
    for number in range(2):
        folder = tmp_path / str(number)
        outcome = make_next(Path(place), folder, documents(24), items=ITEMS + 30 * number)
        assert "no longer in the benchmark" not in outcome.stderr
        reviews = {row["item_id"]: row["decision"] for row in lines(folder / "out" / "reviews.jsonl")}
        assert [reviews[item["item_id"]] for item in rejected] == ["reject"]
        place = str(folder / "out")
    items = [item["made"] for item in lines(Path(place) / "items.jsonl")]
    assert len(items) > 2 * ITEMS
    again = [item for item in items if any(_sources_of(item) == _sources_of(one) for one in rejected)]
    assert again == rejected
    assert not queries(Path(place)).keys() & {item["item_id"] for item in rejected}
    table = rankbeam("goldens", "review", place).stdout.replace(",reject,", ",accept,")  # people revert their decision
    assert rankbeam("goldens", "apply", place, write(tmp_path / "review.csv", table)).status == 0
    assert queries(Path(place)).keys() >= {item["item_id"] for item in rejected}
    _refuse_common_documents(Path(place))


def _sources_of(item: dict[str, Any]) -> tuple[Any, ...]:
    return item["type"], item["spans"], item["number"]


def test_questions_of_splits_that_are_gone_are_divided_again(earlier: Path, tmp_path: Path) -> None:
    assert make_next(earlier, tmp_path, documents(24), items=11, split={"train": 1, "eval": 1}).status == 0
    counts = Counter(row["metadata"]["split"] for row in queries(tmp_path / "out").values())
    assert min(counts["train"], counts["eval"]) >= 3


@pytest.mark.long
def test_services_may_have_other_names_and_only_new_questions_count_for_the_checker(tmp_path: Path) -> None:
    services = {"other": {"type": "extractive"}, "lexical": {"type": "lexical"}}
    base = write(tmp_path / "first.jsonl", "".join(json.dumps(row) + "\n" for row in documents(40)))
    many = goldens_file(tmp_path, "many", documents=base, output="many", **{**OPTIONS, "items": 25})
    assert "accepted all of 25 questions" in rankbeam("goldens", many).stderr
    keys = {"services": services, "writer": "other", "checker": "lexical", "items": 27, "documents": base}
    outcome = rankbeam("goldens", goldens_file(tmp_path, previous=str(tmp_path / "many"), **{**OPTIONS, **keys}))
    assert outcome.status == 0
    assert "accepted all" not in outcome.stderr
    costs = {row["query_id"]: row["calls"] for row in lines(tmp_path / "out" / "costs.jsonl")}
    assert {name for name, calls in costs.items() if not calls} == queries(tmp_path / "many").keys()


def test_the_plan_counts_grades_of_documents_that_take_the_places_of_others(earlier: Path, tmp_path: Path) -> None:
    """Documents that were not among the first before: the pool is larger, or others are gone."""
    for name, rows, pool in (("larger", documents(24), 8), ("fewer", documents(20), 3)):
        keys = {**OPTIONS, "items": 11, "reviews": {"pool": pool}}
        file = goldens_file(
            tmp_path, name, documents=corpus(tmp_path, rows), previous=str(earlier), output=name, **keys
        )
        plan = json.loads(rankbeam("goldens", "plan", file, "--format", "json").stdout)
        steps = [step for part in plan["pools"] for step in part["steps"] if step["step"] == "grade"]
        assert rankbeam("goldens", file).status == 0
        graded = [row["calls"] for row in lines(tmp_path / name / "usage.json") if row["stage"] == "grade"]
        assert 0 < sum(graded) <= sum(step["calls"][1] for step in steps)
        assert [step["calls"][0] for step in steps] == [0]  # searches may find no further documents


def test_an_earlier_question_of_a_dropped_type_is_missing_once_a_document_answers_it(
    earlier: Path, tmp_path: Path
) -> None:
    unanswerable = next(row for row in queries(earlier).values() if row["metadata"]["type"] == "unanswerable")
    answering = {"_id": "new", "title": "", "text": f"{unanswerable['text']} " * 3}
    outcome = make_next(earlier, tmp_path, [*documents(24), answering], types=["lookup"])
    assert unanswerable["_id"] not in queries(tmp_path / "out")
    assert (outcome.status, "1 of 12 questions are missing" in outcome.stderr) == (3, True)
    reasons = Counter(row["reason"] for row in lines(tmp_path / "out" / "rejected.jsonl") if row["round"])
    assert all(f"{number} {reason}" in outcome.stderr for reason, number in reasons.items())
