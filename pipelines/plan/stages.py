"""Branches of a plan that count models' calls and texts to embed.

queries ─► retrieved in process, read, or recalled from the ledger ─► contexts ─► calls counted ─► totals ─► one file
"""

import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.generate import MOST_TEXTS
from rankbeam.pipelines.plan.counting import CallCounts, counted_calls, counted_items, known_counts
from rankbeam.pipelines.plan.simulation import MOST, EarlierWork, Unknown, earlier_works, with_imagined
from rankbeam.pipelines.plan.totals import CallTotals, SizeTotal, Step, divided, totals_of
from rankbeam.pipelines.run.answers import contexts_wanted, known_of, work_of
from rankbeam.pipelines.run.branches import Branches, local_rankings
from rankbeam.pipelines.run.buckets import buckets_of, of_documents
from rankbeam.pipelines.run.calling import (
    add_answers,
    documents_to_embed,
    embed_stage,
    queries_to_embed,
    retrieve_stage,
)
from rankbeam.pipelines.run.reranking import items_of as rerank_items
from rankbeam.pipelines.run.reranking import rerank_stage, rerank_works, tasks_to_rerank
from rankbeam.pipelines.run.rewriting import rewrite_stage, rewrite_works, tasks_to_rewrite
from rankbeam.transforms.call import DistinctTasks
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import groups_in
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.storage.batches import JUDGED, RANKINGS, REPLAYED, Bucketed, Reference
from rankbeam.transforms.contexts import GatherContexts
from rankbeam.transforms.judge.ask_known import AskKnown
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask, Steps, Task
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind
from rankbeam.transforms.records.judging.items import batches_of, items_in
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.retrieve import remote
from rankbeam.transforms.retrieve.rerank import CollectReranked, as_configurations, not_computed
from rankbeam.transforms.retrieve.rewrite import TEXTS, AskRewritten
from rankbeam.transforms.retrieve.rewrite import failures_of as rewrites_failed

CountOutputs = list[beam.PCollection[CallCounts]]

_FAILED = "failed"
_CONTEXTS = 10  # number to imagine without a limit


def distinct_batches(tasks: beam.PCollection, stage: Stage) -> beam.PCollection:
    """Batches of a stage's tasks, with one row for each name."""
    distinct = tasks | f"Distinct_{stage.name}" >> DistinctTasks(stage)
    return distinct | f"Batches_{stage.name}" >> beam.Values()


def count_rewriting(
    experiment: Experiment, dataset: Dataset, branches: Branches, counts: CountOutputs
) -> beam.PCollection:
    """Count the calls of models that rewrite queries; add the texts in the ledger.

    Returns the queries of each source, with imagined texts if the ledger has none.
    """
    stage, ask = rewrite_stage(experiment), AskRewritten(experiment.evaluation, rewrite_works(experiment))
    tasks = distinct_batches(tasks_to_rewrite(dataset, experiment), stage)
    count_calls(tasks, stage, experiment, counts)
    recalled = tasks | "RecallRewrites" >> _recall(stage, experiment)
    parts = {JUDGED: dataset.judged, TEXTS: recalled.answers, _FAILED: recalled[_FAILED]}
    branches.rewritten, _ = parts | "AskKnown" >> ask
    branches.failures.append(recalled[_FAILED] | "NotRewritten" >> beam.FlatMap(rewrites_failed, ask.works))
    imagined = recalled[_FAILED] | "ImagineTexts" >> beam.Map(_imagined_texts, MOST_TEXTS)
    parts = {
        JUDGED: dataset.judged,
        TEXTS: (recalled.answers, imagined) | "EveryRewrite" >> beam.Flatten(),
        _FAILED: dataset.judged | "NoFailure" >> beam.FlatMap(lambda _: ()),
    }
    queries, _ = parts | "AskImagined" >> ask
    return queries


def _imagined_texts(failed: FailedTask, number: int) -> CallAnswer:
    texts = tuple(f"text {place} for {failed.subject.query_id} {failed.work}" for place in range(number))
    return CallAnswer(failed.work, "", (failed.subject,), texts)


def add_known_rankings(
    pipeline: beam.Pipeline,
    experiment: Experiment,
    dataset: Dataset,
    tasks: beam.PCollection | None,
    branches: Branches,
) -> None:
    """Add the rankings that need no call: computed in this process, or stored in the ledger."""
    local_rankings(pipeline, experiment, dataset, buckets_of(experiment), branches)
    if tasks is not None:
        recalled = tasks | "Recall" >> _recall(retrieve_stage(experiment), experiment)
        add_answers(recalled.answers, None, experiment, branches)
        branches.failures.append(recalled[_FAILED] | "NotKnown" >> beam.FlatMap(remote.failures_of))


