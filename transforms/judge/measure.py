"""Measure a run's judge: count what it judged, and check its verdicts on known items."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage.batches import Bucketed
from rankbeam.transforms.judge.ask_known import AskKnown, EarlierAnswers
from rankbeam.transforms.judge.known_items import accuracies, drift_p_value, known_items_of
from rankbeam.transforms.judge.quality import JudgeOfStep, Quality, StepQuality, notes_of, warnings_of
from rankbeam.transforms.merge import MergeFn
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.answer_tables import JUDGE_QUALITY
from rankbeam.transforms.records.calls.prompt import Template
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer

Row = dict[str, Any]


@dataclass(frozen=True)
class QualityRows:
    """Makes rows, without the common columns."""

    judges: Mapping[str, str]  # names by service
    templates: Mapping[str, Template]
    quotas: Mapping[str, Quota] = field(default_factory=dict)  # with prices, by service
    confidence: float = 0.95

    def table(self, quality: Quality, earlier: Mapping[JudgeOfStep, EarlierAnswers]) -> pa.Table:
        order = sorted(quality.steps, key=lambda key: (key.step, list(self.judges).index(key.judge)))
        rows = [self._row(key, quality.steps[key], earlier.get(key)) for key in order]
        return pa.Table.from_pylist(rows, tables.own_columns(JUDGE_QUALITY))

    def _row(self, key: JudgeOfStep, counted: StepQuality, earlier: EarlierAnswers | None) -> Row:
        step, quota = key.step, self.quotas.get(key.judge)
        versions, tokens, template = sorted(counted.versions.items()), counted.tokens, self.templates.get(step)
        return {
            "step": step,
            "judge": self.judges[key.judge],
            "model_version": versions[0][0] if len(versions) == 1 else None,
            "model_versions": [{"model_version": name, "judgements": count} for name, count in versions],
            "prompt_hash": None if template is None else template.hash,
            "items": counted.items,
            "failed": counted.failed,
            "repeated": counted.repeated,
            "compared": counted.compared,
            "agreement": float(counted.agreement / counted.compared) if counted.compared else None,
            "within_sd": None if not counted.compared else math.sqrt(counted.variance / counted.compared),
            **self._of_known(step, counted.known, earlier),
            **tokens.by_column(),
            "cost": None if quota is None else quota.cost(counted.attempts, tokens),
        }

    def _of_known(self, step: str, answers: Mapping[str, str | None], earlier: EarlierAnswers | None) -> Row:
        if not answers:
            return {"sentinels": 0, "sentinel_groups": []}
        items = [item for item in known_items_of(step) if item.id in answers]
        classes = {name: answer for name, answer in answers.items() if answer is not None}
        by_group = accuracies(items, classes, self.confidence)
        whole = by_group.pop("")
        row: Row = {
            "sentinels": len(answers),
            "sentinels_right": whole.right,
            "sentinel_accuracy": whole.right / whole.count,
            "sentinel_low": whole.low,
            "sentinel_high": whole.high,
            "sentinel_groups": [
                {"name": name, "correct": accuracy.right, "count": accuracy.count}
                for name, accuracy in by_group.items()
            ],
        }
        if earlier is not None:
            row["drift_since"] = earlier.week
            row["drift_p_value"] = drift_p_value(items, earlier.classes, classes)
        return row


@dataclass
class PlanKnown(beam.PTransform):
    """The tasks that ask the judge known items, if the run judges enough texts."""

    asks: tuple[AskKnown, ...]

    def expand(self, items: beam.PCollection[Bucketed]) -> beam.PCollection[TaskBatch]:
        return (
            items
            | "CountTexts" >> beam.Map(texts_in)
            | "AllTexts" >> beam.CombineGlobally(sum)
            | "KnownTasks" >> beam.FlatMap(lambda texts: (batch for ask in self.asks for batch in ask.tasks(texts)))
        )


def texts_in(element: Bucketed) -> int:
    """The most contexts and answers that the items of a bucket can have to judge."""
    _, items = element
    return sum(pc.sum(pc.list_value_length(items[name])).as_py() or 0 for name in ("passages", "systems"))


@dataclass
class MeasureJudge(beam.PTransform):
    """Rows of `answer_tables.JUDGE_QUALITY` for all judgements of a run, and warnings about them."""

    rows: QualityRows
    asks: tuple[AskKnown, ...]
    ledger: Ledger
    strict: bool = False

    def expand(self, answers: beam.PCollection[CallAnswer]) -> Any:  # Beam warns of tuples
        quality = (
            answers
            | "CountJudgements" >> beam.Map(lambda answer: Quality.of(answer.value)).with_output_types(Quality)
            | "Merge" >> beam.CombineGlobally(MergeFn(Quality))
        )
        rows = quality | "Rows" >> beam.Map(table_of, self.rows, self.asks, self.ledger)
        warnings = (
            rows | "Warnings" >> beam.FlatMap(warnings_of, self.rows.confidence, strict=self.strict),
            quality | "Notes" >> beam.FlatMap(notes_of, self.rows.judges),
        ) | "EveryWarning" >> beam.Flatten()
        return rows, warnings


def table_of(quality: Quality, rows: QualityRows, asks: tuple[AskKnown, ...], ledger: Ledger) -> pa.Table:
    """Rows of `answer_tables.JUDGE_QUALITY`; known items are also compared with those of an earlier week."""
    has_known = any(step.known for step in quality.steps.values())
    earlier = {
        JudgeOfStep(step, ask.judge.model.name): answers
        for ask in (asks if has_known else ())
        for step, answers in ask.earlier(ledger).items()
    }
    return rows.table(quality, earlier)
