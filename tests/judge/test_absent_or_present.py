"""Every judged metric where parts of a query are absent: reference, answerable, nuggets, contexts, ids of documents.

All combinations are planned and evaluated, with answers that exist already and with answers of a model, by one judge
and by three. Plain Python says each value, or the reason why there is none.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.judged_world import EXPECTED, World
from support.standins.models import Question, embedding

from rankbeam.pipelines.plan.counting import counted_items
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.definitions import JUDGED
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_judged
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import EvaluatedItem, Value
from rankbeam.transforms.records.judging.items import Gold, Item, System, batch_of, items_in
from rankbeam.transforms.records.rankings.contexts import Passage, SuppliedAnswer
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import Generation
from rankbeam.transforms.records.trajectories import AgentStep

QUERY = "who pays what"
REFUSAL = "The contexts do not say."
ANSWERS = ("Owners pay invoices [1]. They get a mail [2].", REFUSAL)
REFERENCES = (None, "Owners pay the invoices. Managers may read them.", "The documents do not say.")
CONTEXTS = (None, (), ("Owners pay here. They get mails.", "It rains in spring. Managers read all."))
NUGGETS = (None, (("owners pay", True), ("managers read", False)))
FORMS = ("replay", "generate")

OF_CONTEXTS = {
    "Faithfulness", "Faithfulness(ragas)", "Hallucination", "SelfKnowledge", "NoiseSensitivity(relevant)",
    "NoiseSensitivity(irrelevant)", "ContextRecall", "ContextRecall(ragas)", "ContextPrecision(claims)", "ContextAP",
    "ContextAP(grade)", "ContextAP(answer)", "ContextRR", "ContextUtilization", "ContextRelevance",
    "ContextRelevance(ragas)", "CitationPrecision", "CitationRecall",
}  # fmt: skip
OF_REFERENCE = {
    "Hallucination", "SelfKnowledge", "NoiseSensitivity(relevant)", "NoiseSensitivity(irrelevant)", "ClaimPrecision",
    "ClaimRecall", "ContextRecall", "ContextRecall(ragas)", "ContextPrecision(claims)", "ContextAP", "ContextRR",
    "ContextUtilization", "AnswerSimilarity", "ExactMatch", "TokenF1", "ROUGE-L", "BLEU", "chrF",
}  # fmt: skip
OF_AGENTS = {
    **{name: "steps_not_given" for name in JUDGED if name.startswith("Trajectory")},
    "Steps": "steps_not_given", "Retrievals": "steps_not_given", "Tokens": "tokens_not_given",
    "InputTokens": "tokens_not_given", "OutputTokens": "tokens_not_given", "Cost": "cost_not_known",
    "Seconds": "seconds_not_given",
}  # fmt: skip
"""Metrics of agents, and why they have no value here; tests/judge/test_agents.py has cases with values."""
ZERO_WITHOUT_ANSWER = ("ClaimRecall", "AnswerRelevance", "Nugget")
OF_BOTH_CLAIMS = ("ClaimF1", "AnswerCorrectness(ragas)")


@dataclass(frozen=True)
class Case:
    """The inputs of one query that are present."""

    form: str
    answer: str | None
    reference: str | None
    answerable: bool | None
    nuggets: tuple[tuple[str, bool], ...] | None
    contexts: tuple[str, ...] | None
    has_ids: bool

    @property
    def world(self) -> "Partial":
        answer, contexts = self.answer or "", self.contexts or ()
        cited = {int(digit) - 1 for digit in answer if digit.isdigit()}
        return Partial(
            QUERY, answer, contexts, self.reference or "", self.answerable is True, self.nuggets or (), frozenset(cited)
        )

    @property
    def item(self) -> Item:
        passages = tuple(
            Passage(f"d{place}" if self.has_ids else None, text) for place, text in enumerate(self.contexts or ())
        )
        answer = self.answer if self.form == "replay" else None
        system = System(
            0, tuple(range(len(passages))), supplied=SuppliedAnswer(answer, has_contexts=self.contexts is not None)
        )
        gold = Gold(self.reference, self.answerable, self.nuggets)
        (item,) = items_in(batch_of([Item("q", QUERY, {}, passages, (system,), gold)]))  # as it travels
        return item


class Partial(World):
    """A world whose refusals make no claims, as the judge's prompts demand."""

    @property
    def claims(self) -> list[str]:  # type: ignore[override]  # cached there
        return [] if self.answer in ("", REFUSAL) else World.claims.func(self)

    @property
    def reference_claims(self) -> list[str]:  # type: ignore[override]
        return [] if self.reference in REFERENCES[2:] else World.reference_claims.func(self)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "refused" if self.answer in ("", REFUSAL) else "answered"


