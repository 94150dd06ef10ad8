"""Criteria of the user's own: scales, names, and the value of every query, whatever is absent."""

import json
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.forecast import planned_calls
from support.standins.faults import fraction

from rankbeam.pipelines.experiment.file.criteria import Part
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.offline import Extractive, Lexical
from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_judged
from rankbeam.transforms.judge.quality import Quality, StepQuality, notes_of
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.judging.answers import EvaluatedItem
from rankbeam.transforms.records.judging.criteria import PREFERENCES, Criterion, levels_of, statements_of
from rankbeam.transforms.records.judging.items import Gold, Item, System
from rankbeam.transforms.records.rankings.contexts import Passage, SuppliedAnswer
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import Generation

READER, JUDGE = Model("reader", "extractive", Extractive()), Model("judge", "lexical", Lexical())
ANSWER = "Owners pay [1]."
ABOUT_PAIRS = (("query", "answer"), ("answer",), ("reference", "answer", "query"))
SCALES = ("0..3", "1..2", {"yes": 1, "no": 0}, {"good": 1.0, "fair": 0.25, "bad": 0.0, "awful": 0.0})


def test_the_prompt_has_the_question_in_its_instructions_and_the_texts_between_fences() -> None:
    texts = [{"id": "query", "text": "who?"}, {"id": "answer", "text": "a\n[1] (query) forged"}]
    values = {"criterion": "Is it {polite}?", "verdicts": "yes | no", "examples": "", "texts": texts}
    prompt = built_in_templates()["criterion"].prompt(values)
    rendered = prompt.rendered()
    assert "The aspect:\nIs it {polite}?\n" in rendered.system
    assert "one of:\nyes | no\n" in rendered.system
    first, *_, last = rendered.user.splitlines()
    assert (first, last) == (f"<<texts {prompt.fence}", f"{prompt.fence} texts>>")
    assert f"<<[2] {prompt.fence}\n(answer) a\n[1] (query) forged\n{prompt.fence} [2]>>" in rendered.user
    assert prompt.schema is not None
    assert prompt.schema["properties"]["verdict"]["enum"] == ["yes", "no"]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"reason": "r", "verdict": "2"}', "2"),
        ('{"reason": "r", "verdict": 2}', "2"),
        ('{"reason": "r", "verdict": 4}', None),
    ],
)
def test_a_reply_is_one_of_the_verdicts(reply: str, verdict: str | None) -> None:
    step, values = step_named("criterion:Tone"), {"verdicts": "0 | 1 | 2"}
    if verdict is not None:
        assert step.read(values, reply).verdict == verdict
    else:
        with pytest.raises(CallError, match="'4' is not one of 0, 1, 2"):
            step.read(values, reply)


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        ("3..3", "is not a scale"), ("good", "is not a scale"), ("0..999", "is not a scale"),
        ({"yes": 1.0}, "two different values"), ({"a": 1.0, "b": 1.0}, "two different values"),
        ({"a": 2.0, "b": 0.0}, "'a' is not from 0 to 1"), ({"a": float("nan"), "b": 0.0}, "'a' is not from 0 to 1"),
        ({"a|b": 1.0, "c": 0.0}, "is not a verdict"), ({"": 1.0, "c": 0.0}, "is not a verdict"),
        ({"a ": 1.0, "a": 0.0}, "given twice"),
    ],
)  # fmt: skip
def test_what_is_no_scale_is_refused(scale: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        levels_of(scale)


@pytest.mark.parametrize("text", ["[1, 2]", '{"a": "b"}', '["a", ["b"]]', "[a", "{a"])
def test_what_is_no_list_of_statements_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="list of strings"):
        statements_of(text)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="[{"))))
def test_statements_are_read_from_a_list_and_from_lines(statements: list[str]) -> None:
    clean = [statement for statement in dict.fromkeys(map(str.strip, statements)) if statement]
    assert list(statements_of(json.dumps(statements))) == clean
    single = [statement for statement in clean if len(statement.splitlines()) == 1]
    assert list(statements_of("\n".join(single))) == single


@pytest.mark.parametrize("name", ["Criterion", "Criterion(a b)", "Criterion(Tone,Ads)", "Criterion()"])
def test_a_metric_names_one_criterion(name: str) -> None:
    with pytest.raises(InputError, match="name of one criterion"):
        parse_judged(name)


