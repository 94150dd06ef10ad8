"""Known items among a run's own questions: asked once a calendar week for each judge, however many runs there are.

The key of such a call contains the ISO week in which the run began. The ledger therefore answers it for the rest of
the week, and still has the answers of earlier weeks, with which this week's are compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.judge.judge import JudgeWork
from rankbeam.transforms.judge.known_items import KnownItem, known_items_of
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.work import STAGE, judgement_of
from rankbeam.transforms.records.calls.steps import Call, Steps, Subject, Task
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import EvaluatedItem, KnownAnswer
from rankbeam.transforms.records.reply import Reply

KNOWN = "ask known items"  # the name of the work of the only judge, or the first
LEAST_TEXTS = 100  # runs that judge fewer contexts and answers skip known items, which would cost more than they tell

_WEEKS = 26


@dataclass(frozen=True)
class EarlierAnswers:
    """A judge's earlier answers to the known items of a step."""

    week: str  # the ISO week, such as "2026-W40"
    classes: Mapping[str, str]


@dataclass(frozen=True)
class AskKnown(JudgeWork):
    """Ask a judge questions with known answers; a `Work` whose items are `KnownItem`s."""

    began: datetime
    judged_steps: tuple[str, ...]
    is_further: bool = False  # the judge is not the first of several
    stage: ClassVar[str] = STAGE  # known items are among the questions of the run

    @property
    def work(self) -> str:
        return f"{KNOWN} of {self.judge.model.name}" if self.is_further else KNOWN

    def items(self) -> list[KnownItem]:
        return [item for step in self.judged_steps for item in known_items_of(step)]

    def tasks(self, texts: int) -> Iterator[TaskBatch]:
        """One task for each item; none if the run judges only a few texts."""
        subject = (Subject("", "", 0, ()),)
        if texts >= LEAST_TEXTS:
            names = ((f"{self.judge.model.name} {item.id}" if self.is_further else item.id) for item in self.items())
            tasks = zip(names, self.items(), strict=True)
            for batch in batches_of(Task(name, self.work, item, subject) for name, item in tasks):
                yield self.work, batch

    def steps(self, item: KnownItem) -> Steps[EvaluatedItem]:
        """Ask, and return the judgement; no metric depends on it."""
        call = self.call(item)
        (outcome,) = yield [call]
        known = KnownAnswer(item.id, item.expected)
        judgement = judgement_of(item.question, 0, call.key or "", outcome, known=known, judge=self.judge.model.name)
        return EvaluatedItem("", None, (), (), (judgement,))

    def call(self, item: KnownItem) -> Call:
        return self._in_week(self._always(item), 0)

    def _always(self, item: KnownItem) -> Call:
        """The call without the week in its key."""
        return self.judge.call(item.question, item.values.get("query", ""), 0)

    def _in_week(self, call: Call, weeks_ago: int) -> Call:
        return replace(call, key=content_key({"known": call.key, "week": self.week(weeks_ago)}))

    def week(self, weeks_ago: int = 0) -> str:
        """The ISO week in which the run began, or an earlier one."""
        year, week, _ = (self.began - timedelta(weeks=weeks_ago)).isocalendar()
        return f"{year}-W{week:02}"

    def earlier(self, ledger: Ledger) -> dict[str, EarlierAnswers]:
        """For each step, the judge's most recent answers from an earlier week, to the same prompt."""
        by_key = {}
        for item in self.items():
            always = self._always(item)
            for weeks_ago in range(1, _WEEKS + 1):
                call = self._in_week(always, weeks_ago)
                by_key[call.key or ""] = weeks_ago, item, call
        answers: defaultdict[str, defaultdict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
        for entry in ledger.find(dict.fromkeys(by_key)):
            weeks_ago, item, call = by_key[entry.key]
            answer = self._class(item, call, Reply(entry.answer, entry.tokens))
            if answer is not None:
                answers[item.step][weeks_ago][item.id] = answer
        return {step: EarlierAnswers(self.week(min(weeks)), weeks[min(weeks)]) for step, weeks in answers.items()}

    def _class(self, item: KnownItem, call: Call, reply: Reply) -> str | None:
        try:
            return step_named(item.step).known_class(self.read(call, reply).value)
        except CallError:
            return None


def known_steps(metrics: Iterable[JudgedMetric]) -> tuple[str, ...]:
    definitions = [metric.definition for metric in metrics]
    inputs = [of for one in definitions for of in (*one.inputs.values(), *one.inputs_without_claims.values())]
    return tuple(step for step in sorted({step for entry in inputs for step in entry.steps}) if known_items_of(step))
