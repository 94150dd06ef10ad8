"""Splits of a benchmark: no document is relevant in two of them."""

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.goldens.publishing import judgements, separate_splits
from rankbeam.transforms.goldens.records.items import (
    UNANSWERABLE,
    Golden,
    GoldenEvidence,
    PoolGrade,
    State,
    WrittenItem,
)

NAMES = st.sampled_from("abcdefgh")


@st.composite
def goldens(draw: st.DrawFn) -> list[Golden]:
    items = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["lookup", UNANSWERABLE]))
        evidence = tuple(GoldenEvidence(name, 0, 1, "x") for name in draw(st.sets(NAMES, min_size=1, max_size=2)))
        grades = st.tuples(NAMES, st.sampled_from([None, 0, 1, 2, 3]))
        pool = [PoolGrade(f"{name}#0-1", name, grade, "") for name, grade in draw(st.lists(grades, max_size=3))]
        draft = WrittenItem(
            f"q{number}", kind, (), draw(st.integers(0, 2)), 0, 1, (), State.ACCEPTED, evidence=evidence
        )
        items.append(Golden(draft, draw(st.sampled_from(["dev", "test", "train"])), 1, tuple(pool)))
    return items


def relevant(item: Golden) -> set[str]:
    return {doc_id for _, doc_id, grade, _ in judgements(item) if grade}


def groups(items: Sequence[Golden]) -> list[set[int]]:
    """Positions of questions that are connected by relevant documents, by walking from one to the next."""
    by_document = defaultdict(set)
    for place, item in enumerate(items):
        for name in relevant(item):
            by_document[name].add(place)
    left, classes = set(range(len(items))), []
    while left:
        new, group = {left.pop()}, set()
        while new:
            place = new.pop()
            group.add(place)
            new |= {other for name in relevant(items[place]) for other in by_document[name]} - group
        left -= group
        classes.append(group)
    return classes


SHARES = {"dev": 1, "test": 2, "train": 1}


@given(goldens())
def test_no_document_is_relevant_in_two_splits_and_topics_stay_whole_where_they_can(items: list[Golden]) -> None:
    divided = separate_splits(items, SHARES)
    assert [item.made for item in divided] == [item.made for item in items]
    for group in groups(items):
        assert len({divided[place].split for place in group}) == 1
    crossing = [group for group in groups(items) if len({items[place].split for place in group}) > 1]
    if not crossing:
        assert divided == items
        return
    of_topic = defaultdict(set)
    for group in groups(items):
        topics = {items[place].made.topic for place in group}
        if len(topics) == 1:
            of_topic[topics.pop()] |= {divided[place].split for place in group}
    assert all(len(names) == 1 for names in of_topic.values())


def test_groups_of_questions_are_divided_by_the_shares() -> None:
    evidence = [["a"], ["a", "b"], ["b"], ["c"], ["d"], ["e"]]
    items = [
        Golden(
            WrittenItem(f"q{number}", "lookup", (), number % 2, 0, 1, (), State.ACCEPTED,
                 evidence=tuple(GoldenEvidence(name, 0, 1, "x") for name in names)),
            "dev" if number % 2 else "test",
            1,
        )
        for number, names in enumerate(evidence)
    ]  # fmt: skip
    assert [item.split for item in separate_splits(items, {"dev": 1, "test": 1})] == ["dev"] * 3 + ["test"] * 3
