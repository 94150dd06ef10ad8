"""Several judges in one run: each gives its own verdicts, and the majority is their median, item by item.

All judges must decide about the same items. Therefore only the first judge writes what all vote on, such as the claims
of an answer, and the others are asked only for verdicts. Decisions by people can replace a judge's replies; the same
formulas then compute human values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rankbeam.transforms.judge.judge import Judge
from rankbeam.transforms.judge.metrics import JudgedMetric, is_judged, parse_judged
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import Claim, ClaimsStep
from rankbeam.transforms.judge.units import Unit
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.judged import Undefined, exact_mean
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import LabelledVerdict, Value, Votes
from rankbeam.transforms.records.judging.steps import JudgeQuestion, JudgeVerdict
from rankbeam.transforms.records.labels import ADJUDICATED, NO_LABELS, Labels, Place, text_hash
from rankbeam.transforms.records.metrics.names import split_name
from rankbeam.transforms.records.scores.judged import (
    LABELLED_IN_PART,
    NOTHING_TO_LABEL,
    UNDEFINED_BY_PEOPLE,
    by_people,
)

MAJORITY = "majority"  # the name of the majority in tables; no judge can have it

AllReplies = dict[JudgeQuestion, list[Any]]
"""The replies to each question, in the order of the judges that were asked: values, or CallErrors."""


@dataclass(frozen=True)
class JudgePanel:
    """The judges of a run, and for each criterion's step the value of each verdict."""

    judges: tuple[Judge, ...] = ()
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """The name of each judge in tables, by service; if there are several judges, it begins with the service."""
        models = [judge.model for judge in self.judges]
        return {model.name: f"{model.name} ({model.label})" if self.votes else model.label for model in models}

    @property
    def votes(self) -> bool:
        return len(self.judges) > 1

    def judges_of(self, question: JudgeQuestion) -> tuple[Judge, ...]:
        return self.judges if step_named(question.step).judges else self.judges[:1]

    def voices(self, replies: AllReplies) -> dict[str | None, "PanelReplies"]:
        """The replies of each judge, by the name of its service, and under None those of the majority."""
        if not self.votes:
            return {self.judges[0].model.name if self.judges else None: PanelReplies(self, replies, 0)}
        voices: dict[str | None, PanelReplies] = {None: PanelReplies(self, replies)}
        voices |= {judge.model.name: PanelReplies(self, replies, place) for place, judge in enumerate(self.judges)}
        return voices

    def units_of(self, units: Sequence[Unit], voice: str | None) -> list[Unit]:
        if not self.votes:
            return list(units)
        metrics = [tuple(metric for metric in unit.metrics if metric.judge == voice) for unit in units]
        return [replace(unit, metrics=chosen) for unit, chosen in zip(units, metrics, strict=True) if chosen]

    def majority(self, question: JudgeQuestion, replies: Sequence[Any]) -> Any:
        """The reply of the majority; a CallError if too many judges failed for the others to decide."""
        if len(replies) < len(self.judges):
            return replies[0]
        known = [reply for reply in replies if not isinstance(reply, CallError)]
        step, levels = step_named(question.step), self.levels.get(question.step)

        def rank(verdict: JudgeVerdict) -> float:
            if levels is not None:
                return levels.get(verdict.verdict or "", 0.0)
            return step.scale.index(verdict.name) if step.scale else float(verdict.score)

        reply = step.median(known, len(replies), rank) if known else None
        if reply is not None:
            return reply
        named = zip(self.judges, replies, strict=True)
        # Votes of all judges have a median, so one of them has failed.
        name, error = next((judge.model.name, reply) for judge, reply in named if isinstance(reply, CallError))
        return CallError(error.kind, f"no majority without {name}: {error.message}", 0)

    def counted(self, query_id: str, replies: AllReplies) -> Iterator[Votes]:
        rows: dict[str, list[tuple[str | None, ...]]] = {}
        for question, question_replies in replies.items():
            step = step_named(question.step)
            if self.votes and step.judges:
                count = len(question.items) or 1
                columns = [
                    (None,) * count if isinstance(reply, CallError) else [one.name for one in step.verdicts(reply)]
                    for reply in question_replies
                ]
                rows.setdefault(question.step, []).extend(zip(*columns, strict=True))
        for name, step_votes in rows.items():
            yield Votes(name, query_id, tuple(step_votes))


class PanelReplies(Mapping[JudgeQuestion, Any]):
    """Replies to questions by one judge, or by the majority."""

    def __init__(self, panel: JudgePanel, replies: AllReplies, place: int | None = None) -> None:
        self._panel, self._replies, self._place = panel, replies, place
        self._known: dict[JudgeQuestion, Any] = {}

    def __getitem__(self, question: JudgeQuestion) -> Any:
        """The reply, or the CallError of a question that failed."""
        if question not in self._known:
            question_replies = self._replies[question]
            if self._place is None:
                self._known[question] = self._panel.majority(question, question_replies)
            else:
                self._known[question] = question_replies[min(self._place, len(question_replies) - 1)]
        return self._known[question]

    def __contains__(self, question: object) -> bool:
        return question in self._replies

    def __iter__(self) -> Iterator[JudgeQuestion]:
        return iter(self._replies)

    def __len__(self) -> int:
        return len(self._replies)


