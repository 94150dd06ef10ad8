"""Do the tasks of a stage: one fan-out for all kinds of remote work.

Tasks that use connected quota pools are divided among lanes, usually one. A lane is one element after a GroupByKey, so
one worker at a time paces it, and the whole job stays within the quota, no matter how many workers there are.

The way of a task, by modules of `clients.calls`:

fanout ─► feed ─► lanes ─► driver: calls of a step ─┬─► hits: the ledger answers ──────────────┬─► driver ─► outcome
                                                    └─► pool_calls ─► admission ─► connection ─┘
"""

import logging
import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from rankbeam.transforms.clients.calls import task_batches
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed, Recall
from rankbeam.transforms.clients.calls.stage import Pools, Stage
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.calls.task_batches import TaskBatch
from rankbeam.transforms.clients.ledger import Ledger, LedgerUse
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.kernels.pacing import lane_of, lane_shares
from rankbeam.transforms.records.calls.steps import (
    CallAnswer,
    FailedTask,
    RecalledTasks,
    Usage,
    sum_by_position,
    without_paid,
)
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.reply import Tokens


class FailureLimit:
    """Counts failures until more queries have failed than the limit allows."""

    def __init__(self, most: float, queries: int) -> None:
        self._most, self._queries = most, queries
        self._failed: Tally[tuple[str, int]] = Tally()
        self._is_silent = most >= 1.0  # all may fail; a query with several tasks counts several times

    def add(self, failed: FailedTask) -> str | None:
        """Count a failure; return a warning, once, when the limit can no longer be met."""
        subject = failed.subject
        places = [(subject.panel, position) for position in subject.positions]
        self._failed.update(places)
        if self._is_silent or all(self._failed[place] / self._queries <= self._most for place in places):
            return None
        self._is_silent = True
        count = max(self._failed[place] for place in places)
        return (
            f"{count:,} of {self._queries:,} queries have failed for good, more than {self._most:.1%} "
            "(max_failure_rate): the run continues, and will end with status 3; the last failure: "
            f"{failed.failure.message}"
        )


PoolsKey = tuple[Pools, int]  # connected quota pools, and a shard of their tasks, or one of their lanes

FAILED, RECALLED, USAGE, WARNINGS = "failed", "recalled", "usage", "warnings"
_REPORT_EVERY_S = 0.1
_in_window = GlobalWindows.windowed_value
_logger = logging.getLogger(__name__)


class CallResults(NamedTuple):
    """The result of `CallServices`."""

    answers: beam.PCollection[CallAnswer]
    recalled: beam.PCollection[RecalledTasks]  # tasks of single-call works that the ledger answered
    failed: beam.PCollection[FailedTask]
    usage: beam.PCollection[Usage]
    warnings: beam.PCollection[str]


@dataclass
class CallServices(beam.PTransform):
    """Do all tasks at the pace of their pools; tasks with the same name once, without calls that the ledger has."""

    stage: Stage
    ledger: Ledger
    summary: beam.PCollection[DatasetSummary]
    earlier: beam.PCollection[Usage] | None = None

    def expand(self, tasks: beam.PCollection[TaskBatch]) -> Any:  # a CallResults; Beam warns about named results
        used = [] if self.earlier is None else [beam.pvalue.AsList(self.earlier)]
        outputs = (
            tasks
            | "DistinctTasks" >> DistinctTasks(self.stage)
            | "DivideAmongLanes"
            >> beam.FlatMap(divide_among_lanes, self.stage).with_output_types(tuple[PoolsKey, Reference])
            | "GroupByLane" >> beam.GroupByKey()
            | "Call"
            >> beam.ParDo(CallFn(self.stage, self.ledger), beam.pvalue.AsSingleton(self.summary), *used)
            .with_output_types(CallAnswer, recalled=RecalledTasks, failed=FailedTask, usage=Usage, warnings=str)
            .with_outputs(RECALLED, FAILED, USAGE, WARNINGS, main="answers")
        )
        usage = (
            outputs[USAGE]
            | "AllUsage" >> beam.combiners.ToList()
            | "AddLostAttempts" >> beam.FlatMap(with_lost_attempts, self.ledger, *used).with_output_types(Usage)
        )
        return CallResults(outputs.answers, outputs[RECALLED], outputs[FAILED], usage, outputs[WARNINGS])


@dataclass
class DistinctTasks(beam.PTransform):
    """Batch tasks by shard of connected pools, with one row for each name."""

    stage: Stage

    def expand(self, tasks: beam.PCollection[TaskBatch]) -> beam.PCollection[tuple[PoolsKey, pa.RecordBatch]]:
        return (
            tasks
            | "Shard" >> beam.FlatMap(shard_tasks, self.stage.connected()).with_output_types(tuple[PoolsKey, Reference])
            | "GroupByShard" >> beam.GroupByKey()
            | "Distinct" >> beam.FlatMap(distinct).with_output_types(tuple[PoolsKey, pa.RecordBatch])
        )


def shard_tasks(element: TaskBatch, pools: Mapping[str, Pools]) -> Iterator[tuple[PoolsKey, Reference]]:
    work, batch = element
    for shard, rows in task_batches.shard_batch(batch):
        yield (pools[work], shard), Reference.to(rows)


def distinct(element: tuple[PoolsKey, Iterable[Reference]]) -> Iterator[tuple[PoolsKey, pa.RecordBatch]]:
    """A shard's tasks, with one row for each name."""
    shard, references = element
    for batch in task_batches.distinct(references):
        yield shard, batch


