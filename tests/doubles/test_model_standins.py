"""The stand-ins of models: what they say follows the content of a question, whatever order and attempt it comes in."""

from typing import Any

import pytest
from support.judging import VARIABLES
from support.model_calls import outcome, outcomes, question, replies, support
from support.standins import Faults, serve
from support.standins.models import Question

from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

VALUES: dict[str, Any] = {
    "query": "who?", "text": "Owners pay. It snows.", "evidence": "Owners\npay.", "context": "Owners pay.",
    "answer": "Owners pay. Members do not.", "claims": {str(number): f"claim\n{number}" for number in range(5)},
    "contexts": {"0": "Owners pay.", "1": "It snows."}, "nuggets": {"0": "Owners pay.", "1": "Members pay."},
    "sentences": ["Owners pay.", "It snows."],
    "criterion": "Is it polite?", "examples": "", "verdicts": "yes | no",
    "texts": [{"id": "query", "text": "Who can pay?"}, {"id": "answer", "text": "Only owners can pay."}],
}  # fmt: skip


def prompt_and_question(step: str, sample: int = 0, **values: Any) -> tuple[Prompt, Question]:
    variables = {name: VALUES[name] for name in VARIABLES[step]} | values
    prompt = built_in_templates()[step].prompt(variables, sample=sample)
    return prompt, Question(prompt.rendered().system, prompt.rendered().user)


@pytest.mark.parametrize("step", VARIABLES)
def test_every_step_of_a_judge_is_answered_in_its_form_and_in_any_order_alike(step: str) -> None:
    replies = []
    for sample in range(4):
        prompt, standin = prompt_and_question(step, sample)
        replies.append(step_named(step).read(prompt.values, standin.reply()))
    assert all(one == replies[0] for one in replies)


def test_a_verdict_depends_on_its_item_and_evidence_alone() -> None:
    prompt, standin = prompt_and_question("support")
    together = step_named("support").read(prompt.values, standin.reply())
    for number, text in VALUES["claims"].items():
        alone, standin = prompt_and_question("support", claims={"0": text})
        assert step_named("support").read(alone.values, standin.reply()) == (together[int(number)],)
    evidences = [prompt_and_question("support", evidence=f"evidence {number}") for number in range(40)]
    verdicts = {step_named("support").read(prompt.values, standin.reply())[0].verdict for prompt, standin in evidences}
    assert len(verdicts) == 3


def test_some_contents_always_go_wrong_and_others_never() -> None:
    with serve("openai", faults=Faults(contents=0.3, content_kinds=("safety", "truncated"), seed=4)) as server:
        model = OpenAi(base_url=f"{server.url}/v1", model="m-001")
        prompts = [support(f"query {number}") for number in range(20)]
        kinds = [getattr(outcome, "kind", None) for outcome in outcomes(model, prompts)]
        again = [getattr(outcome, "kind", None) for outcome in outcomes(model, prompts[::-1])]
        stats = server.stats()
    assert kinds == again[::-1]
    assert set(kinds) == {None, FailureKind.BLOCKED, FailureKind.TRUNCATED}
    assert len(stats.tokens) == stats.calls == 40


def test_a_fault_by_number_is_over_when_it_is_asked_again() -> None:
    with serve("openai", faults=Faults(first=1, kinds=("broken_json",))) as server:
        model = OpenAi(base_url=f"{server.url}/v1", model="m-001")
        prompt = support("who pays?")
        first, second = replies(model, [prompt, prompt])
        assert isinstance(first, Reply)
        assert isinstance(second, Reply)
        with pytest.raises(CallError):
            step_named("support").read(prompt.values, model.read(first.answer).text)
        repaired = step_named("support").read(prompt.values, model.read(second.answer).text)
        assert repaired == outcome(model, prompt)
        assert outcome(model, question("plain")).text.endswith("rests on the first context [1].")
