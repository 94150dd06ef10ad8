"""The work for one query: models answer it for every configuration, judges judge the answers, metrics are computed.

One task does all of this for one query, so that anything configurations share, such as an equal prompt or a context
that several of them retrieved, costs one call. A failed call affects only the values that need it.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from rankbeam.transforms.judge.answering import Answerer, AnswerGenerator, finish_answer
from rankbeam.transforms.judge.judge import Judge
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.panel import AllReplies, JudgePanel, labelled_verdicts, values_by_people
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.judge.units import Unit, units_of, values_of
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.statistics.raters import decisive_vote
from rankbeam.transforms.records.calls.prompt import Template
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.conversations import as_dialogue, history_of
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import (
    Answer,
    AnswerRow,
    AnswerStatus,
    EvaluatedItem,
    Judgement,
    KnownAnswer,
)
from rankbeam.transforms.records.judging.items import Item
from rankbeam.transforms.records.judging.steps import JudgeQuestion
from rankbeam.transforms.records.labels import NO_LABELS, Labels
from rankbeam.transforms.records.reply import Reply

STAGE = "judge"
_TIMES = 3  # that a repeated question is asked
_KEY_DIGITS = 8

Answers = dict[int, list[Answer]]
SampleQuestions = Sequence[tuple[JudgeQuestion, int]]
SampleReplies = dict[int, AllReplies]  # the replies to questions, by sample


@dataclass(frozen=True)
class EvaluateAnswers:
    """Answer a query and judge the answers; a `Work` whose items are `Item`s."""

    answering: Mapping[int, AnswerGenerator]
    judges: tuple[Judge, ...]
    metrics: Mapping[int, tuple[JudgedMetric, ...]]
    samples: int = 1
    repeat_share: float = 0.0
    labels: Labels = NO_LABELS
    baseline: int = 0
    fills_holes: bool = False
    answerers: Mapping[int, Answerer] = field(default_factory=dict)
    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> Sequence[str]:
        models = [answerer.model.name for answerer in self.answering.values()]
        models += [model.name for judge in self.judges for model in judge.models]
        return list(dict.fromkeys(models))

    def steps(self, item: Item) -> Steps[EvaluatedItem]:
        answers = yield from self._answer(item)
        units = list(units_of(item, self.metrics, answers, self.baseline))
        judgements: list[Judgement] = []
        panel = self.panel
        replies: SampleReplies = {sample: {} for sample in range(self.samples)}
        while missing := _missing_questions(units, replies, panel):
            yield from self._ask(item, missing, replies, judgements)
        voices = [panel.voices(sample_replies) for sample_replies in replies.values()]
        rows = tuple(
            AnswerRow(position, sample, answer)
            for position, sample_answers in answers.items()
            for sample, answer in enumerate(sample_answers)
        )
        judged_values = [
            value
            for name in voices[0]
            for value in values_of(panel.units_of(units, name), [sample_replies[name] for sample_replies in voices])
        ]
        first_voice = next(iter(voices[0].values()))
        values = (*judged_values, *values_by_people(units, self.labels, item.query_id, first_voice))
        compared = [labelled_verdicts(self.labels, item.query_id, voices[0][name], name) for name in voices[0]]
        votes = tuple(panel.counted(item.query_id, replies[0]))
        verdicts = tuple(verdict for voice_verdicts in compared for verdict in voice_verdicts)
        grades = document_grades(item, judgements) if self.fills_holes else ()
        return EvaluatedItem(
            item.query_id, item.gold.reference, rows, values, tuple(judgements), verdicts, votes, grades
        )

    def read(self, call: Call, reply: Reply) -> Any:
        answering = self._answering_services.get(call.service)
        if answering is not None and answering.is_asked_by(call):
            return answering.read(reply)
        return next(judge for judge in self.judges if judge.is_asked_by(call)).read(call, reply)

    @cached_property
    def _answering_services(self) -> Mapping[str, AnswerGenerator]:
        """One generator for each service: all generators of a service read its replies alike."""
        return {answering.model.name: answering for answering in self.answering.values()}

    def _answer(self, item: Item) -> Generator[Sequence[Call], Sequence[Any], Answers]:
        """The answers of each configuration, by its position; equal prompts are one call."""
        answers: Answers = {}
        calls: list[tuple[int, int, Call]] = []
        for system in item.systems:
            answering, provided = self.answering.get(system.configuration), system.supplied
            used = provided.consumption
            if provided.problem is not None:
                failed = Answer(AnswerStatus.FAILED, message=provided.problem, tokens=used.tokens)
                answers[system.configuration] = [replace(failed, attempts=used.attempts)]
            elif provided.answer is not None:
                contexts = tuple(item.contexts(system) if item.knows_contexts(system) else ())
                known = Answer(AnswerStatus.OK, provided.answer, contexts, tokens=used.tokens, steps=provided.steps)
                known = replace(known, attempts=used.attempts, seconds=used.seconds, first_token_s=used.first_token_s)
                answers.setdefault(system.configuration, []).append(replace(known, citations=provided.citations))
            elif answering is not None:
                begun = answering.begun(item, system)
                count = answering.generation.samples if begun.status is AnswerStatus.OK else 1
                answers[system.configuration] = [begun] * count
                if begun.status is AnswerStatus.OK:
                    sampled = (answering.call(item, begun.contexts, sample) for sample in range(count))
                    calls += [(system.configuration, sample, call) for sample, call in enumerate(sampled)]
        distinct = _distinct(calls)
        outcomes = dict(zip(distinct, (yield list(distinct.values())), strict=True))
        for position, sample, call in calls:
            answers[position][sample] = finish_answer(answers[position][sample], outcomes[call.key])
        return {position: [self._with_cost(position, answer) for answer in own] for position, own in answers.items()}

    def _with_cost(self, position: int, answer: Answer) -> Answer:
        answerer = self.answerers.get(position)
        return answer if answerer is None else replace(answer, cost=answerer.cost(answer))

    def _ask(
        self, item: Item, questions: SampleQuestions, replies: SampleReplies, judgements: list[Judgement]
    ) -> Generator[Sequence[Call], Sequence[Any], None]:
        """Ask the questions of every sample, and some of them again."""
        panel, history = self.panel, as_dialogue(history_of(item.attributes))
        asks = [
            (question, sample, judge, judge.calls(question, item.text, sample, history))
            for question, sample in questions
            for judge in panel.judges_of(question)
        ]
        asks += [
            (question, sample, judge, judge.calls(question, item.text, sample, history))
            for question, first, judge, calls in asks
            if first == 0 and self._is_repeated(question, key_of(calls))
            for sample in range(self.samples, _TIMES)
        ]
        outcomes = iter((yield [call for *_, calls in asks for call in calls]))
        for question, sample, judge, calls in asks:
            outcome = judge.joined(question, [next(outcomes) for _ in calls])
            is_repeat = sample >= self.samples
            if not is_repeat:
                reply = outcome if isinstance(outcome, CallError) else outcome.value
                replies[sample].setdefault(question, []).append(reply)
            name = judge.model.name
            judgements.append(judgement_of(question, sample, key_of(calls), outcome, is_repeat=is_repeat, judge=name))

    @property
    def templates(self) -> Mapping[str, Template]:
        return self.judges[0].templates if self.judges else {}

    @cached_property
    def panel(self) -> JudgePanel:
        criteria = (metric.criterion for metrics in self.metrics.values() for metric in metrics)
        return JudgePanel(self.judges, {one.step: dict(one.levels) for one in criteria if one is not None})

    def _is_repeated(self, question: JudgeQuestion, key: str) -> bool:
        place = int((key or "0")[:_KEY_DIGITS], 16) / 16**_KEY_DIGITS
        return step_named(question.step).judges and place < self.repeat_share


def document_grades(item: Item, judgements: Sequence[Judgement]) -> tuple[tuple[str, int], ...]:
    """Document grades: the lower median over samples and judges, and the highest over several texts of a document.

    A text has no grade if failed judgements could change its median.
    """
    grade_votes = [one for one in judgements if one.step == GradeStep.name and not one.is_repeat]
    by_text = grouped((judgement.texts[0], judgement) for judgement in grade_votes)
    best: dict[str, int] = {}
    for passage in item.passages:
        votes = [] if passage.text is None else by_text.get(passage.text, [])
        grades = [judgement.verdict.grade for judgement in votes if judgement.verdict is not None]
        place = decisive_vote(grades, len(votes))
        if passage.doc_id is not None and place is not None:
            best[passage.doc_id] = max(best.get(passage.doc_id, 0), grades[place])
    return tuple(sorted(best.items()))


def _distinct(calls: Sequence[tuple[int, int, Call]]) -> dict[str | None, Call]:
    """Calls by key, each with the positions of all configurations that share it."""
    positions = grouped((call.key, position) for position, _, call in calls)
    return {call.key: replace(call, positions=frozenset(positions[call.key])) for _, _, call in calls}


def _missing_questions(units: Sequence[Unit], replies: SampleReplies, panel: JudgePanel) -> SampleQuestions:
    """The distinct questions that can be asked now, with their samples."""
    missing: dict[tuple[JudgeQuestion, int], None] = {}
    for sample, sample_replies in replies.items():
        for name, voice in panel.voices(sample_replies).items():
            voice_units = panel.units_of(units, name)
            missing |= dict.fromkeys((question, sample) for unit in voice_units for question in unit.missing(voice))
    return list(missing)


def key_of(calls: Sequence[Call]) -> str:
    """The content key of a question: its call's key, or a hash of the keys of its calls."""
    if len(calls) == 1:
        return calls[0].key or ""
    return content_key({"parts": [call.key for call in calls]})


def judgement_of(
    question: JudgeQuestion,
    sample: int,
    key: str,
    outcome: Any,
    *,
    is_repeat: bool = False,
    known: KnownAnswer | None = None,
    judge: str = "",
) -> Judgement:
    failed = isinstance(outcome, CallError)
    return Judgement(
        question.step,
        key,
        sample,
        is_repeat,
        question.texts,
        question.items,
        None if failed else outcome.value,
        None if failed else outcome.model_version,
        outcome.tokens,
        known,
        judge,
        outcome.attempts,
    )