def divide_among_lanes(element: tuple[PoolsKey, pa.RecordBatch], stage: Stage) -> Iterator[tuple[PoolsKey, Reference]]:
    """Distinct tasks of a shard, keyed by lane: each lane gets its share, in proportion to the quota."""
    (pools, first), batch = element
    quota = stage.in_lanes(pools)[pools[0]]
    shares = lane_shares(quota.requests_per_minute, quota.lanes)
    lanes = [lane_of(first + row, shares) for row in range(batch.num_rows)]
    for lane, rows in task_batches.split_batch(batch, lanes):
        yield (pools, lane), Reference.to(rows)


class CallFn(beam.DoFn):
    """Does the tasks of all lanes in a bundle at once."""

    def __init__(self, stage: Stage, ledger: Ledger) -> None:
        self._stage, self._ledger = stage, ledger

    def start_bundle(self) -> None:
        self._lanes: list[tuple[PoolsKey, Iterable[Reference]]] = []
        self._queries = 0
        self._earlier: Sequence[Usage] = ()

    def process(
        self, element: tuple[PoolsKey, Iterable[Reference]], summary: DatasetSummary, earlier: Sequence[Usage] = ()
    ) -> Iterator[CallAnswer]:
        """Take a lane; a bundle's lanes begin together, once all input that could fail has been read."""
        self._earlier = earlier
        self._queries = summary.judged + summary.also_asked  # the side input also waits until the dataset is checked
        self._lanes.append(element)
        yield from ()

    def finish_bundle(self) -> Iterator[object]:
        fan_out = FanOut(self._stage.after(self._earlier), self._ledger)
        for (pools, lane), references in self._lanes:
            recall = Recall(self._stage.works, references)
            fan_out.begin(pools, lane, Feed(recall.missed(), recall=recall))
        is_last = self._stage.batch is None or not self._stage.batch.parks
        limit = FailureLimit(self._stage.max_failure_rate if is_last else 1.0, self._queries)
        reported_at = 0.0
        for outcome in fan_out.outcomes():
            if isinstance(outcome, CallAnswer):
                yield _in_window(outcome)
            elif isinstance(outcome, RecalledTasks):
                yield beam.pvalue.TaggedOutput(RECALLED, _in_window(outcome))
            elif outcome is not None:
                count(Counter.FAILURES, int(is_last))  # other rounds repeat the task
                if (warning := limit.add(outcome)) is not None:
                    _logger.warning("%s", warning)
                yield beam.pvalue.TaggedOutput(FAILED, _in_window(outcome))
            if time.monotonic() > reported_at + _REPORT_EVERY_S:
                _report(fan_out.counted())
                reported_at = time.monotonic()
        _report(fan_out.counted())
        spill.release_unused_memory()  # of tasks: later stages allocate by other means
        for usage in fan_out.usage():
            yield beam.pvalue.TaggedOutput(USAGE, _in_window(usage))
        for warning in fan_out.warnings():
            yield beam.pvalue.TaggedOutput(WARNINGS, _in_window(warning))


def with_lost_attempts(used: list[Usage], ledger: Ledger, earlier: Sequence[Usage] = ()) -> list[Usage]:
    """The usage of every pool and model, including the calls of lost bundles that were repeated.

    Beam only keeps the result of the last attempt at a bundle. That attempt read the calls of earlier attempts from the
    ledger. This run has paid for them, so they do not count as hits.
    """
    known = {name for usage in (*used, *earlier) for name in usage.records}
    try:
        lost = [use for use in ledger.uses() if use.name not in known]
    except InputError:  # these records are only informative, so errors in them do not fail a run
        lost = []
    usages = merge_usage(used)
    firsts = {usage.pool: usage for usage in reversed(usages)}
    return [_with(usage, lost, is_first=firsts[usage.pool] is usage) for usage in usages]


def merge_usage(used: Iterable[Usage]) -> list[Usage]:
    """Merge usage, so that every pool and model occurs once."""
    return [_sum_usage(list(group)) for _, group in groupby(sorted(used, key=_use), key=_use)]


def _use(usage: Usage) -> tuple[str, str]:
    return usage.pool, usage.model or ""


def _sum_usage(used: list[Usage]) -> Usage:
    tokens = sum((usage.tokens for usage in used), Tokens())
    calls, hits = sum(usage.calls for usage in used), sum(usage.ledger_hits for usage in used)
    records = tuple(name for usage in used for name in usage.records)
    usages = sum_by_position(item for usage in used for item in usage.took)
    recalled = sum_by_position(item for usage in used for item in usage.recalled)
    numbers = replace(used[0], calls=calls, ledger_hits=hits, tokens=tokens)
    return replace(numbers, records=records, took=usages, recalled=recalled)


def _with(usage: Usage, lost: list[LedgerUse], *, is_first: bool) -> Usage:
    """Add the usage of lost bundles to that of a pool and model."""
    pool_uses = [use for use in lost if (use.pool, use.stage) == (usage.pool, usage.stage)]
    key = usage.stage, usage.model or ""
    added, paid = (
        [item for use in pool_uses for *name, item in getattr(use, usages) if tuple(name) == key]
        for usages in ("usages", "stored")
    )
    tokens = sum((item.tokens for item in added if item.position is None), usage.tokens)
    recalled = without_paid(usage.recalled, paid)
    usage = replace(usage, tokens=tokens, took=sum_by_position([*usage.took, *added]), recalled=recalled)
    if not is_first:
        return usage
    calls = usage.calls + sum(use.calls for use in pool_uses)
    return replace(usage, calls=calls, ledger_hits=max(0, usage.ledger_hits - sum(use.answered for use in pool_uses)))


def _report(counts: Counts) -> None:
    for (counter, pool), number in counts.items():
        count(counter, number, pool)
