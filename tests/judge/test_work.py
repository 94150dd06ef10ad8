"""The work of one query, driven by hand: no clock, no quota, no Beam."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.forecast import planned_calls

from rankbeam.pipelines.plan.simulation import LEAST, simulate_calls
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.local import LocalModel
from rankbeam.transforms.clients.models.offline import Extractive, Hashed, Lexical
from rankbeam.transforms.judge.answering import Answerer, AnswerGenerator, finish_answer
from rankbeam.transforms.judge.judge import Judge, Model, ModelReply
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.steps.grade import ContextGrade
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import EvaluateAnswers, document_grades
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import Answer, AnswerStatus, EvaluatedItem, Judgement, Value
from rankbeam.transforms.records.judging.items import Gold, Item, System
from rankbeam.transforms.records.rankings.contexts import Passage, SuppliedAnswer
from rankbeam.transforms.records.reply import NO_TOKENS, Reply
from rankbeam.transforms.records.stages import Generation

PASSAGES = (
    Passage("owners", "Owners pay the invoices. They get a mail each month."),
    Passage("weather", "It rains in spring."),
    Passage("managers", "Billing managers may read invoices, and download them."),
)
GOLD = Gold("Owners pay the invoices. Billing managers may download them.")
ITEM = Item("q1", "Who pays invoices?", {}, PASSAGES, (System(0, (0, 1, 2)), System(1, (2, 0))), GOLD)
READER, JUDGE = Model("reader", "extractive", Extractive()), Model("judge", "lexical", Lexical())
GENERATION = Generation("reader", "{query}\n{contexts}", contexts=3)
ALL = ("Faithfulness", "Hallucination", "SelfKnowledge", "ClaimPrecision", "ClaimRecall", "ContextRecall")

Outcome = Callable[[Call], Any]


def test_answers_are_judged_by_their_contexts_and_the_reference() -> None:
    calls: list[Call] = []
    evaluated = driven(work(*ALL), ITEM, calls)
    values = by_metric(evaluated, 0)
    assert evaluated.answers[0].answer.text == "Owners pay the invoices [1]."
    assert evaluated.answers[0].answer.cited == (0,)
    assert values["Faithfulness"] == values["ClaimPrecision"] == 1.0
    assert values["Hallucination"] == values["SelfKnowledge"] == 0.0
    assert values["ClaimRecall"] == 0.5
    assert values["ContextRecall"] == 1.0


@pytest.mark.parametrize("attempts", [0, 1, 3])  # 0: the service had been given up, or the budget used up
def test_an_answer_that_failed_costs_as_much_as_its_attempts(attempts: int) -> None:
    failed = finish_answer(Answer(AnswerStatus.OK), CallError(FailureKind.UNAVAILABLE, "down", attempts))
    assert Answerer(READER, quota=Quota(600, price_per_1000=2.0)).cost(failed) == attempts * 0.002


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([3, 1, 2], 2), ([3, 1], 1), ([1, None], None), ([2, None, 2], 2), ([2, None, 3], None), ([None], None),
    ],
)  # fmt: skip
def test_a_document_has_a_grade_if_failed_judgements_cannot_change_it(
    votes: list[int | None], expected: int | None
) -> None:
    """One of two judges that had failed left the other one's grade, where the majority has no value."""
    text = str(PASSAGES[0].text)
    judgements = [
        Judgement(
            "grade", "", 0, False, (text,), (), None if grade is None else ContextGrade(grade, ""), None,
            NO_TOKENS, judge=str(place),
        )
        for place, grade in enumerate(votes)
    ]  # fmt: skip
    assert dict(document_grades(ITEM, judgements)).get("owners") == expected


def test_a_document_without_a_known_text_has_no_grade() -> None:
    """It took the grade of empty texts."""
    item = replace(ITEM, passages=(Passage("empty", ""), Passage("unknown", None)))
    judgement = Judgement("grade", "", 0, False, ("",), (), ContextGrade(0, ""), None, NO_TOKENS, judge="a")
    assert document_grades(item, [judgement]) == (("empty", 0),)


