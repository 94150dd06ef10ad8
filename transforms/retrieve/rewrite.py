"""Rewrite queries: retrievers search for the rewritten texts instead.

queries ─► calls by content ─► texts ─► queries with these texts, for each source that needs them
   └────────────────────────────────────────┘
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.models.rewriting import Original, Rewrite
from rankbeam.transforms.clients.storage.batches import JUDGED, Bucketed, SourceRows
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Subject, Task
from rankbeam.transforms.records.columns import attributes_in
from rankbeam.transforms.records.conversations import history_of, with_history
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.race import first_of
from rankbeam.transforms.records.stages import REWRITE, RewriteKind, RewrittenQuery
from rankbeam.transforms.retrieve.local import BucketFailures

TEXTS, FAILED = "texts", "failed"
_EMPTY = "empty"

Works = Mapping[str, tuple[Rewrite, tuple[int, ...]]]
"""The works of the stage by name, each with the sources that use its texts."""


def works_of(
    evaluation: Evaluation, models: Mapping[str, tuple[str, Any]]
) -> dict[str, tuple[Rewrite, tuple[int, ...]]]:
    """The works of an evaluation; `models` holds the type and parameters of each service."""
    rewritten = ((source.rewrite, number) for number, source in enumerate(evaluation.sources))
    sources = grouped((rewrite.rewriting, number) for rewrite, number in rewritten if rewrite is not None)
    return {
        f"{REWRITE} {place}": (Rewrite(rewriting, *models[rewriting.service]), tuple(numbers))
        for place, (rewriting, numbers) in enumerate(sources.items())
    }


def tasks_of(element: Bucketed, works: Works, evaluation: Evaluation) -> Iterator[TaskBatch]:
    """The tasks that rewrite a bucket's queries; a query without a history is standalone already."""
    bucket, judged = element
    for name, (work, sources) in works.items():
        counted = _counting_sources(sources, evaluation)
        here = first_of(judged, evaluation.last_of(*sources))
        tasks = [
            Task(work.call(item).key or "", name, item, (Subject(REWRITE, query_id, bucket, counted),))
            for query_id, item in zip(here["query_id"].to_pylist(), _originals(here, work), strict=True)
            if is_rewritten(work, item)
        ]
        for batch in batches_of(tasks):
            yield name, batch


def _counting_sources(sources: Sequence[int], evaluation: Evaluation) -> tuple[int, ...]:
    """The sources for which a call counts: enough of them to count it for every configuration that needs the call."""
    counted, known = list[int](), set[int]()
    for source in sources:
        if not known.issuperset(users := evaluation.users(source)):
            counted.append(source)
            known.update(users)
    return tuple(counted)


def is_rewritten(work: Rewrite, item: Original) -> bool:
    text, attributes = item
    return bool(text.strip()) and (work.rewriting.kind is not RewriteKind.STANDALONE or bool(history_of(attributes)))


def _originals(queries: pa.RecordBatch, work: Rewrite) -> Iterator[Original]:
    for text, pairs in zip(queries["text"].to_pylist(), queries["attributes"].to_pylist(), strict=True):
        known = attributes_in(pairs)
        yield text or "", {name: known[name] for name in sorted(work.attributes) if name in known}


def texts_by_bucket(answer: CallAnswer, works: Works) -> Iterator[tuple[int, tuple[str, tuple[int, ...], Any]]]:
    for subject in answer.subjects:
        yield subject.bucket, (subject.query_id, works[answer.work][1], answer.value)