def count_models(experiment: Experiment, dataset: Dataset, branches: Branches, counts: CountOutputs) -> None:
    work, parts = work_of(experiment), branches.parts(dataset)
    if branches.replayed is not None:
        parts[REPLAYED] = branches.replayed
    depths = contexts_wanted(work)
    unknown = _unknown_contexts(experiment.evaluation, depths, experiment)
    pools = experiment.calls.pools
    limited = {
        name
        for name, service in experiment.calls.services.items()
        if service.pool is not None and pools[service.pool].tokens_per_minute is not None
    }
    counts.append(
        parts
        | "GatherContexts"
        >> GatherContexts(
            experiment.evaluation, depths, experiment.dataset.corpus, of_documents(experiment.dataset.corpus)
        )
        | "Simulate" >> beam.ParDo(SimulateFn(work, experiment.ledger, unknown, earlier_works(experiment), limited))
    )


def read_counted(file: str) -> CallCounts:
    counts: CallCounts = pickle.loads(Path(file).read_bytes())  # noqa: S301  this process wrote it
    return counts


def _recall(stage: Stage, experiment: Experiment) -> beam.PTransform:
    """Complete a stage's tasks that the ledger answers; the others fail."""
    recall = beam.ParDo(RecallFn(stage, experiment.ledger)).with_output_types(CallAnswer, failed=FailedTask)
    return recall.with_outputs(_FAILED, main="answers")


def count_reranking(experiment: Experiment, dataset: Dataset, branches: Branches, counts: CountOutputs) -> None:
    """Count the calls that rerank; add the rankings in the ledger."""
    stage, items = rerank_stage(experiment), rerank_items(branches.parts(dataset), experiment)
    evaluation = as_configurations(experiment.evaluation)
    unknown = _unknown_contexts(evaluation, dict.fromkeys(range(len(evaluation.configurations))), experiment)
    imagined = items | "ImagineResults" >> beam.FlatMap(with_imagined_results, unknown).with_output_types(Bucketed)
    tasks = distinct_batches(tasks_to_rerank(imagined, experiment), stage)
    recalled = tasks | "RecallReranks" >> _recall(stage, experiment)
    collect = CollectReranked(experiment.evaluation, rerank_works(experiment))
    missing = items | "NotComputed" >> beam.FlatMap(not_computed, rerank_works(experiment))
    failed = (recalled[_FAILED], missing) | "NotReranked" >> beam.Flatten()
    parts = {"items": items, "scores": recalled.answers, "failed": failed}
    branches.rankings[f"{RANKINGS}_reranked"], unranked, _ = parts | "RecallRankings" >> collect
    branches.failures.append(unranked)
    count_calls(tasks, stage, experiment, counts)


def count_calls(tasks: beam.PCollection, stage: Stage, experiment: Experiment, counts: CountOutputs) -> None:
    """Count the first calls of tasks."""
    counts.append(tasks | f"Count_{stage.name}" >> _counting(stage, experiment))


def _counting(stage: Stage, experiment: Experiment) -> beam.PTransform:
    fn = CountFn(stage, experiment.ledger, {*experiment.calls.services})
    return beam.ParDo(fn).with_output_types(CallCounts)


def with_imagined_results(element: Bucketed, unknown: Unknown) -> Iterator[Bucketed]:
    """Items with imagined results for unknown rankings, different ones for each source."""
    bucket, items = element
    yield from ((bucket, batch) for batch in batches_of(with_imagined(item, MOST, unknown) for item in items_in(items)))


def _unknown_contexts(evaluation: Evaluation, depths: Mapping[int, int | None], experiment: Experiment) -> Unknown:
    unknown = {}
    called = {*experiment.remote, *experiment.rerankers, *experiment.rewritten}
    remote_sources = {*called, *experiment.embedding_models}
    for position, count in depths.items():
        configuration = evaluation.configurations[position]
        if remote_sources & evaluation.origins(configuration.source):
            limits = [limit for limit in (configuration.top_k, count) if limit is not None]
            unknown[position] = (configuration.source, min(limits, default=_CONTEXTS))
    return unknown


class LedgerFn(beam.DoFn):
    """Base of functions that look calls up in a ledger."""

    def __init__(self, ledger: str) -> None:
        self._folder = ledger

    def setup(self) -> None:
        self._lookup = Ledger(self._folder).lookup()
        self._lookup.refresh()


class RecallFn(LedgerFn):
    """Completes the tasks that the ledger answers, without any call."""

    def __init__(self, stage: Stage, ledger: str) -> None:
        super().__init__(ledger)
        self._stage = stage

    def process(self, element: pa.RecordBatch) -> Iterator[object]:
        """Yield answers, and the tasks that have none yet."""
        begun = []
        for task in (task for group in groups_in([element]) for task in group):
            steps = self._stage.works[task.work].steps(task.item)
            (call,) = next(steps)  # to a retriever
            begun.append((task, steps, call))
        depths = {call.key or "": call.depth for _, _, call in begun}
        entries = {entry.key: entry for entry in self._lookup.read(depths)}
        for task, steps, call in begun:
            entry = entries.get(call.key or "")
            value = None if entry is None else self._value(task, steps, call, entry)
            if value is not None:
                yield CallAnswer(task.work, task.name, task.subjects, value)
                continue
            for subject in task.subjects:
                failure = Failure(self._stage.name, FailureKind.UNAVAILABLE, subject.query_id, 0, "not asked so far")
                yield beam.pvalue.TaggedOutput(_FAILED, FailedTask(task.work, subject, failure))

    def _value(self, task: Task, steps: Steps[Any], call: Call, entry: LedgerEntry) -> Any:
        """Result of a task with an answer from the ledger; None if the answer is unusable."""
        try:
            steps.send([self._stage.works[task.work].read(call, Reply(entry.answer, entry.tokens))])
        except StopIteration as end:
            return end.value
        except CallError:
            return None
        return None