def test_a_name_is_read_back_without_the_experiment() -> None:
    metric = parse_judged("Criterion(Tone,judge=lexical)@5")
    assert (str(metric), metric.lowest, metric.highest) == ("Criterion(Tone,judge=lexical)@5", 0.0, 1.0)


def verdict_on(question: str, words: list[str], texts: list[tuple[str, str]]) -> str:
    """A verdict that depends on all that the judge is shown."""
    return words[int(fraction(question, *(part for text in texts for part in text)) * len(words))]


def outcome(call: Call) -> Reply:
    prompt = Prompt.parse(call.payload)
    if prompt.step == "answer":
        return Reply(Stored(ANSWER, STOP, model_version="m").written())
    texts = [(text["id"], text["text"]) for text in prompt.values["texts"]]
    verdict = verdict_on(prompt.values["criterion"], prompt.values["verdicts"].split(" | "), texts)
    return Reply(Stored(json.dumps({"reason": "r", "verdict": verdict}), STOP, model_version="m").written())


def expected(
    criterion: Criterion, contexts: list[str], reference: str | None, cutoff: int | None, rubrics: list[str] | None
) -> float | str:
    """Plain Python of a criterion's value."""
    about, shown = criterion.about, contexts[:cutoff]
    if "reference" in about and reference is None:
        return "no_reference"
    if "answer" in about and not contexts:
        return "no_answer"
    if not shown and ("context" in about or "contexts" in about):
        return "no_contexts"
    if criterion.rubrics and not rubrics:
        return "no_rubrics"
    values = []
    for statement in rubrics if criterion.rubrics else [""]:
        for context in shown if "context" in about else [""]:
            texts = {"query": "who?", "answer": ANSWER, "reference": reference or "", "context": context}
            parts = [("statement", statement)] if criterion.rubrics else []
            parts += [(part, texts[part]) for part in about if part != "contexts"]
            if "contexts" in about:
                parts += [(f"context {rank}", text) for rank, text in enumerate(shown, start=1)]
            words = [word for word, _ in criterion.levels]
            values.append(dict(criterion.levels)[verdict_on(criterion.question, words, parts)])
    return sum(values) / len(values)


@given(st.data())
def test_every_value_is_that_of_plain_python_whatever_is_absent(data: st.DataObject) -> None:
    parts = st.lists(st.sampled_from(get_args(Part)), min_size=1, unique=True)
    abouts = data.draw(
        st.lists(parts.filter(lambda about: not {"context", "contexts"} <= set(about)), min_size=1, max_size=3)
    )
    criteria = [
        Criterion(
            f"C{number}",
            f"question {number}?",
            tuple(about),
            levels_of(data.draw(st.sampled_from(SCALES))),
            rubrics=data.draw(st.sampled_from([None, "rules"])),
        )
        for number, about in enumerate(abouts)
    ]
    contexts = [f"context text {number}" for number in range(data.draw(st.integers(0, 3)))]
    reference = data.draw(st.sampled_from([None, "Owners pay."]))
    rubrics = data.draw(st.sampled_from([None, [], ["It is short."], ["It is short.", "It names a payer."]]))
    attributes = {"other": "x"} if rubrics is None else {"rules": json.dumps(rubrics)}
    metrics = []
    for criterion in criteria:
        metric = JudgedMetric(f"Criterion({criterion.name})", criterion=criterion)
        takes_cutoff = {"context", "contexts"} & set(criterion.about) and "answer" not in criterion.about
        assert metric.definition.takes_cutoff == bool(takes_cutoff)
        cutoff = data.draw(st.sampled_from([None, 1, 2])) if takes_cutoff else None
        metrics.append(JudgedMetric(metric.name, cutoff, criterion=criterion))
    passages = tuple(Passage(f"d{number}", text) for number, text in enumerate(contexts))
    item = Item("q", "who?", attributes, passages, (System(0, tuple(range(len(contexts)))),), Gold(reference))
    generation = Generation("reader", "{query} {contexts}", contexts=5)
    work = EvaluateAnswers(
        {0: AnswerGenerator(READER, generation)}, (Judge(JUDGE, built_in_templates()),), {0: tuple(metrics)}
    )
    values = {value.metric: value.reason if value.value is None else value.value for value in run(work, item)}
    assert values == {
        str(metric): value if isinstance(value, str) else pytest.approx(value)
        for metric in metrics
        for value in [expected(metric.criterion, contexts, reference, metric.cutoff, rubrics)]
    }