def test_what_configurations_share_is_asked_once() -> None:
    alone = Item(ITEM.query_id, ITEM.text, {}, PASSAGES, ITEM.systems[:1], GOLD)
    twins = Item(ITEM.query_id, ITEM.text, {}, PASSAGES, (System(0, (0, 1, 2)), System(1, (0, 1, 2))), GOLD)
    one, two = list[Call](), list[Call]()
    driven(work(*ALL, configurations=(0,)), alone, one)
    both = driven(work(*ALL), twins, two)
    assert len(two) == len(one)
    assert by_metric(both, 0) == by_metric(both, 1)


def test_an_order_of_contexts_asks_the_judge_nothing_new() -> None:
    swapped = Item(ITEM.query_id, ITEM.text, {}, PASSAGES, (System(0, (0, 2)), System(1, (2, 0))), GOLD)
    calls: list[Call] = []
    driven(work("ContextRecall"), swapped, calls)
    assert steps(calls) == ["answer", "answer", "claims", "support", "support"]


def test_a_failed_judgement_leaves_the_other_values() -> None:
    def outcome(call: Call) -> Any:
        prompt = Prompt.parse(call.payload)
        if prompt.step == "support" and prompt.values["evidence"] == PASSAGES[1].text:
            return CallError(FailureKind.UNAVAILABLE, "the judge is down", 9)
        return answered(call)

    evaluated = driven(work("Faithfulness", "ClaimRecall", "ContextRecall"), ITEM, outcome=outcome)
    first, second = by_metric(evaluated, 0), by_metric(evaluated, 1)
    assert first == {"Faithfulness": "unavailable", "ClaimRecall": 0.5, "ContextRecall": "unavailable"}
    assert second["Faithfulness"] == 1.0  # it never saw that context


@pytest.mark.parametrize("kind", [FailureKind.BLOCKED, FailureKind.TRUNCATED, FailureKind.UNAVAILABLE])
def test_a_failed_answer_fails_what_looks_at_answers_and_nothing_else(kind: FailureKind) -> None:
    def outcome(call: Call) -> Any:
        return CallError(kind, "no answer", 2) if Prompt.parse(call.payload).step == "answer" else answered(call)

    calls: list[Call] = []
    evaluated = driven(work("Faithfulness", "ContextRecall", configurations=(0,)), ITEM, calls, outcome)
    status = {FailureKind.UNAVAILABLE: "failed"}.get(kind, kind.value)
    assert [row.answer.status for row in evaluated.answers] == [status]
    assert by_metric(evaluated, 0) == {"Faithfulness": kind.value, "ContextRecall": 1.0}
    assert "claims" in steps(calls)  # of the reference


def test_without_a_context_no_model_is_asked_and_the_system_counts_as_refusing() -> None:
    nothing = Item(ITEM.query_id, ITEM.text, {}, (), (System(0, ()),), Gold("Owners pay.", answerable=True))
    calls: list[Call] = []
    metrics = ("Faithfulness", "ClaimRecall", "Refused", "AnswerRelevance", "ContextRecall")
    evaluated = driven(work(*metrics, configurations=(0,)), nothing, calls)
    assert evaluated.answers[0].answer.status is AnswerStatus.NO_CONTEXT
    assert by_metric(evaluated, 0) == {
        "Faithfulness": "no_claims",
        "ClaimRecall": 0.0,
        "Refused": 1.0,
        "AnswerRelevance": 0.0,
        "ContextRecall": 0.0,
    }
    assert steps(calls) == ["claims"]


def test_a_text_that_is_missing_is_a_failure_and_never_an_empty_context() -> None:
    lacking = Item("q", "Who pays?", {}, (Passage("owners", None),), (System(0, (0,)),), GOLD)
    evaluated = driven(work("Faithfulness", "ContextRecall", configurations=(0,)), lacking)
    assert evaluated.answers[0].answer.status is AnswerStatus.FAILED
    for value in evaluated.values:
        assert value.error is not None
        assert "there is no text of document 'owners'" in str(value.reason)