class SimulateFn(LedgerFn):
    """Counts the calls that a bucket's queries need."""

    def __init__(
        self,
        work: EvaluateAnswers,
        ledger: str,
        unknown: Unknown,
        earlier: Sequence[EarlierWork],
        limited: Collection[str],
    ) -> None:
        super().__init__(ledger)
        self._work, self._unknown, self._earlier, self._limited = work, unknown, earlier, limited

    def process(self, element: Bucketed) -> Iterator[CallCounts]:
        items = items_in(element[1])
        yield counted_items(self._work, items, self._lookup, self._unknown, self._earlier, self._limited)


@dataclass
class WriteCounts(beam.PTransform):
    """Write the sum of all counts into a file for `read_counted`."""

    experiment: Experiment
    file: str

    def expand(self, every: beam.PCollection[CallCounts]) -> beam.PCollection[None]:
        work, ledger = work_of(self.experiment), self.experiment.ledger
        asks = known_of(self.experiment, work, datetime.now(UTC)) if work.services else ()
        if asks:
            texts = every | "Texts" >> beam.Map(lambda one: one.texts) | "TextsTogether" >> beam.combiners.ToList()
            count = beam.Map(_count_known, asks, ledger).with_output_types(CallCounts)
            every = (every, texts | "CountKnown" >> count) | "WithKnown" >> beam.Flatten()
        divide = beam.FlatMap(_divide, buckets_of(self.experiment))
        totals = (
            every
            | "DivideCalls" >> divide.with_output_types(tuple[int, Reference])
            | "GroupCalls" >> beam.GroupByKey()
            | "TotalCalls" >> beam.Map(totals_of)
        )
        return (
            every
            | "WithoutCalls" >> beam.Map(CallCounts.without_sizes)
            | "CountsTogether" >> beam.combiners.ToList()
            | "WriteCounts" >> beam.Map(_write_sum, beam.pvalue.AsIter(totals), self.file)
        )


def _divide(counts: CallCounts, parts: int) -> Iterator[tuple[int, Reference]]:
    return divided((counts.least, counts.most), parts)


def _count_known(texts: Sequence[tuple[int, int]], asks: tuple[AskKnown, ...], ledger: str) -> CallCounts:
    least, most = (sum(pair[end] for pair in texts) for end in (0, 1))  # 0 without texts
    lookup = Ledger(ledger).lookup()
    lookup.refresh()
    return known_counts((least, most), asks, lookup)


def _write_sum(parts: Iterable[CallCounts], totals: Iterable[tuple[CallTotals, CallTotals]], file: str) -> None:
    total = CallCounts()
    for part in parts:
        total.join(part)
    for pair in totals:
        total.add_totals(pair)
    Path(file).write_bytes(pickle.dumps(total))


def count_texts(
    pipeline: beam.Pipeline,
    experiment: Experiment,
    dataset: Dataset,
    rewritten: beam.PCollection | None,
    counts: CountOutputs,
) -> beam.PCollection[CallCounts]:
    """Count the calls that embed texts; return the counts of documents."""
    stage = embed_stage(experiment)
    documents = documents_to_embed(pipeline, experiment) | "DocumentsToEmbed" >> beam.Values()
    of_documents = documents | "CountDocuments" >> _counting(stage, experiment)
    queries = queries_to_embed(experiment, dataset, rewritten) | "QueriesToEmbed" >> beam.Values()
    count_calls(queries, stage, experiment, counts)
    counts.append(of_documents)
    return of_documents


class CountFn(LedgerFn):
    """Counts tasks' first calls, to models and to other services, and how many of them the ledger answers."""

    def __init__(self, stage: Stage, ledger: str, models: Collection[str]) -> None:
        super().__init__(ledger)
        self._stage, self._models = stage, models

    def process(self, element: pa.RecordBatch) -> Iterator[CallCounts]:
        call_groups = [
            [call for task in group for call in next(self._stage.works[task.work].steps(task.item))]
            for group in groups_in([element])
        ]
        model_calls = (call for calls in call_groups for call in calls if call.service in self._models)
        counts = counted_calls(model_calls, self._lookup, self._most_tokens)
        for calls in call_groups:  # one group: tasks of one name
            for call in {call.key: call for call in reversed(calls) if call.service not in self._models}.values():
                counts.pools[call.service] = self._stage.pools[call.service]
                is_known = call.key is not None and self._lookup.place(call.key, call.depth) is not None
                for totals in counts.totals:
                    totals.add(Step(call.service, self._stage.name), "", SizeTotal(1, int(not is_known)))
        if counts.pools:
            counts.warnings = dict.fromkeys(self._lookup.warnings())
        yield counts

    def _most_tokens(self, call: Call) -> int:
        return self._stage.services[call.service].most_tokens(call.payload).total
