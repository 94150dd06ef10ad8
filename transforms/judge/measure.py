"""Measure the judge of a run: count what it judged, and hold known items against their answers."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage.batches import Bucketed
from rankbeam.transforms.judge.ask_known import AskKnown
from rankbeam.transforms.judge.quality import JudgeOfStep, Quality
from rankbeam.transforms.judge.quality_rows import QualityRows
from rankbeam.transforms.judge.quality_warnings import notes_of, warnings_of
from rankbeam.transforms.merge import MergeFn
from rankbeam.transforms.records.calls.outcomes import CallAnswer


@dataclass
class PlanKnown(beam.PTransform):
    """The tasks that ask the judge known items, where a run judges enough."""

    asks: tuple[AskKnown, ...]

    def expand(self, items: beam.PCollection[Bucketed]) -> beam.PCollection[TaskBatch]:
        """Add the steps."""
        return (
            items
            | "CountTexts" >> beam.Map(texts_in)
            | "AllTexts" >> beam.CombineGlobally(sum)
            | "KnownTasks" >> beam.FlatMap(lambda texts: (batch for ask in self.asks for batch in ask.tasks(texts)))
        )


def texts_in(element: Bucketed) -> int:
    """The most contexts and answers to judge among the items of a bucket."""
    _, items = element
    return sum(pc.sum(pc.list_value_length(items[name])).as_py() or 0 for name in ("passages", "systems"))


class Measured(NamedTuple):
    """The outputs of `MeasureJudge`."""

    rows: beam.PCollection[pa.Table]
    """Of `answer_tables.JUDGE_QUALITY`, without the common columns."""
    warnings: beam.PCollection[str]


@dataclass
class MeasureJudge(beam.PTransform):
    """One table of all judgements of a run, and what users should know of them."""

    rows: QualityRows
    asks: tuple[AskKnown, ...]
    ledger: Ledger
    strict: bool = False

    def expand(self, answers: beam.PCollection[CallAnswer]) -> Any:  # a Measured; Beam warns of named results
        """Add the steps."""
        quality = (
            answers
            | "CountJudgements" >> beam.Map(quality_of).with_output_types(Quality)
            | "Merge" >> beam.CombineGlobally(MergeFn(Quality))
        )
        rows = quality | "Rows" >> beam.Map(table_of, self.rows, self.asks, self.ledger)
        warnings = (
            rows | "Warnings" >> beam.FlatMap(warnings_of, self.rows.confidence, strict=self.strict),
            quality | "Notes" >> beam.FlatMap(notes_of, self.rows.judges),
        ) | "EveryWarning" >> beam.Flatten()
        return Measured(rows, warnings)


def quality_of(answer: CallAnswer) -> Quality:
    """The rows of one answered task's judgements."""
    return Quality.of(answer.value)


def table_of(quality: Quality, rows: QualityRows, asks: tuple[AskKnown, ...], ledger: Ledger) -> pa.Table:
    """Rows of `answer_tables.JUDGE_QUALITY`, where known items are held against those of an earlier week, too."""
    has_known = any(step.known for step in quality.steps.values())
    earlier = {
        JudgeOfStep(step, ask.judge.model.name): answers
        for ask in (asks if has_known else ())
        for step, answers in ask.earlier(ledger).items()
    }
    return rows.table(quality, earlier)