class PeopleReplies(Mapping[JudgeQuestion, Any]):
    """One annotator's replies to questions about a query; a question that is not completely labelled has no reply.

    An adjudicated decision replaces the annotator's. A text without decisions has the judge's claims.
    """

    def __init__(self, labels: Labels, query_id: str, annotator: str, judge: Mapping[JudgeQuestion, Any]) -> None:
        self._labels, self._query_id, self._annotator, self._judge = labels, query_id, annotator, judge

    def __getitem__(self, question: JudgeQuestion) -> Any:
        """The reply, in the same form as a judge's."""
        if question.step == ClaimsStep.name:
            place = self._query_id, text_hash(question.texts[0])
            if place not in self._labels.claims:
                return self._judge[question]
            if (claims := self._labels.claims[place]) is None:
                raise KeyError(question)
            return tuple(Claim(text, None, None) for text in claims)
        by_annotator = [self._labels.decisions[place] for place in places_of(question, self._query_id)]
        decisions = [labels.get(ADJUDICATED) or labels[self._annotator] for labels in by_annotator]
        return step_named(question.step).decided(decisions)

    def __iter__(self) -> Iterator[JudgeQuestion]:
        """Replies can be looked up, but not listed."""
        return iter(())

    def __len__(self) -> int:
        return 0


def places_of(question: JudgeQuestion, query_id: str) -> list[Place]:
    """The keys of what people label in a question: each of its items, or the text as a whole."""
    step = step_named(question.step)
    right = text_hash(step.labelled_text(question))
    lefts = [text_hash(item) for item in question.items] if step.items or question.items else [None]
    return [(question.step, query_id, left, right) for left in lefts]


def problem_of_labels(metric: JudgedMetric) -> str | None:
    """The reason why people cannot label a metric, worded to follow its name; None if they can.

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
        unlabelled = next((name for name, entry in metric.definition.inputs.items() if not entry.by_people), None)
    if unlabelled is not None:
        return f"cannot be labelled: people cannot answer {unlabelled}"
    return None if steps else "cannot be labelled: nothing of it is judged"


def values_by_people(
    units: Sequence[Unit], labels: Labels, query_id: str, judge: Mapping[JudgeQuestion, Any]
) -> Iterator[Value]:
    """The human values of one query for metrics with labels, if the query was drawn at random.

    Queries about which people have nothing to decide, for example without contexts, are never drawn: the judge's value
    counts.
    """
    labelled = (((unit.configuration, metric), unit) for unit in units for metric in unit.metrics if metric.labels)
    for (position, metric), metric_units in grouped(labelled).items():
        if isinstance(_value(metric_units, metric, PeopleReplies(NO_LABELS, query_id, "", judge)), float):
            yield Value(position, by_people(str(metric)), None, NOTHING_TO_LABEL)
            continue
        # Another sample may have been drawn for a metric of other steps.
        drawn_for = [name for step in metric.steps for name in labels.drawn.get((query_id, step), ())]
        is_drawn = any(_represents(name, metric) for name in drawn_for)
        annotators = labels.annotators[query_id] if is_drawn else ()
        values = {
            name: _value(metric_units, metric, PeopleReplies(labels, query_id, name, judge)) for name in annotators
        }
        known = {name: value for name, value in values.items() if isinstance(value, float)}
        if ADJUDICATED in known:
            known = {ADJUDICATED: known[ADJUDICATED]}
        if annotators and not known:
            is_undefined = any(value is not None for value in values.values())
            reason = UNDEFINED_BY_PEOPLE if is_undefined else LABELLED_IN_PART
            yield Value(position, by_people(str(metric)), None, reason)
        elif known:
            yield Value(position, by_people(str(metric)), exact_mean([*known.values()]))


@cache
def _represents(drawn_for: str | None, metric: JudgedMetric) -> bool:
    """Return whether a sample drawn for one metric is also one for another, whose items are a subset of its items.

    Then every query with a value of the other metric also has one of the first, so it could have been drawn.
    """
    if drawn_for is None:
        return True
    depth = split_name(drawn_for).cutoff
    is_deep = depth is None or (metric.cutoff is not None and metric.cutoff <= depth)
    if metric.is_criterion or not is_judged(drawn_for):
        return is_deep
    drawn, own = parse_judged(drawn_for).definition, metric.definition
    has_items = is_deep and {name for name, entry in own.inputs.items() if entry.steps} <= drawn.inputs.keys()
    return has_items and set(drawn.undefined) <= set(own.undefined) and drawn.needs <= own.needs


def _value(units: Sequence[Unit], metric: JudgedMetric, replies: PeopleReplies) -> float | Undefined | None:
    """The mean of an annotator's values; the reason if there are none, None if a unit is not completely labelled."""
    values: list[float] = []
    undefined: Undefined | None = None
    for unit in units:
        alone = Unit(unit.configuration, (metric,), unit.case, unit.problem)
        if alone.missing(replies):
            return None
        value = alone.values(replies)[metric]
        if isinstance(value, CallError):
            return None
        if isinstance(value, Undefined):
            undefined = value
        else:
            values.append(float(value))
    return exact_mean(values) if values else undefined


def labelled_verdicts(
    labels: Labels, query_id: str, replies: Mapping[JudgeQuestion, Any], judge: str | None
) -> Iterator[LabelledVerdict]:
    """The verdicts of a judge, or of the majority, on everything that people labelled, each once."""
    if query_id not in labels.annotators:
        return
    for question in replies:
        step, reply = step_named(question.step), replies[question]
        if isinstance(reply, CallError) or not step.judges:
            continue
        for place, verdict in zip(places_of(question, query_id), step.verdicts(reply), strict=True):
            if place in labels.decisions:
                yield LabelledVerdict(place, verdict.name, judge)
