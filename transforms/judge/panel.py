"""Several judges of one run: each has its own verdicts, and the majority is their median, item by item.

All judges decide about the same items. So the first judge alone writes what the others vote on, such as the claims of
an answer; the other judges are asked the questions whose replies are verdicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankbeam.transforms.judge.judge import Judge
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.units import Unit
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import Votes
from rankbeam.transforms.records.judging.steps import JudgeQuestion, JudgeVerdict

MAJORITY = "majority"
"""The name of the majority in tables, which no judge may have."""

AllReplies = dict[JudgeQuestion, list[Any]]
"""By question, the reply of each judge that was asked, in the order of the judges: a value, or a CallError."""


@dataclass(frozen=True)
class JudgePanel:
    """The judges of a run, and by step of a criterion the value of each verdict."""

    judges: tuple[Judge, ...] = ()
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """The name in tables of each judge, by its service, which several judges' names begin with."""
        models = [judge.model for judge in self.judges]
        return {model.name: f"{model.name} ({model.label})" if self.votes else model.label for model in models}

    @property
    def votes(self) -> bool:
        return len(self.judges) > 1

    def judges_of(self, question: JudgeQuestion) -> tuple[Judge, ...]:
        return self.judges if step_named(question.step).judges else self.judges[:1]

    def voices(self, replies: AllReplies) -> dict[str | None, "Voice"]:
        """The replies of each judge by the name of its service, and of the majority by None."""
        if not self.votes:
            return {self.judges[0].model.name if self.judges else None: Voice(self, replies, 0)}
        of_judges: dict[str | None, Voice] = {None: Voice(self, replies)}
        of_judges |= {judge.model.name: Voice(self, replies, place) for place, judge in enumerate(self.judges)}
        return of_judges

    def units_of(self, units: Sequence[Unit], voice: str | None) -> list[Unit]:
        if not self.votes:
            return list(units)
        metrics = [tuple(metric for metric in unit.metrics if metric.judge == voice) for unit in units]
        return [replace(unit, metrics=some) for unit, some in zip(units, metrics, strict=True) if some]

    def majority(self, question: JudgeQuestion, replies: Sequence[Any]) -> Any:
        """The reply of the majority; a CallError where too many judges failed for the others to decide."""
        if len(replies) < len(self.judges):
            return replies[0]
        known = [reply for reply in replies if not isinstance(reply, CallError)]
        rank = _Rank(question.step, self.levels.get(question.step))
        reply = step_named(question.step).median(known, len(replies), rank) if known else None
        if reply is not None:
            return reply
        named = zip(self.judges, replies, strict=True)
        name, error = next(
            ((judge.model.name, reply) for judge, reply in named if isinstance(reply, CallError)), ("", None)
        )
        assert error is not None  # noqa: S101  votes of all judges have a median
        return CallError(error.kind, f"no majority without {name}: {error.message}", 0)

    def counted(self, query_id: str, replies: AllReplies) -> Iterator[Votes]:
        """The verdicts of all judges on the items of a query, by step."""
        rows: dict[str, list[tuple[str | None, ...]]] = {}
        for question, of_question in replies.items():
            step = step_named(question.step)
            if self.votes and step.judges:
                count = len(question.items) or 1
                columns = [
                    (None,) * count if isinstance(reply, CallError) else [one.name for one in step.verdicts(reply)]
                    for reply in of_question
                ]
                rows.setdefault(question.step, []).extend(zip(*columns, strict=True))
        for name, of_step in rows.items():
            yield Votes(name, query_id, tuple(of_step))


class Voice(Mapping[JudgeQuestion, Any]):
    """Replies to questions by one judge, or by the majority."""

    def __init__(self, panel: JudgePanel, replies: AllReplies, place: int | None = None) -> None:
        self._panel, self._replies, self._place = panel, replies, place
        self._known: dict[JudgeQuestion, Any] = {}

    def __getitem__(self, question: JudgeQuestion) -> Any:
        """The reply, or the CallError of a question that failed."""
        if question not in self._known:
            of_question = self._replies[question]
            if self._place is None:
                self._known[question] = self._panel.majority(question, of_question)
            else:
                self._known[question] = of_question[min(self._place, len(of_question) - 1)]
        return self._known[question]

    def __contains__(self, question: object) -> bool:
        return question in self._replies

    def __iter__(self) -> Iterator[JudgeQuestion]:
        return iter(self._replies)

    def __len__(self) -> int:
        return len(self._replies)


@dataclass(frozen=True)
class _Rank:
    """Places of verdicts on the scale of a step."""

    step: str
    levels: Mapping[str, float] | None

    def __call__(self, verdict: JudgeVerdict) -> float:
        if self.levels is not None:
            return self.levels.get(verdict.verdict or "", 0.0)
        scale = step_named(self.step).scale
        return scale.index(verdict.name) if scale else float(verdict.score)