def rewrite_bucket(element: tuple[int, Mapping[str, Iterable[Any]]], evaluation: Evaluation) -> Iterator[object]:
    """Make the rewritten queries of a bucket, for each source that uses them."""
    bucket, parts = element
    plans = {number: source.rewrite for number, source in enumerate(evaluation.sources)}
    rewritten = {number: rewrite for number, rewrite in plans.items() if rewrite is not None}
    texts: dict[tuple[str, int], tuple[str, ...]] = {}
    for query_id, sources, written in parts[TEXTS]:
        texts |= dict.fromkeys(((query_id, source) for source in sources), written)
    failed = {(query_id, source) for query_id, source in parts[FAILED]}
    for judged in parts[JUDGED]:
        for source, rewrite in rewritten.items():
            ids, new_texts = judged["query_id"].to_pylist(), list[str | None]()
            for query_id, text in zip(ids, judged["text"].to_pylist(), strict=True):
                new = asked_text(rewrite, text or "", texts.get((query_id, source)))
                new_texts.append(None if (query_id, source) in failed else new)
            column = pa.array(new_texts, pa.string())
            batch = judged.set_column(judged.schema.get_field_index("text"), judged.schema.field("text"), column)
            yield bucket, (source, batch.filter(column.is_valid()))
            written_for = [texts[query_id, source] for query_id in ids if (query_id, source) in texts]
            if empty := sum(not _text_of(rewrite, written) for written in written_for):
                yield beam.pvalue.TaggedOutput(_EMPTY, (evaluation.owner(source), empty))


def asked_text(rewrite: RewrittenQuery, query: str, written: tuple[str, ...] | None) -> str | None:
    """The text to search for instead of a query; None for a further query that is missing or repeats another."""
    text = _text_of(rewrite, written or ())
    if rewrite.rewriting.kind is RewriteKind.MULTI_QUERY:
        earlier = [query, *(written or ())[: rewrite.number]]
        return text if text and _plain(text) not in map(_plain, earlier) else None
    if not text:
        return query
    return f"{query}\n{text}" if rewrite.appended else text


def _text_of(rewrite: RewrittenQuery, written: tuple[str, ...]) -> str:
    return written[rewrite.number] if rewrite.number < len(written) else ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def with_histories(element: Bucketed, sources: Sequence[int]) -> Iterator[tuple[int, tuple[int, pa.RecordBatch]]]:
    """A bucket's queries with the messages before them, for each source that searches for both."""
    bucket, judged = element
    attributes = map(attributes_in, judged["attributes"].to_pylist())
    texts = map(with_history, (text or "" for text in judged["text"].to_pylist()), attributes)
    place = judged.schema.get_field_index("text")
    batch = judged.set_column(place, judged.schema.field(place), pa.array(texts, pa.string()))
    yield from ((bucket, (source, batch)) for source in sources)


@dataclass
class AskRewritten(beam.PTransform):
    """Make the rewritten queries per bucket and source; and warnings."""

    evaluation: Evaluation
    works: Works

    def expand(self, parts: dict[str, beam.PCollection]) -> Any:  # Beam warns about tuples
        outputs = (
            {
                JUDGED: parts[JUDGED],
                TEXTS: parts[TEXTS] | "TextsByBucket" >> beam.FlatMap(texts_by_bucket, self.works),
                FAILED: parts[FAILED] | "FailedByBucket" >> beam.FlatMap(failed_by_bucket, self.works),
            }
            | "GroupTexts" >> beam.CoGroupByKey()
            | "Ask"
            >> beam.FlatMap(rewrite_bucket, self.evaluation)
            .with_output_types(SourceRows, empty=tuple[int, int])
            .with_outputs(_EMPTY, main="queries")
        )
        summed = outputs[_EMPTY] | "SumEmpty" >> beam.CombinePerKey(sum)
        return outputs.queries, summed | "SayEmpty" >> beam.Map(warning_of, self.evaluation)


def failed_by_bucket(failed: FailedTask, works: Works) -> Iterator[tuple[int, tuple[str, int]]]:
    for bucket, (source, failure) in failures_of(failed, works):
        yield bucket, (failure.query_id, source)


def failures_of(failed: FailedTask, works: Works) -> Iterator[BucketFailures]:
    for source in works[failed.work][1]:
        yield failed.subject.bucket, (source, failed.failure)


def warning_of(empty: tuple[int, int], evaluation: Evaluation) -> str:
    owner, number = empty
    texts = pluralize(number, "rewritten text is", "rewritten texts are")
    return f"{evaluation.configurations[owner].name}: {texts} empty; the query itself was used instead"
