"""Simulated steps: the calls for queries, with known or imagined answers, and verdicts that are bought again.

No call is made. Answers in the ledger are known, so steps continue as they will in the run. Other answers are imagined
twice: once so that as few calls as possible follow (no text makes a claim, as if every answer abstained), once as many.

Questions are bought again if the ledger has their answers by other prompts, or in other parts. Only questions that
this experiment pays for are counted, and only if an earlier answer would be free.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.run.answers import work_of
from rankbeam.transforms.judge.judge import ModelReply
from rankbeam.transforms.judge.templates import VERSION_1, VERSIONS
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, InputError, pluralize
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN
from rankbeam.transforms.records.judging.items import Item
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.judging.steps import Imagined
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.stages import RERANK

_DEVIATIONS = 5
_WORD = "word "
PROMPTS = {version: f"the prompts are no longer those of {version}" for version in VERSIONS}
EXAMPLES = "the judge is shown examples of your own"
PARTS = "long texts are split differently"

_KEEPS = {reason: f"; `judge: {{prompts: {version}}}` keeps them" for version, reason in PROMPTS.items()}
_KEEPS[EXAMPLES] = "; without `judge: {examples: …}` they are kept"

Unknown = Mapping[int, tuple[int, int]]
"""Source and number of contexts of each configuration whose ranking may not be known yet."""

Again = dict[str, dict[str, int]]  # the number of verdicts that are bought again, by reason and question


class Assumption(Protocol):
    """Replies that are imagined, since the ledger has none."""

    def reply(self, call: Call, task: str) -> Any:
        """The reply as the task's work reads it."""

    def output_tokens(self, prompt: Prompt) -> float:
        """The approximate tokens of a reply."""


@dataclass(frozen=True)
class ImaginedAnswers:
    """Imagined replies of models that answer, judge, embed, rerank or rewrite."""

    claims: int
    alike: bool = False
    characters: int = 0
    of_a_claim: int = 20  # characters of a claim
    reply_tokens: int = 60
    item_tokens: int = 60  # of an id, a verdict and a reason

    def reply(self, call: Call, task: str) -> ModelReply:
        prompt = Prompt.parse(call.payload)
        if (step := step_of(prompt.step)) is not None:
            key = call.key or ""
            parts = (f"{number} {key[:8]} ".ljust(self.of_a_claim, ".") for number in range(self._claims_in(prompt)))
            return ModelReply(step.imagined(Imagined(key, items_of(prompt), tuple(parts))))
        name = f"answer to {task if self.alike else call.key} "
        return ModelReply(name + imagined_text(self.characters), "")

    def output_tokens(self, prompt: Prompt) -> float:
        step = step_of(prompt.step)
        if prompt.step == RERANK:
            return min(prompt.max_output_tokens, self.reply_tokens)
        if step is None:
            return min(prompt.max_output_tokens, self.characters / CHARACTERS_PER_TOKEN + self.reply_tokens)
        if step.embeds:
            return 0.0
        parts = step.imagined_parts(items_of(prompt), self.claims)
        return min(prompt.max_output_tokens, self.reply_tokens + self.item_tokens * parts)

    def _claims_in(self, prompt: Prompt) -> int:
        """Number of imagined claims in a prompt's text: when imagining many, at least one for each sentence."""
        text = prompt.values.get("text", "")
        return max(self.claims, len(sentences(text))) if self.claims > 1 and isinstance(text, str) else self.claims


LEAST = ImaginedAnswers(claims=0, alike=True, reply_tokens=3, item_tokens=10)
MOST = ImaginedAnswers(claims=12, characters=2000, of_a_claim=120)

Recall = Callable[[Sequence[Call]], Mapping[str, Any]]  # returns the outcomes of the calls that are known, by key

End = Callable[[Sequence[Call], Container[str]], bool]
"""Returns whether a task need not go on after some calls, which are known if their keys are in the container."""


def simulate_calls(
    tasks: Mapping[str, Steps[Any]], assumed: Assumption, recall: Recall, is_end: End = lambda *_: False
) -> dict[str, dict[str, Call]]:
    """The distinct calls of some tasks, by key."""
    query_calls: dict[str, dict[str, Call]] = {query_id: {} for query_id in tasks}
    next_calls = {query_id: calls for query_id, steps in tasks.items() if (calls := _next(steps, None)) is not None}
    while next_calls:
        known = recall([call for calls in next_calls.values() for call in calls])
        for query_id, calls in list(next_calls.items()):
            query_calls[query_id] |= {call.key or "": call for call in calls}
            following = None
            if not is_end(calls, known):
                keys = [call.key or "" for call in calls]
                sent = [
                    known[key] if key in known else assumed.reply(call, query_id)
                    for key, call in zip(keys, calls, strict=True)
                ]
                following = _next(tasks[query_id], sent)
            if following is None:
                del next_calls[query_id]
            else:
                next_calls[query_id] = following
    return query_calls