def test_given_answers_are_judged_as_they_are() -> None:
    replayed = Item(
        "q", ITEM.text, {}, PASSAGES, (System(0, (1,), supplied=SuppliedAnswer("Owners pay the invoices.")),), GOLD
    )
    calls: list[Call] = []
    evaluated = driven(work("Faithfulness", "ClaimPrecision", configurations=(), judged=(0,)), replayed, calls)
    assert by_metric(evaluated, 0) == {"Faithfulness": 0.0, "ClaimPrecision": 1.0}
    assert "answer" not in steps(calls)


def test_metrics_of_contexts_alone_look_at_as_many_as_they_say() -> None:
    item = Item("q", ITEM.text, {}, PASSAGES, (System(0, (1, 0, 2)),), GOLD)
    metrics = ("ContextRecall@1", "ContextRecall@2", "ContextRecall@3", "ContextRecall@9")
    evaluated = driven(work(*metrics, configurations=(), judged=(0,)), item)
    assert list(by_metric(evaluated, 0).values()) == [0.0, 0.5, 1.0, 1.0]


def test_samples_are_averaged_and_repeats_are_not() -> None:
    once = driven(work("Faithfulness", repeat_share=1.0), ITEM)
    repeated = [judgement for judgement in once.judgements if judgement.is_repeat]
    verdicts = [judgement for judgement in once.judgements if judgement.step == "support"]
    assert {judgement.sample for judgement in repeated} == {1, 2}
    assert len(repeated) == 2 * len([judgement for judgement in verdicts if judgement.sample == 0])

    def outcome(call: Call) -> Any:
        prompt = Prompt.parse(call.payload)
        if prompt.step == "support" and prompt.sample == 1:
            return offline_reply(call, '{"verdicts": [{"id": 0, "reason": "no", "verdict": "not_stated"}]}')
        return answered(call)

    assert by_metric(driven(work("Faithfulness", repeat_share=1.0), ITEM, outcome=outcome), 0)["Faithfulness"] == 1.0
    twice = work("Faithfulness", samples=2)
    assert by_metric(driven(twice, ITEM, outcome=outcome), 0)["Faithfulness"] == 0.5


@pytest.mark.parametrize(
    ("name", "texts", "expected"),
    [
        ("Consistency", ("The Nile.", "nile [1]", "a river"), 1 / 3),
        ("Consistency", ("Nile", "Nile", None), "unavailable"),
        ("Consistency", ("Nile",), "one_sample"),
        ("Consistency(kind)", ("The Nile.", "a river", "I don't know."), 1 / 3),
        ("Consistency(kind)", ("I don't know.", "The documents do not say.", "No answer."), 1.0),
        ("Consistency(kind)", ("Nile", "Nile", None), "unavailable"),
    ],
)
def test_consistency_is_the_mean_over_all_pairs_of_samples(
    name: str, texts: tuple[str | None, ...], expected: float | str
) -> None:
    def outcome(call: Call) -> Any:
        text = texts[Prompt.parse(call.payload).sample]
        return CallError(FailureKind.UNAVAILABLE, "down") if text is None else offline_reply(call, text)

    generation = Generation("reader", "{query}", contexts=3, samples=len(texts))
    metrics = {0: (parse_judged(name),)}
    asking = EvaluateAnswers({0: AnswerGenerator(READER, generation)}, (Judge(JUDGE, built_in_templates()),), metrics)
    assert by_metric(driven(asking, ITEM, outcome=outcome), 0) == {name: pytest.approx(expected)}


def test_the_number_of_calls_is_known_before() -> None:
    calls: list[Call] = []
    planned = work(*ALL)
    driven(planned, ITEM, calls)
    assert len({call.key for call in calls}) in planned_calls(planned, ITEM)