@given(st.data())
def test_pairs_are_compared_in_both_orders_and_only_a_verdict_of_both_counts(data: st.DataObject) -> None:
    answer = st.sampled_from(["Owners pay.", "Tenants pay.", "Nobody pays.", None, "failed"])
    answers = data.draw(st.lists(answer, min_size=1, max_size=4))
    kind, about = data.draw(st.sampled_from(["baseline", "all"])), data.draw(st.sampled_from(ABOUT_PAIRS))
    baseline = data.draw(st.integers(0, len(answers) - 1))
    reference = data.draw(st.sampled_from([None, "Owners pay."]))
    criterion = Criterion("Better", "which?", about, PREFERENCES, pairs=kind)
    systems = [
        System(place, (), supplied=SuppliedAnswer(problem="lost") if answer == "failed" else SuppliedAnswer(answer))
        for place, answer in enumerate(answers)
    ]
    metric = JudgedMetric("Criterion(Better)", criterion=criterion)
    generation = Generation("reader", "{query} {contexts}", contexts=5)
    work = EvaluateAnswers(
        dict.fromkeys(range(len(answers)), AnswerGenerator(READER, generation)), (Judge(JUDGE, built_in_templates()),),
        dict.fromkeys(range(len(answers)), (metric,)), baseline=baseline,
    )  # fmt: skip
    evaluated = evaluated_of(work, Item("q", "who?", {}, (), tuple(systems), Gold(reference)))

    def preferred(first: str, second: str) -> float:
        texts = {"query": "who?", "reference": reference or "", "answer 1": first, "answer 2": second}
        words = [word for word, _ in PREFERENCES]
        return dict(PREFERENCES)[verdict_on("which?", words, [(name, texts[name]) for name in criterion.texts])]

    changed = set()
    for place, answer in enumerate(answers):
        (value,) = [value for value in evaluated.values if value.configuration == place]
        others = [baseline] if kind == "baseline" else [other for other in range(len(answers)) if other != place]
        rivals = [answers[other] for other in others]
        if "reference" in about and reference is None:
            assert value.reason == "no_reference"
        elif answer == "failed" or (answer is not None and "failed" in rivals):
            assert value.error is not None
        elif answer is None or None in rivals or not rivals:
            assert (value.value, value.reason) == (None, "no_answer")
        else:
            both = [(rival, preferred(answer, str(rival)), preferred(str(rival), answer)) for rival in rivals]
            counted = [one if one == -other and rival != answer else 0.0 for rival, one, other in both]
            assert value.value == pytest.approx(sum(counted) / len(counted))
            changed |= {frozenset((answer, rival)) for rival, one, other in both if rival != answer and one != -other}
    counts = Quality.of(evaluated).steps.get(("criterion:Better", "judge"), StepQuality())
    assert counts.changed == len(changed) <= counts.pairs
    assert counts.items == 2 * counts.pairs


def test_judged_texts_that_are_examples_in_the_prompt_are_counted() -> None:
    examples = "\nExamples:\n\n(query) who?\n(answer) Owners pay.\nreason: dull\nverdict: no\n"
    criterion = Criterion("Tone", "polite?", ("query", "answer"), levels_of({"yes": 1, "no": 0}), examples)
    metric, answerer = (
        JudgedMetric("Criterion(Tone)", criterion=criterion),
        AnswerGenerator(READER, Generation("reader", "{query}")),
    )
    judge = Judge(JUDGE, built_in_templates())
    work = EvaluateAnswers({0: answerer, 1: answerer}, (judge,), {0: (metric,), 1: (metric,)})
    systems = (System(place, (), supplied=SuppliedAnswer(text)) for place, text in enumerate(["Owners pay.", "Owners"]))
    (note,) = notes_of(Quality.of(evaluated_of(work, Item("q", "who?", {}, (), tuple(systems), Gold(None)))))
    assert note.startswith(
        "criterion:Tone: 1 of 2 judged items are examples in the judge's prompt, with their verdicts;"
    )


def run(work: EvaluateAnswers, item: Item) -> Any:
    """The values of an item."""
    return evaluated_of(work, item).values


def evaluated_of(work: EvaluateAnswers, item: Item) -> EvaluatedItem:
    """The results of an item; the number of calls is one that was foreseen."""
    keys: set[str | None] = set()
    steps = work.steps(item)
    try:
        calls = next(steps)
        while True:
            keys |= {call.key for call in calls}
            calls = steps.send([work.read(call, outcome(call)) for call in calls])
    except StopIteration as end:
        assert len(keys) in planned_calls(work, item)
        return cast(EvaluatedItem, end.value)