def cases() -> Iterator[Case]:
    for form, answer, reference, answerable, nuggets, contexts, has_ids in product(
        FORMS, ANSWERS, REFERENCES, (None, True, False), NUGGETS, CONTEXTS, (True, False)
    ):
        if form == "replay" or (contexts is not None and has_ids):  # a model knows its contexts, with their ids
            text = None if form == "generate" and contexts == () else answer  # without a context it is not asked
            yield Case(form, text, reference, answerable, nuggets, contexts, has_ids)


def expected(metric: str, case: Case) -> float | str:
    """The value of a metric, or the reason why it has none."""
    if metric in OF_AGENTS:
        is_free = metric.endswith("Tokens") and case.answer is None  # the model was not asked
        return 0.0 if is_free else OF_AGENTS[metric]
    w, formula = case.world, EXPECTED[metric]
    if metric in OF_CONTEXTS and case.contexts is None:
        return "contexts_not_given"
    if metric in OF_BOTH_CLAIMS:
        claims = both_claims(case)
        return (formula(w) or 0.0) if claims is None else claims
    if metric in OF_REFERENCE and case.reference is None:
        return "no_reference"
    if (reason := without(metric, case)) is not None:
        return reason
    is_zero = case.answer is None and metric.startswith(ZERO_WITHOUT_ANSWER)
    is_zero |= not w.contexts and metric in ("Faithfulness(ragas)", "ContextRecall(ragas)")
    if metric == "AnswerRelevance" and not is_zero:
        return 2 / 3
    return 0.0 if is_zero else formula(w) or 0.0


def both_claims(case: Case) -> float | str | None:
    """The value of ClaimF1 and AnswerCorrectness where claims are missing; None where there are claims of both."""
    w = case.world
    if case.reference is None and case.answerable is not False:
        return "no_reference"
    if case.reference in REFERENCES[2:] and case.answerable is None:
        return "reference_refuses"
    if not w.claims and case.answerable is False:
        return 1.0
    if case.reference is None:
        return "no_reference"
    if not w.reference_claims:
        return "no_reference_claims"
    return None if w.claims else 0.0