def known_queries(work: EvaluateAnswers, items: Sequence[Item], unknown: Unknown, recall: Recall) -> set[str]:
    """The queries whose calls the ledger answers, all of them."""
    imagined = [with_imagined(item, MOST, unknown) for item in items]
    tasks = {item.query_id: work.steps(with_systems(item, numbers_alike(work, item))) for item in imagined}
    calls = simulate_calls(tasks, MOST, recall, lambda own, known: any(call.key not in known for call in own))
    return {query_id for query_id, own in calls.items() if own.keys() <= recall(()).keys()}


def repeat_shares(work: EvaluateAnswers, queries: int) -> tuple[float, float]:
    """Bounds of the share of questions that are asked again; which ones are depends on answers that are unknown.

    >>> repeat_shares(EvaluateAnswers({}, (), {}, repeat_share=0.1), 400)
    (0.025, 0.175)
    """
    share = work.repeat_share
    margin = _DEVIATIONS * math.sqrt(share * (1 - share) / max(1, queries))
    return round(max(0.0, share - margin), 9), round(min(1.0, share + margin), 9)


def _next(steps: Steps[Any], sent: Sequence[Any] | None) -> Sequence[Call] | None:
    """The next calls of a task; None at its end."""
    try:
        return next(steps) if sent is None else steps.send(sent)
    except StopIteration:
        return None


def items_of(prompt: Prompt) -> int:
    step = step_of(prompt.step)
    return 0 if step is None or step.items is None else len(prompt.values[step.items])