def test_a_reply_is_not_held_against_every_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """If judge and generators share a service, each verdict's prompt was parsed once for each configuration."""
    plain, looks = AnswerGenerator.is_asked_by, list[Call]()

    def spied(generator: AnswerGenerator, call: Call) -> bool:
        looks.append(call)
        return plain(generator, call)

    monkeypatch.setattr(AnswerGenerator, "is_asked_by", spied)
    asking = work(*ALL, configurations=range(50))
    (judge,) = asking.judges
    shared = replace(asking, judges=(replace(judge, model=replace(JUDGE, name=READER.name)),))
    sent: list[Call] = []
    models: dict[bool, LocalModel] = {True: Extractive(), False: Lexical()}
    outcome = lambda call: Reply(  # noqa: E731
        models[steps([call]) == ["answer"]].answer(Prompt.parse(call.payload)).written()
    )
    assert by_metric(driven(shared, ITEM, sent, outcome), 0)["Faithfulness"] == 1.0
    assert len(looks) == len(sent)


def test_calls_are_planned_where_the_ledger_has_some_vectors() -> None:
    plain = work("AnswerSimilarity", configurations=(0,))
    (judge,) = plain.judges
    planned = replace(plain, judges=(replace(judge, embedder=Model("embedder", "hashed", Hashed())),))

    def recall(calls: Sequence[Call]) -> dict[str, Any]:
        return {call.key or "": ModelReply(np.ones(8)) for call in calls if GOLD.reference in call.payload}

    calls = simulate_calls({"": planned.steps(ITEM)}, LEAST, recall)[""]
    assert sorted(steps([*calls.values()])) == ["answer", "embed", "embed"]


def work(
    *metrics: str, configurations: Sequence[int] = (0, 1), judged: Sequence[int] | None = None, **options: Any
) -> EvaluateAnswers:
    of_each = tuple(parse_judged(name) for name in metrics)
    positions = configurations if judged is None else judged
    judges = (Judge(JUDGE, built_in_templates()),)
    answering = {position: AnswerGenerator(READER, GENERATION) for position in configurations}
    return EvaluateAnswers(answering, judges, dict.fromkeys(positions, of_each), **options)


def driven(
    work: EvaluateAnswers, item: Item, sent: list[Call] | None = None, outcome: Outcome | None = None
) -> EvaluatedItem:
    """The result of a work whose calls have these outcomes; all distinct calls are added to `sent`."""
    values: dict[str | None, Any] = {}
    steps = work.steps(item)
    try:
        calls = next(steps)
        while True:
            for call in calls:
                if call.key not in values:
                    answer = (outcome or answered)(call)
                    values[call.key] = work.read(call, answer) if isinstance(answer, Reply) else answer
                    if sent is not None:
                        sent.append(call)
            calls = steps.send([values[call.key] for call in calls])
    except StopIteration as end:
        evaluated: EvaluatedItem = end.value
    return evaluated


def answered(call: Call) -> Reply:
    """The replies of the offline models."""
    models: dict[str, LocalModel] = {"reader": Extractive(), "judge": Lexical()}
    return Reply(models[call.service].answer(Prompt.parse(call.payload)).written())


def offline_reply(call: Call, text: str) -> Reply:
    del call
    return Reply(Stored(text, STOP, model_version="m").written())


def by_metric(evaluated: EvaluatedItem, configuration: int) -> dict[str, float | str]:
    """The value of each metric; the kind of its failure, or the reason why it does not exist, where it has none."""
    return {value.metric: shown(value) for value in evaluated.values if value.configuration == configuration}


def shown(value: Value) -> float | str:
    if value.value is not None:
        return value.value
    return value.error.kind.value if value.error is not None else str(value.reason)


def steps(calls: Sequence[Call]) -> list[str]:
    return [Prompt.parse(call.payload).step for call in calls]


@pytest.mark.parametrize("kind", [FailureKind.PERMISSION, FailureKind.NOT_FOUND, FailureKind.QUOTA])
def test_a_value_without_an_answer_fails_as_the_answer_did(kind: FailureKind) -> None:
    refused = driven(work("Faithfulness"), ITEM, outcome=lambda _: CallError(kind, "401"))
    assert {value.error.kind for value in refused.values if value.error is not None} == {kind}
