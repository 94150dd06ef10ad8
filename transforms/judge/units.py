"""Units of judging: one answer of a configuration with its contexts, and the metrics that are computed from it."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from rankbeam.transforms.judge.definitions import JudgedDefinition
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.judged import Undefined, exact_mean
from rankbeam.transforms.kernels.judged_refusals import reads_as_refusal
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import Answer, AnswerStatus, Value
from rankbeam.transforms.records.judging.items import Item, System
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgedInput, JudgeQuestion, JudgeReplies, Need

Replies = Mapping[JudgeQuestion, Any]  # the parsed reply of a step, or the CallError of a question that failed


class Evidence:
    """The arguments of formulas by name, or the CallErrors of failed judgements, and the questions without a reply."""

    def __init__(self, case: JudgedCase, replies: Replies, metrics: Iterable[JudgedMetric]) -> None:
        self._case, self._replies = case, replies
        self.arguments: dict[str, Any] = {}
        self.missing: dict[JudgeQuestion, None] = {}
        definitions = [metric.definition for metric in metrics]
        self._add({name: entry for one in definitions for name, entry in one.inputs.items()})
        if self._is_refusable():
            self._add({name: entry for one in definitions for name, entry in one.inputs_without_claims.items()})

    def value(self, metric: JudgedMetric) -> float | Undefined:
        """The value of a metric, or the reason why it has none."""
        definition, gold = metric.definition, self._case.gold
        needed = {name: self._argument(name) for name in definition.inputs}
        if self._is_refusable() and any(name in needed for name in _CLAIMS):
            needed |= {name: self._argument(name) for name in definition.inputs_without_claims}
        value = metric.value(needed)
        if value is not Undefined.NO_REFERENCE_CLAIMS:
            return value
        if gold.reference is None:
            return Undefined.NO_REFERENCE
        is_doubtful = definition.scores_refusals and gold.answerable is None
        return Undefined.REFERENCE_REFUSES if is_doubtful else value

    def _is_refusable(self) -> bool:
        """Return whether the answer makes no claims and the dataset says that there is no answer."""
        claims = (self.arguments.get(name) for name in _CLAIMS)
        has_none = any(axis is not None and not isinstance(axis, CallError) and not len(axis) for axis in claims)
        return self._case.gold.answerable is False and has_none

    def _argument(self, name: str) -> Any:
        argument = self.arguments[name]
        if isinstance(argument, CallError):
            raise argument
        return argument

    def _add(self, inputs: Mapping[str, JudgedInput]) -> None:
        for name, judged_input in inputs.items():
            if name not in self.arguments:
                try:
                    missing = self._run(name, judged_input)
                except CallError as error:
                    self.arguments[name] = error
                else:
                    self.missing |= dict.fromkeys(missing)

    def _run(self, name: str, judged_input: JudgedInput) -> Iterable[JudgeQuestion]:
        """Run an input until it ends or asks a question that has no reply yet."""
        inquiry = judged_input.get(self._case)
        if not isinstance(inquiry, Generator):
            self.arguments[name] = inquiry
            return ()
        try:
            questions = next(inquiry)
            while True:
                missing = [question for question in questions if question not in self._replies]
                if missing:
                    inquiry.close()
                    return missing
                questions = inquiry.send(JudgeReplies(self._replies))
        except StopIteration as end:
            self.arguments[name] = end.value
            return ()


_CLAIMS = ("ac", "ag")  # arguments whose first axis is that of the answer's claims


_ANSWERED = frozenset({AnswerStatus.OK, AnswerStatus.NO_CONTEXT})


@dataclass(frozen=True)
class Unit:
    """One answer of a configuration with the number of contexts that its metrics look at."""

    configuration: int
    metrics: tuple[JudgedMetric, ...]
    case: JudgedCase
    problem: CallError | Undefined | None = None

    def missing(self, replies: Replies) -> Mapping[JudgeQuestion, None]:
        """The questions that can be asked now and have no reply yet."""
        return {} if self.problem is not None else Evidence(self.case, replies, self.metrics).missing

    def values(self, replies: Replies) -> Mapping[JudgedMetric, float | Undefined | CallError]:
        """The values of the metrics, or the reasons or errors why there are none."""
        if self.problem is not None:
            return dict.fromkeys(self.metrics, self.problem)
        evidence = Evidence(self.case, replies, self.metrics)
        return {metric: _value(evidence, metric) for metric in self.metrics}


Rivals = Mapping[int, str | CallError | None]
"""The answers of all configurations to a query, or the reasons why they are not judged."""


@dataclass(frozen=True)
class _Others(Sequence[str | CallError | None]):
    """The answers of all configurations but one; a copy for each of them would take their number squared."""

    answers: Rivals
    position: int

    def __len__(self) -> int:
        return len(self.answers) - 1

    def __iter__(self) -> Iterator[str | CallError | None]:
        return (answer for other, answer in self.answers.items() if other != self.position)

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]


def units_of(
    item: Item,
    metrics: Mapping[int, Sequence[JudgedMetric]],
    answers: Mapping[int, Sequence[Answer]],
    baseline: int = 0,
) -> Iterator[Unit]:
    """Units of each configuration by cutoff."""
    rivals = cache(partial(_rivals, answers))
    systems = grouped((entry.configuration, entry) for entry in item.systems)  # several where samples are replayed
    for position, own in systems.items():
        yield from _units_of_one(item, position, own, metrics.get(position, ()), answers, rivals, baseline)


def _units_of_one(
    item: Item,
    position: int,
    own: Sequence[System],
    metrics: Sequence[JudgedMetric],
    answers: Mapping[int, Sequence[Answer]],
    rivals: Callable[[int], Rivals],
    baseline: int,
) -> Iterator[Unit]:
    """Units by cutoff; metrics of contexts have units of their own, so that a failed answer does not affect them."""
    by_kind = grouped(
        ((Need.ANSWER in metric.definition.needs, Need.CONTEXTS in metric.definition.needs, metric.cutoff), metric)
        for metric in metrics
    )
    for (needs_answer, needs_contexts, cutoff), alike in by_kind.items():
        samples: Sequence[Answer | None] = answers.get(position, ())
        if not needs_answer:  # samples of a model share their contexts
            samples = samples[: len(own)] or (None,)
        for sample, answer in enumerate(samples):
            system = own[min(sample, len(own) - 1)]
            lacking = grouped((_undefined_reason(metric.definition, item, system), metric) for metric in alike)
            for reason, unit_metrics in lacking.items():
                if reason is not None:
                    yield Unit(position, tuple(unit_metrics), _case(item), reason)
                    continue
                is_of_ranking = cutoff is not None and not needs_answer  # whatever the generator receives
                if answer is None or is_of_ranking:
                    contexts = item.contexts(system)[:cutoff]
                else:
                    contexts = list(answer.contexts)[:cutoff]
                case = _case(item, tuple(passage.text or "" for passage in contexts))
                without_text = (
                    [passage.doc_id for passage in contexts if passage.text is None] if needs_contexts else []
                )
                problem = _no_contexts(system, without_text)
                if needs_answer and answer is not None:
                    case = _with_answer(case, answers[position], sample, rivals(sample), position, baseline)
                    problem = problem or _no_answer(answer)
                yield Unit(position, tuple(unit_metrics), case, problem)


def _with_answer(
    case: JudgedCase, own: Sequence[Answer], sample: int, rivals: Rivals, position: int, baseline: int
) -> JudgedCase:
    answer = own[sample]
    return replace(
        case,
        answer=answer.text,
        cited=tuple(place for place in answer.cited if place < len(case.contexts)),
        invented=answer.invented,
        # The failure of another sample is that of the value.
        others=tuple(one.text or "" for place, one in enumerate(own) if place != sample),
        baseline=rivals.get(baseline),
        rivals=_Others(rivals, position),
        outcome=answer,
    )


def values_of(units: Sequence[Unit], samples: Iterable[Replies]) -> Iterator[Value]:
    """The mean of each metric over units and samples; failed if any value failed, missing if there are none."""
    values: defaultdict[tuple[int, JudgedMetric], list[float | Undefined | CallError]] = defaultdict(list)
    for replies in samples:
        for unit in units:
            unit_values = unit.values(replies)
            for metric in unit.metrics:
                values[unit.configuration, metric].append(unit_values[metric])
    for (position, metric), metric_values in values.items():
        yield _mean(position, str(metric), metric_values)


def _value(evidence: Evidence, metric: JudgedMetric) -> float | Undefined | CallError:
    try:
        return evidence.value(metric)
    except CallError as error:
        return error


def _case(item: Item, contexts: tuple[str, ...] = ()) -> JudgedCase:
    return JudgedCase(item.text, contexts, gold=item.gold, attributes=item.attributes)


def _rivals(answers: Mapping[int, Sequence[Answer]], sample: int) -> Rivals:
    """The answers of all configurations, from the same sample if they have that many."""
    rivals = {position: samples[min(sample, len(samples) - 1)] for position, samples in answers.items()}
    return {position: _no_answer(answer) or answer.text for position, answer in rivals.items()}


def _mean(position: int, metric: str, values: Sequence[float | Undefined | CallError]) -> Value:
    failed = next((value for value in values if isinstance(value, CallError)), None)
    if failed is not None:
        return Value(position, metric, None, failed.message, failed)
    numbers = [value for value in values if isinstance(value, float | int)]
    if not numbers:
        return Value(position, metric, None, str(values[0]))
    return Value(position, metric, exact_mean(numbers))


def _undefined_reason(definition: JudgedDefinition, item: Item, system: System) -> Undefined | None:
    """The reason why a metric has no value, known before anything is judged."""
    gold = item.gold
    if Need.CONTEXTS in definition.needs and not item.knows_contexts(system):
        return Undefined.CONTEXTS_NOT_GIVEN
    if Need.STEPS in definition.needs and system.supplied.steps is None and system.supplied.problem is None:
        return Undefined.STEPS_NOT_GIVEN
    if Need.EXPECTED_STEPS in definition.needs and gold.expected_steps is None:
        return Undefined.NO_EXPECTED_STEPS
    if Need.REFERENCE not in definition.needs:
        return None
    if gold.reference is None:
        # A refusal is right where there is no answer, so it needs no reference.
        return None if definition.scores_refusals and gold.answerable is False else Undefined.NO_REFERENCE
    is_doubtful = definition.scores_refusals and gold.answerable is None
    return Undefined.REFERENCE_REFUSES if is_doubtful and reads_as_refusal(gold.reference) else None


def _no_contexts(system: System, without_text: Sequence[str | None]) -> CallError | None:
    if system.supplied.problem is not None:
        return CallError(FailureKind.NOT_FOUND, f"not judged: {system.supplied.problem}", 0)
    if system.failed:
        return CallError(FailureKind.UNAVAILABLE, "not judged: the retriever gave no answer", 0)
    if without_text:
        problem = f"not judged: there is no text of document {without_text[0]!r}; give the documents as dataset.corpus"
        return CallError(FailureKind.INVALID, problem, 0)
    return None


def _no_answer(answer: Answer) -> CallError | None:
    if answer.status in _ANSWERED:
        return None
    kind = FailureKind.UNAVAILABLE if answer.error is None else answer.error.kind
    return CallError(kind, f"not judged: the answer is {answer.status}: {answer.message}", 0)
