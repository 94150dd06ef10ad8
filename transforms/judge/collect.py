"""Collect the results of judging in batches: values to be scored, and rows to be written."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, Reference, SpilledBatch, spill_batch
from rankbeam.transforms.judge.rows import Rows, texts_of
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.answer_tables import ANSWER_TABLES
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Subject, Task, without_calls
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.holes import GRADES
from rankbeam.transforms.records.judging.answers import EvaluatedItem, Value
from rankbeam.transforms.records.judging.items import items_in
from rankbeam.transforms.records.scores.judged import VALUES
from rankbeam.transforms.records.scores.scored import Status

WORK = "evaluate answers"  # the name of the stage's only work
PANEL = "judged"

_ROWS_AT_ONCE = 1000
_TEXTS_AT_ONCE, _LETTERS_AT_ONCE = 50_000, 8 << 20  # of all shards: a shard's part is then large enough to be spilled
_VALUES_AT_ONCE = 1 << 16  # of all buckets: a value takes 200 bytes until then, and 25 in a batch
_TEXT_SHARDS = 64
_TABLES = ("answers", "claims", "verdicts")
_FAILURES, _TEXTS, _GRADES = "failures", "texts", "grades"

_in_window = GlobalWindows.windowed_value

batches.register()


def tasks_of(element: Bucketed, configurations: tuple[int, ...]) -> Iterator[TaskBatch]:
    bucket, items = element
    tasks = (
        Task(item.query_id, WORK, item, (Subject(PANEL, item.query_id, bucket, configurations),))
        for item in items_in(items)
    )
    for batch in batches_of(tasks):
        yield WORK, batch


def judged_without_calls(
    element: Bucketed, work: EvaluateAnswers, configurations: tuple[int, ...]
) -> Iterator[CallAnswer]:
    """The results of a bucket's queries where no model is called."""
    bucket, items = element
    for item in items_in(items):
        subjects = (Subject(PANEL, item.query_id, bucket, configurations),)
        yield CallAnswer(WORK, item.query_id, subjects, without_calls(work.steps(item)))


@dataclass
class CollectEvaluated(beam.PTransform):
    """Turn evaluated items into values, grades and rows.

    Values are batches of `VALUES` by bucket; grades are batches of `GRADES`, if the judge fills holes; rows are tables
    by name, without the common columns.
    """

    rows: Rows

    def expand(self, answers: beam.PCollection[CallAnswer]) -> Any:  # Beam warns of tuples
        tags = (*_TABLES, _FAILURES, _TEXTS, _GRADES)
        outputs = answers | "Collect" >> beam.ParDo(CollectJudgementsFn(self.rows)).with_outputs(*tags, main="values")
        written = {name: outputs[name] for name in (*_TABLES, _FAILURES)}
        written["texts"] = (
            outputs[_TEXTS] | "GroupTexts" >> beam.GroupByKey() | "DistinctTexts" >> beam.FlatMap(distinct_texts)
        )
        return outputs.values, outputs[_GRADES], written


class CollectJudgementsFn(beam.DoFn):
    """Collects values and rows, and outputs them in batches."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def start_bundle(self) -> None:
        self._values: defaultdict[int, list[tuple[str, Value]]] = defaultdict(list)
        self._held = 0
        self._waiting: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._texts: dict[str, str] = {}
        self._letters = 0

    def process(self, element: CallAnswer) -> Iterator[object]:
        """Add an item's results; yield values and rows once a batch is full."""
        evaluated: EvaluatedItem = element.value
        (subject,) = element.subjects
        self._values[subject.bucket] += ((evaluated.query_id, value) for value in evaluated.values)
        self._held += len(evaluated.values)
        if self._held >= _VALUES_AT_ONCE:
            yield from self._batches()
        if evaluated.grades:
            rows = [dict(zip(GRADES.names, (evaluated.query_id, *grade), strict=True)) for grade in evaluated.grades]
            yield beam.pvalue.TaggedOutput(_GRADES, (subject.bucket, pa.RecordBatch.from_pylist(rows, GRADES)))
        self._waiting["answers"] += self._rows.answers(evaluated)
        self._waiting["claims"] += self._rows.claims(evaluated)
        self._waiting["verdicts"] += self._rows.verdicts(evaluated)
        failed = list(self._rows.failures(evaluated))
        count(Counter.FAILURES, len(failed))
        self._waiting[_FAILURES] += failed
        for name, text in texts_of(evaluated):
            self._letters += 0 if name in self._texts else len(text)
            self._texts[name] = text
        yield from self._outputs(_ROWS_AT_ONCE)
        if len(self._texts) >= _TEXTS_AT_ONCE or self._letters >= _LETTERS_AT_ONCE:
            yield from self._shards()

    def finish_bundle(self) -> Iterator[object]:
        for output in (*self._outputs(1), *self._shards()):
            yield beam.pvalue.TaggedOutput(output.tag, _in_window(output.value))
        yield from map(_in_window, self._batches())

    def _batches(self) -> Iterator[tuple[int, pa.RecordBatch | SpilledBatch]]:
        """The collected values, one batch for each bucket."""
        for bucket, values in self._values.items():
            if values:
                yield bucket, spill_batch(_batch(values))
        self._values, self._held = defaultdict(list), 0

    def _outputs(self, least: int) -> Iterator[beam.pvalue.TaggedOutput]:
        for name, rows in self._waiting.items():
            if len(rows) >= least:
                yield beam.pvalue.TaggedOutput(
                    name, pa.Table.from_pylist(rows, tables.own_columns(ANSWER_TABLES.get(name, tables.FAILURES)))
                )
                self._waiting[name] = []

    def _shards(self) -> Iterator[beam.pvalue.TaggedOutput]:
        by_shard = grouped(
            (int(text_hash[:8], 16) % _TEXT_SHARDS, {"text_hash": text_hash, "text": text})
            for text_hash, text in self._texts.items()
        )
        schema = tables.own_columns(ANSWER_TABLES["texts"])
        for shard, rows in by_shard.items():
            yield beam.pvalue.TaggedOutput(_TEXTS, (shard, Reference.to(pa.RecordBatch.from_pylist(rows, schema))))
        self._texts, self._letters = {}, 0


def distinct_texts(element: tuple[int, Iterable[Reference]]) -> Iterator[pa.Table]:
    _, shard = element
    seen: set[str] = set()
    for reference in shard:
        batch = reference.batch()
        names = batch["text_hash"].to_pylist()
        is_new = [name not in seen for name in names]  # inside a batch each is there once
        seen.update(names)
        yield pa.Table.from_batches([batch.filter(pa.array(is_new))])


def item_failure_rows(failed: FailedTask, rows: Rows) -> pa.Table:
    """The failure of a whole item, as rows of `tables.FAILURES`."""
    return pa.Table.from_pylist(list(rows.failed(failed.subject, failed.failure)), tables.own_columns(tables.FAILURES))


def _batch(values: Sequence[tuple[str, Value]]) -> pa.RecordBatch:
    columns: tuple[list[Any], ...] = (
        [query_id for query_id, _ in values],
        [value.configuration for _, value in values],
        [value.metric for _, value in values],
        [value.value for _, value in values],
        [_status(value) for _, value in values],
        [value.reason for _, value in values],
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, VALUES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=VALUES)


def _status(value: Value) -> Status:
    if value.value is not None:
        return Status.OK
    return Status.UNDEFINED if value.error is None else Status.FAILED