def without(metric: str, case: Case) -> str | None:
    """The reason why a metric has no value."""
    w, is_answered = case.world, case.answer is not None
    of_claims = metric in ("Faithfulness", "Hallucination", "SelfKnowledge", "ClaimPrecision") or metric.startswith(
        ("NoiseSensitivity", "Citation")
    )
    of_reference = {"ClaimRecall", "ContextRecall", "ContextUtilization"}
    ranked = ("ContextPrecision(claims)", "ContextAP", "ContextRR")
    reasons: Mapping[str, bool] = {
        "one_sample": metric.startswith("Consistency"),
        "no_claims": not w.claims and (of_claims or (metric == "ContextAP(answer)" and bool(w.contexts))),
        "no_contexts": metric.startswith("NoiseSensitivity") and not w.contexts,
        "no_citations": metric == "CitationPrecision" and not w.cited,
        "no_statements": metric == "Faithfulness(ragas)" and not w.claims,
        "no_reference_claims": not w.reference_claims
        and (metric in of_reference or (metric in ranked and bool(w.contexts))),
        "reference_not_in_contexts": metric == "ContextUtilization" and not any(map(w.by, w.reference_claims)),
        "no_direction": metric == "AnswerSimilarity" and not is_answered,
        "no_nuggets": metric.startswith("Nugget") and not w.nuggets,
        "answerable_unknown": metric in ("RefusalPrecision", "RefusalRecall") and case.answerable is None,
        "not_refused": metric == "RefusalPrecision" and w.kind != "refused",
        "answerable": metric == "RefusalRecall" and case.answerable is True,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


JUDGE = Model("judge", "lexical", Lexical())
GENERATION = Generation("reader", "{query}\n{contexts}", contexts=5)
DOWN = CallError(FailureKind.UNAVAILABLE, "down", 1)
METRICS = tuple(parse_judged(name) for name in JUDGED)


def work(case: Case, metrics: tuple[Any, ...] = METRICS) -> EvaluateAnswers:
    answering = (
        {0: AnswerGenerator(Model("reader", "lexical", Lexical()), GENERATION)} if case.form == "generate" else {}
    )
    return EvaluateAnswers(
        answering, (Judge(JUDGE, built_in_templates(), Model("m", "lexical", Lexical())),), {0: metrics}
    )


def reply(prompt: Prompt, case: Case) -> Stored:
    """A model's reply to a prompt."""
    if prompt.step == EMBED:
        return Stored(None, STOP, model_version="m", vector=tuple(embedding(prompt.values["text"])))
    if prompt.step == "answer":
        return Stored(case.answer, STOP, model_version="m")
    texts = {prompt.values.get("answer"), prompt.values.get("text")}
    if prompt.step in ("claims", "statements") and texts & {REFUSAL, *REFERENCES[2:]}:
        return Stored(json.dumps({prompt.step: []}), STOP, model_version="m")
    if prompt.step == "answer_kind":
        reply = {"reason": "", "kind": case.world.kind, "relevance": 0 if case.answer is None else 2}
        return Stored(json.dumps(reply), STOP, model_version="m")
    rendered = prompt.rendered()
    return Stored(Question(rendered.system, rendered.user).reply(), STOP, model_version="m")


def read_text(reply: Reply) -> str:
    """The text of a reply; "" for an embedding."""
    return json.loads(reply.answer)["text"] or ""


def evaluated(
    case: Case, planned: EvaluateAnswers, count: Callable[[int], None] = lambda _: None, item: Item | None = None
) -> EvaluatedItem:
    """The outcome of a case, its distinct calls and its tokens of replies."""
    steps = planned.steps(item or case.item)
    written: dict[str | None, str] = {}
    try:
        calls = next(steps)
        while True:
            replies = [Reply(reply(Prompt.parse(call.payload), case).written()) for call in calls]
            written |= {call.key: read_text(answer) for call, answer in zip(calls, replies, strict=True)}
            read = [planned.read(call, answer) for call, answer in zip(calls, replies, strict=True)]
            calls = steps.send([DOWN if call.service == "c" else one for call, one in zip(calls, read, strict=True)])
    except StopIteration as end:
        count(len(written))
        count(sum(map(len, written.values())) // 4)
        result: EvaluatedItem = end.value
    return result


def test_the_oracle_knows_every_metric() -> None:
    assert EXPECTED.keys() | OF_AGENTS.keys() == JUDGED.keys()
    assert len(list(cases())) == 288


@pytest.mark.parametrize("step", [97, *in_campaigns(1)])
def test_every_metric_has_its_value_or_its_reason_whatever_is_absent(step: int, tmp_path: Path) -> None:
    """Each metric is judged alone, and all together; the plan of each bounds the calls that it makes."""
    lookup = Ledger(str(tmp_path / "ledger")).lookup()
    everything = [(case, names) for case in cases() for names in [METRICS, *((metric,) for metric in METRICS)]]
    assert len(everything) == 288 * 62 == 17856
    for case, metrics in everything[::step]:
        planned, calls = work(case, metrics), list[int]()
        values = {value.metric: value for value in evaluated(case, planned, calls.append).values}
        assert values.keys() == set(map(str, metrics))
        for metric, value in values.items():
            actual, right = value.reason if value.value is None else value.value, expected(metric, case)
            assert actual == (right if isinstance(right, str) else pytest.approx(right, abs=1e-12)), (metric, case)
        plan = counted_items(planned, [case.item], lookup, {})
        least, most = (sum(map(len, sizes.values())) for sizes in (plan.least, plan.most))
        assert least <= calls[0] <= most, (metrics, case)
        written = sum(size.output for sizes in plan.least.values() for size in sizes.values())
        assert written <= calls[1] + 1, (metrics, case)


@pytest.mark.long
def test_all_metrics_together_have_their_values_whatever_is_absent() -> None:
    for case in cases():
        for value in evaluated(case, work(case)).values:
            actual, right = value.reason if value.value is None else value.value, expected(value.metric, case)
            assert actual == (right if isinstance(right, str) else pytest.approx(right, abs=1e-12)), (
                value.metric,
                case,
            )


def sample_of(case: Case, *, has_steps: bool) -> Item:
    item = case.item
    steps = (AgentStep("find", doc_ids=("d0",)),) if has_steps else None
    (system,) = item.systems
    return replace(item, systems=(replace(system, supplied=replace(system.supplied, steps=steps)),))


def test_replayed_samples_have_the_mean_of_the_values_that_each_has_alone() -> None:
    """A sample without contexts or steps took the values of the others, or counted as one with none of them."""
    metrics = tuple(metric for metric in METRICS if not metric.name.startswith("Consistency"))
    case = Case("replay", ANSWERS[0], REFERENCES[1], None, NUGGETS[1], None, has_ids=True)
    parts = [
        sample_of(replace(case, contexts=contexts), has_steps=bool(number % 2))
        for number, contexts in enumerate((*CONTEXTS, CONTEXTS[2][:1]))
    ]

    def values_of(item: Item) -> dict[str, Value]:
        return {value.metric: value for value in evaluated(case, work(case, metrics), item=item).values}

    alone = [values_of(part) for part in parts]
    for (one, own), (other, others) in product(zip(parts, alone, strict=True), repeat=2):
        (system,) = other.systems
        moved = replace(system, passages=tuple(place + len(one.passages) for place in system.passages))
        both = replace(one, passages=one.passages + other.passages, systems=(*one.systems, moved))
        for metric, value in values_of(both).items():
            known = [of[metric].value for of in (own, others) if of[metric].value is not None]
            if known:
                assert value.value == pytest.approx(sum(known) / len(known), abs=1e-12), (metric, both)
            else:
                assert (value.value, value.reason) == (None, own[metric].reason), (metric, both)


def by_judges() -> Iterator[JudgedMetric]:
    """All metrics by the majority of three judges and by each, as an experiment has them."""
    for metric in METRICS:
        if metric.votes or not metric.is_judged:
            yield metric
        if metric.is_judged:
            yield from (metric.shown(judge=name) for name in ("abc" if metric.votes else "a"))


@pytest.mark.parametrize("step", [7, *in_campaigns(1)])
def test_two_of_three_judges_have_every_value_whatever_is_absent(step: int) -> None:
    """The third is down: only its own values fail, and the majority is that of the other two."""
    judges = [
        Judge(replace(JUDGE, name=name), built_in_templates(), Model("m", "lexical", Lexical())) for name in "abc"
    ]
    metrics, failed = tuple(by_judges()), set()
    for case in list(cases())[::step]:
        planned = replace(work(case, metrics), judges=tuple(judges))
        values = list(evaluated(case, planned).values)
        assert {value.metric for value in values} == set(map(str, metrics))
        for value in values:
            metric = parse_judged(value.metric)
            right = expected(str(replace(metric, judge=None)), case)
            if value.error is not None:
                assert (metric.judge, value.error.message) == ("c", DOWN.message), (value, case)
                failed.add(metric.name)
                continue
            actual = value.reason if value.value is None else value.value
            assert actual == (right if isinstance(right, str) else pytest.approx(right, abs=1e-12)), (value, case)
    assert failed == {metric.name for metric in metrics if metric.judge == "c"}
