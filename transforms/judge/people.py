"""Human values: people's decisions take the place of a judge's replies, and the same formulas make values of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import Claim, ClaimsStep
from rankbeam.transforms.judge.units import Unit
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import LabelledVerdict, Value
from rankbeam.transforms.records.judging.steps import JudgeQuestion
from rankbeam.transforms.records.labels import ADJUDICATED, Labels, Place, text_hash
from rankbeam.transforms.records.scores.judged import LABELLED_IN_PART, by_people


class PeopleReplies(Mapping[JudgeQuestion, Any]):
    """One annotator's replies to questions about a query; questions that were not labelled whole have no reply."""

    def __init__(self, labels: Labels, query_id: str, annotator: str) -> None:
        self._labels, self._query_id, self._annotator = labels, query_id, annotator

    def __getitem__(self, question: JudgeQuestion) -> Any:
        """The reply, in the form in which the question's step reads a judge's."""
        if question.step == ClaimsStep.name:
            claims = self._labels.claims[self._query_id, text_hash(question.texts[0])]
            return tuple(Claim(text, None, None) for text in claims)
        decisions = [self._labels.decisions[place][self._annotator] for place in places_of(question, self._query_id)]
        return step_named(question.step).decided(decisions)

    def __iter__(self) -> Iterator[JudgeQuestion]:
        """Replies are found, never listed."""
        return iter(())

    def __len__(self) -> int:
        return 0


def places_of(question: JudgeQuestion, query_id: str) -> list[Place]:
    """Identifies what people label of a question: each of its items, or the text as a whole."""
    step = step_named(question.step)
    right = text_hash(step.labelled_text(question))
    lefts = [text_hash(item) for item in question.items] if step.items or question.items else [None]
    return [(question.step, query_id, left, right) for left in lefts]


def problem_of_labels(metric: JudgedMetric) -> str | None:
    """The reason why people cannot label a metric, to be printed after its name; None if they can.

    >>> from rankbeam.transforms.judge.metrics import parse_judged
    >>> [problem_of_labels(parse_judged(name)) for name in ("Faithfulness", "AnswerSimilarity")]
    [None, 'cannot be labelled: people cannot answer embed']
    """
    if metric.criterion is not None and metric.criterion.pairs is not None:
        return "cannot be labelled: it compares two answers, and people label one at a time"
    if metric.is_criterion:
        return None
    steps = [step for step in metric.definition.steps if step != ClaimsStep.name]
    unlabelled = next((step for step in steps if not step_named(step).decisions), None)
    if unlabelled is None:
        unlabelled = next((name for name, of in metric.definition.inputs.items() if not of.by_people), None)
    if unlabelled is not None:
        return f"cannot be labelled: people cannot answer {unlabelled}"
    return None if steps else "cannot be labelled: nothing of it is judged"


def values_by_people(units: Sequence[Unit], labels: Labels, query_id: str) -> Iterator[Value]:
    """The human values of the metrics that take labels, for one query that was drawn at random."""
    if query_id not in labels.drawn:
        return
    annotators = labels.annotators[query_id]
    for position, metric in dict.fromkeys((unit.configuration, item) for unit in units for item in unit.metrics):
        if not metric.labels:
            continue
        of_metric = [unit for unit in units if unit.configuration == position and metric in unit.metrics]
        values = {name: _value(of_metric, metric, PeopleReplies(labels, query_id, name)) for name in annotators}
        known = {name: value for name, value in values.items() if value is not None}
        if ADJUDICATED in known:
            known = {ADJUDICATED: known[ADJUDICATED]}
        if not known:
            yield Value(position, by_people(str(metric)), None, LABELLED_IN_PART)
        else:
            yield Value(position, by_people(str(metric)), math.fsum(known.values()) / len(known))


def _value(units: Sequence[Unit], metric: JudgedMetric, replies: PeopleReplies) -> float | None:
    """The mean of an annotator's values; None where some unit was not labelled whole, or has no value."""
    values = []
    for unit in units:
        alone = Unit(unit.configuration, (metric,), unit.case, unit.problem)
        if unit.problem is not None or alone.missing(replies):
            return None
        value = alone.values(replies)[metric]
        if not isinstance(value, int | float):
            return None
        values.append(float(value))
    return math.fsum(values) / len(values) if values else None


def labelled_verdicts(
    labels: Labels, query_id: str, replies: Mapping[JudgeQuestion, Any], judge: str | None
) -> Iterator[LabelledVerdict]:
    """The verdicts of a judge, or of the majority, on what people labelled, each once."""
    if query_id not in labels.annotators:
        return
    for question in replies:
        step, reply = step_named(question.step), replies[question]
        if isinstance(reply, CallError) or not step.judges:
            continue
        for place, verdict in zip(places_of(question, query_id), step.verdicts(reply), strict=True):
            if place in labels.decisions:
                yield LabelledVerdict(place, verdict.name, judge)
