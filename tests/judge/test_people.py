"""Human values of one query: of what people decided, and of what nobody has to decide."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from apache_beam.internal import pickler

from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.panel import values_by_people
from rankbeam.transforms.judge.steps.claims import Claim
from rankbeam.transforms.judge.units import Unit
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.records.judging.items import Gold
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgeQuestion
from rankbeam.transforms.records.labels import NO_LABELS, Label, Labels, items_hash, text_hash
from rankbeam.transforms.records.scores.judged import LABELLED_IN_PART, NOTHING_TO_LABEL, UNDEFINED_BY_PEOPLE

NO_REPLIES: dict[JudgeQuestion, Any] = {}


def label(text: str, decision: str, annotator: str = "ann") -> Label:
    return Label("i", "grade", "q", None, None, None, None, text_hash(text), 0.5, decision, annotator)


def by_people(metric: str, labels: list[Label], judge: dict[JudgeQuestion, Any], *cases: JudgedCase) -> Any:
    """The human value, the reason for its absence, or None where nobody was to label it."""
    units = [Unit(0, (parse_judged(metric),), case) for case in cases]
    values = values_by_people(units, Labels(tuple(labels)), "q", judge)
    (value,) = [*values] or [None]
    return None if value is None else value.reason if value.value is None else pytest.approx(value.value)


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([], None),
        ([("a", "3", "ann")], LABELLED_IN_PART),
        ([("a", "3", "ann"), ("b", "1", "ann")], 2 / 3),
        ([("a", "3", "ann"), ("b", "1", "ann"), ("a", "3", "bob"), ("b", "3", "bob")], 5 / 6),
        ([("a", "3", "ann"), ("b", "1", "ann"), ("a", "3", "bob"), ("b", "3", "bob"), ("b", "0", "adjudicated")], 0.5),
        ([("a", "3", "ann"), ("b", "0", "adjudicated")], 0.5),
        ([("a", "3", "ann"), ("b", "1", "ann"), ("a", "0", "adjudicated"), ("b", "0", "adjudicated")], 0.0),
    ],
)
def test_an_adjudicated_decision_replaces_those_of_all_others_item_by_item(
    decisions: list[tuple[str, str, str]], expected: float | str | None
) -> None:
    labels = [label(*decision) for decision in decisions]
    assert by_people("ContextRelevance(labels=True)", labels, NO_REPLIES, JudgedCase("q?", ("a", "b"))) == expected


@pytest.mark.parametrize("labels", [[], [label("of another configuration", "3")]])
def test_where_there_is_nothing_to_decide_no_label_is_needed(labels: list[Label]) -> None:
    nothing = JudgedCase("q?", (), answer=None, gold=Gold("Owners pay."))
    assert by_people("ContextRelevance(labels=True)", labels, NO_REPLIES, nothing) == NOTHING_TO_LABEL
    claims = {JudgeQuestion("claims", ("Owners pay.",)): (Claim("Owners pay", 0, 1),)}
    assert by_people("ClaimPrecision(labels=True)", labels, claims, nothing) in (None, LABELLED_IN_PART)  # undefined
    assert by_people("ClaimRecall(labels=True)", labels, claims, nothing) == NOTHING_TO_LABEL


def test_a_sample_without_a_value_is_left_out_as_of_a_judge() -> None:
    claims = {
        JudgeQuestion("claims", ("Owners pay.",)): (Claim("Owners pay", 0, 1),),
        JudgeQuestion("claims", ("?",)): (),
    }
    place = text_hash("Owners pay")
    row = Label("i", "support", "q", None, 0, place, "Owners pay", text_hash("c"), 0.5, "supported", "ann")
    cases = [JudgedCase("q?", ("c",), answer=answer) for answer in ("Owners pay.", "?")]
    assert by_people("Faithfulness(labels=True)", [row], claims, *cases) == 1.0
    assert by_people("Faithfulness(labels=True)", [], claims, *cases) is None


def test_a_sample_that_does_not_list_its_contexts_is_left_out_too() -> None:
    """It left the query labelled in part, whatever people had decided about the others."""
    metric = parse_judged("ContextRelevance(labels=True)")
    units = [
        Unit(0, (metric,), JudgedCase("q?", ("a",))),
        Unit(0, (metric,), JudgedCase("q?", ()), Undefined.CONTEXTS_NOT_GIVEN),
    ]
    (value,) = values_by_people(units, Labels((label("a", "3"),)), "q", NO_REPLIES)
    assert value.value == 1.0


class Counted(list[Unit]):
    """Counts how often all units are read."""

    reads = 0

    def __iter__(self) -> Iterator[Unit]:
        self.reads += 1
        return super().__iter__()


def test_units_are_read_once_for_all_configurations() -> None:
    """They were read once for each configuration and metric."""
    metric = parse_judged("ContextRelevance(labels=True)")
    units = Counted(Unit(place, (metric,), JudgedCase("q?", ("a",))) for place in range(9))
    values = values_by_people(units, Labels((label("a", "3"),)), "q", NO_REPLIES)
    assert [(value.configuration, value.value) for value in values] == [(place, 1.0) for place in range(9)]
    assert units.reads == 1


def test_all_stages_of_a_process_have_the_same_labels() -> None:
    """Each stage had a copy: 120,000 labels took 1.9 GB."""
    labels = Labels(tuple(label(f"text {number}", "3") for number in range(9)))
    stored = pickler.dumps(labels)
    assert pickler.loads(stored) is labels
    rows = labels.rows
    del labels
    one, other = pickler.loads(stored), pickler.loads(stored)
    assert one is other
    assert one.rows == rows
    assert one.rows[0] is not rows[0]  # the first labels are gone
    assert pickler.loads(pickler.dumps(NO_LABELS)).rows == ()


def claims_of(names: str, decisions: dict[str, str], annotator: str = "ann") -> list[Label]:
    """Labels of an answer with one claim a letter, and one context."""
    return [
        Label(
            name, "support", "q", text_hash("Owners pay."), position, text_hash(name), name, text_hash("c"), 0.5,
            decisions[name], annotator, items_hash=items_hash(names),
        )
        for position, name in enumerate(names)
        if name in decisions
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (claims_of("ab", {"a": "supported", "b": "not_stated"}), 0.5),
        (claims_of("ab", {"a": "supported"}), LABELLED_IN_PART),
        (claims_of("ab", {"b": "supported"}), LABELLED_IN_PART),
        # Another judge made other claims of the same answer; `a` is a claim of both lists.
        (claims_of("ab", {"a": "supported"}) + claims_of("xyza", dict.fromkeys("xyza", "not_stated")), 0.0),
        (claims_of("ab", dict.fromkeys("ab", "supported")) + claims_of("axyz", {"a": "supported"}), 1.0),
        (claims_of("abc", {"a": "supported"}) + claims_of("xbz", {"x": "supported"}), LABELLED_IN_PART),
        (claims_of("a", {"a": "supported"}) + claims_of("xy", dict.fromkeys("xy", "not_stated"), "bob"), 0.0),
        # Older labels do not name their list, so only a gap shows that a claim has no label.
        ([replace(one, items_hash=None) for one in claims_of("ab", {"a": "supported"})], 1.0),
        ([replace(one, items_hash=None) for one in claims_of("ab", {"b": "supported"})], LABELLED_IN_PART),
    ],
)
def test_a_value_is_of_one_list_of_claims_that_all_have_labels(labels: list[Label], expected: float | str) -> None:
    case = JudgedCase("q?", ("c",), answer="Owners pay.")
    assert by_people("Faithfulness(labels=True)", labels, NO_REPLIES, case) == expected


@pytest.mark.parametrize(
    ("drawn_for", "metric", "expected"),
    [
        ("Faithfulness(judge=lexical)", "Faithfulness(labels=True)", 0.5),
        (None, "Faithfulness(labels=True)", 0.5),  # older labels
        ("ContextAP(answer)", "Faithfulness(labels=True)", 0.5),
        ("Faithfulness", "CitationRecall(labels=True)", 0.0),
        # Only queries with a reference answer could be drawn, of which a mean over all queries is not.
        ("Hallucination", "Faithfulness(labels=True)", None),
        ("Hallucination", "SelfKnowledge(labels=True)", 0.0),
        ("Hallucination", "ClaimPrecision(labels=True)", None),  # and with contexts
        ("Faithfulness", "SelfKnowledge(labels=True)", None),  # which needs more decisions
    ],
)
def test_labels_count_if_every_query_with_a_value_could_be_drawn(
    drawn_for: str | None, metric: str, expected: float | None
) -> None:
    rows = claims_of("ab", {"a": "supported", "b": "not_stated"})
    gold = Gold("Guests read.")
    rows += [replace(row, right_hash=text_hash("Guests read."), decision="not_stated") for row in rows]
    case = JudgedCase("q?", ("c",), answer="Owners pay.", gold=gold)
    labels = [replace(row, drawn_for=drawn_for) for row in rows]
    assert by_people(metric, labels, NO_REPLIES, case) == expected


@pytest.mark.parametrize(
    ("drawn_for", "metric", "expected"),
    [
        ("ContextRelevance@1", "ContextRelevance(labels=True)@2", None),
        ("ContextRelevance@2", "ContextRelevance(labels=True)@2", LABELLED_IN_PART),
        ("ContextRelevance", "ContextRelevance(labels=True)@2", LABELLED_IN_PART),
        ("ContextRelevance@2", "ContextRelevance(labels=True)", None),
        ("nDCG@1", "ContextRelevance(labels=True)@2", None),
        ("nDCG@2", "ContextAP(grade,labels=True)@2", LABELLED_IN_PART),
        ("ContextRelevance@2", "ContextRelevance(labels=True)@1", 1.0),
    ],
)
def test_a_query_drawn_for_fewer_items_is_not_labelled_in_part(
    drawn_for: str, metric: str, expected: float | str | None
) -> None:
    labels = [replace(label("a", "3"), drawn_for=drawn_for)]
    assert (
        by_people(metric, labels, NO_REPLIES, JudgedCase("q?", ("a", "b")[: parse_judged(metric).cutoff])) == expected
    )


def test_a_query_with_all_decisions_and_no_value_is_not_labelled_in_part() -> None:
    gold = Gold("Owners pay.")
    claims = {JudgeQuestion("claims", ("Owners pay.",)): (Claim("Owners pay", 0, 1),)}
    case = JudgedCase("q?", ("c",), answer="Guests read.", gold=gold)
    rows = [
        Label("i", "support", "q", text_hash("Owners pay."), 0, text_hash("Owners pay"), "Owners pay", text_hash(text),
              0.5, "not_stated", "ann")
        for text in ("c", "Guests read.")
    ]  # fmt: skip
    metric = "ContextUtilization(labels=True)"  # undefined if no context supports the reference
    assert by_people(metric, rows, claims, case) == UNDEFINED_BY_PEOPLE
    assert by_people(metric, rows[:1], claims, case) == LABELLED_IN_PART


def test_a_query_drawn_for_another_metric_is_not_labelled_in_part() -> None:
    case = JudgedCase("q?", ("a",), answer="Owners pay.")
    labels = [Label("i", "answer_kind", "q", None, None, None, None, text_hash("Owners pay."), 0.5, "refused", "ann")]
    assert by_people("Refused(labels=True)", labels, NO_REPLIES, case) == 1.0
    assert by_people("ContextRelevance(labels=True)", labels, NO_REPLIES, case) is None
    assert by_people("ContextRelevance(labels=True)", [*labels, label("b", "0")], NO_REPLIES, case) == LABELLED_IN_PART