def imagined_text(characters: int) -> str:
    return _WORD * (characters // len(_WORD))


def with_imagined(item: Item, assumed: ImaginedAnswers, unknown: Unknown) -> Item:
    """An item with imagined contexts for unknown rankings: the same for all sources, or different ones for each."""
    passages, systems = list(item.passages), []
    places = {passage: place for place, passage in reversed([*enumerate(passages)])}
    for system in item.systems:
        if system.failed and system.configuration in unknown:
            source, count = unknown[system.configuration]
            names = [f"{'' if assumed.alike else source} result {rank} of {item.query_id} " for rank in range(count)]
            imagined = [Passage(name, name + imagined_text(assumed.characters)) for name in names]
            new = [passage for passage in imagined if passage not in places]
            places |= {passage: place for place, passage in enumerate(new, len(passages))}
            passages += new
            system = replace(system, passages=tuple(places[passage] for passage in imagined), failed=False)
            if system.supplied.problem is not None:  # an application that was not called
                text = (
                    f"answer {'' if assumed.alike else source} to {item.query_id} {imagined_text(assumed.characters)}"
                )
                system = replace(system, supplied=replace(system.supplied, problem=None, answer=text))
        systems.append(system)
    return replace(item, passages=tuple(passages), systems=tuple(systems))


def numbers_alike(work: EvaluateAnswers, item: Item) -> dict[int, int]:
    """The first of the configurations that need the same calls for an item, and how many they are."""
    systems = grouped((system.configuration, replace(system, configuration=0)) for system in item.systems)
    alike = grouped(((_needs(work, position), *own), position) for position, own in systems.items())
    return {positions[0]: len(positions) for positions in alike.values()}


def _needs(work: EvaluateAnswers, position: int) -> tuple[object, ...]:
    """The settings of a configuration that determine its calls, besides contexts and supplied answers."""
    answerer, metrics = work.answering.get(position), work.metrics.get(position, ())
    generator = None if answerer is None else (answerer.model.name, answerer.generation, answerer.day)
    return generator, metrics, position == work.baseline


def with_systems(item: Item, positions: Container[int]) -> Item:
    return replace(item, systems=tuple(system for system in item.systems if system.configuration in positions))


def single_work(work: EvaluateAnswers, position: int) -> EvaluateAnswers:
    """A configuration's work on its own."""
    answering = {position: work.answering[position]} if position in work.answering else {}
    return replace(work, answering=answering, metrics={position: work.metrics.get(position, ())})


EarlierWork = tuple[str, EvaluateAnswers]  # the difference as text, and the same work with other prompts or parts


@dataclass(frozen=True)
class AgainPlan:
    """Calls and verdicts that are bought again for one reason."""

    reason: str
    calls: int
    verdicts: int

    def line(self) -> str:
        calls, verdicts = pluralize(self.calls, "call"), pluralize(self.verdicts, "verdict")
        line = f"{calls} to the judge ({verdicts}) are in the ledger but paid for again, only because {self.reason}"
        return f"{line}{_KEEPS.get(self.reason, '')}"


def again_plans(again: Mapping[str, Mapping[str, int]]) -> tuple[AgainPlan, ...]:
    """The counts for all reasons; a question with two reasons counts for the first."""
    plans, seen = [], set[str]()
    for reason in (*PROMPTS.values(), EXAMPLES, PARTS):
        new = {key: verdicts for key, verdicts in again.get(reason, {}).items() if key not in seen}
        seen |= new.keys()
        plans.append(AgainPlan(reason, len(new), sum(new.values())))
    return tuple(plan for plan in plans if plan.calls)


def earlier_works(experiment: Experiment) -> tuple[EarlierWork, ...]:
    """The experiment's work with every version of the prompts, and with long questions whole or in parts."""
    judging = experiment.judging
    if judging is None or not work_of(experiment).judges:
        return ()
    examples_known = dict.fromkeys([None, judging.examples])
    wordings = {(version, examples): PROMPTS[version] for version in VERSIONS for examples in examples_known}
    wordings[judging.prompts, None] = EXAMPLES
    wordings[judging.prompts, judging.examples] = PARTS
    own_limits = (judging.in_windows, judging.max_context_tokens)
    limits = dict.fromkeys([own_limits, (True, None), (False, None)])
    changed = [
        (reason, replace(judging, prompts=prompts, examples=examples, in_windows=in_windows, max_context_tokens=most))
        for (prompts, examples), reason in wordings.items()
        for in_windows, most in limits
        if reason != PARTS or (in_windows, most) != own_limits
    ]
    return tuple((reason, work_of(replace(experiment, judging=settings))) for reason, settings in changed)


def has_changed_prompts(experiment: Experiment) -> bool:
    """Return whether the last judged run had other prompts or judged in other parts, and the judge costs money.

    The run is the experiment's last one, or another experiment's in its folder if there is none.
    """
    work, judging = work_of(experiment), experiment.judging
    if judging is None or all(judge.model.parameters.offline is not None for judge in work.judges):
        return False
    try:
        judged = [run for run in finished_runs(experiment.output) if run.judge_quality]
    except InputError:  # no run has finished yet
        return False
    if not judged:
        return False
    last = [run for run in judged if run.experiment == experiment.name] or judged
    hashes = {step: template.hash for step, template in work.templates.items()}
    earlier_hashes = {row["step"]: row["prompt_hash"] for row in last[-1].judge_quality if row["prompt_hash"]}
    settings = last[-1].judge_settings
    limits = (settings.get("prompts") != VERSION_1, settings.get("max_context_tokens"))
    is_worded = all(hashes.get(step, known) == known for step, known in earlier_hashes.items())
    return not is_worded or limits != (judging.in_windows, judging.max_context_tokens)


def bought_again(work: EvaluateAnswers, earlier: Sequence[EarlierWork], items: Sequence[Item], recall: Recall) -> Again:
    """Count questions that must be paid for, although the ledger has their answers by other prompts or parts."""
    remaining = {
        query_id: _RemainingQuestions(calls, recall) for query_id, calls in _calls(work, items, recall).items()
    }
    again: Again = {}
    items = [item for item in items if remaining[item.query_id].steps]
    for reason, other_work in earlier if items else ():
        verdicts = again.setdefault(reason, {})
        for query_id, calls in _calls(other_work, items, recall, _is_new).items():
            known = recall(())
            answered = [call for key, call in calls.items() if key in known and key not in remaining[query_id].keys]
            for call, question, step in _questions(answered):
                if remaining[query_id].lacks(question, step):
                    verdicts[question] = _verdicts(step, known[call.key or ""])
    return again


class _RemainingQuestions:
    """The questions about one query to its judges, and the steps with questions that the ledger does not answer."""

    def __init__(self, calls: Mapping[str, Call], recall: Recall) -> None:
        known = recall(())
        self.keys = calls.keys()
        self._held = {question for call, question, _ in _questions(calls.values()) if call.key in known}
        unknown = [call for key, call in calls.items() if key not in known]
        self.steps = {step for _, _, step in _questions(unknown)}

    def lacks(self, question: str, step: str) -> bool:
        """Return whether a question is not in the ledger while its step has questions to pay for."""
        return step in self.steps and question not in self._held


def _is_new(calls: Sequence[Call], known: Container[str]) -> bool:
    """Return whether a judge answered none of these calls; later questions would be about imagined replies."""
    return bool(calls) and all(step_of(call.step) is not None and call.key not in known for call in calls)


def _calls(
    work: EvaluateAnswers, items: Sequence[Item], recall: Recall, is_end: End = lambda *_: False
) -> dict[str, dict[str, Call]]:
    return simulate_calls({item.query_id: work.steps(item) for item in items}, MOST, recall, is_end)


def _questions(calls: Iterable[Call]) -> Iterator[tuple[Call, str, str]]:
    """The calls to a judge, each with its step and an id of its question that does not depend on the prompt."""
    for call in calls:
        prompt = Prompt.parse(call.payload)
        step = step_of(prompt.step)
        if step is not None and not step.embeds:
            yield call, content_key({"service": call.service, **prompt.identity({}), "template": ""}), prompt.step


def _verdicts(step: str, outcome: Any) -> int:
    known = step_of(step)
    return 0 if known is None or isinstance(outcome, CallError) else len(known.verdicts(outcome.value))
