"""Rerank: score the texts of rankings by calls, and order the rankings by their scores.

rankings ─► first results with their texts ─► calls by content ─► scores ─► reranked rankings
                       └──────────────────────────────────────────────┘
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.models.scoring import Rate
from rankbeam.transforms.clients.retrievers.rerankers.rerank import Rerank
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records.calls.outcomes import CallAnswer, FailedTask
from rankbeam.transforms.records.calls.steps import Subject, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.failures import Failure, FailureKind
from rankbeam.transforms.records.judging.items import Item, System, items_in
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reranking import STAGE, Scores, Texts, by_score
from rankbeam.transforms.retrieve.local import FAILURES, BucketFailures, batch_of

_ITEMS, _SCORES, _FAILED = "items", "scores", "failed"
_NO_TEXT, _NO_SCORE = "have no text", "got no score"

ScoresOfQuery = tuple[int, tuple[str, int, Scores]]
"""A bucket, and a query with a source and the scores of texts."""

Left = tuple[tuple[int, str], tuple[int, int]]
"""A source and a reason, with the number of documents that were not scored for it, and of their queries."""


Reranking = Rate | Rerank
"""Work that scores texts for a query."""


class Reranked(NamedTuple):
    """The outputs of `CollectReranked`; they are those of the other branches that produce rankings."""

    rankings: beam.PCollection[SourceRows]
    failures: beam.PCollection[BucketFailures]
    warnings: beam.PCollection[str]


def as_configurations(evaluation: Evaluation) -> Evaluation:
    """The evaluation with one configuration for each reranked source, in their order: the one that is reranked.

    Gathering contexts of these configurations yields what is reranked.
    """
    configurations = [
        Configuration(
            config_id="",
            name=evaluation.configurations[evaluation.owner(number)].name,
            source=source.rerank.source,
            retriever="",
            parameters="{}",
            top_k=source.rerank.depth,
            derived_from=None,
            distance=source.rerank.distance,
            last=evaluation.last_of(number),
        )
        for number, source in enumerate(evaluation.sources)
        if source.rerank is not None
    ]
    return replace(evaluation, configurations=tuple(configurations))


def tasks_of(element: Bucketed, works: Mapping[int, Reranking], evaluation: Evaluation) -> Iterator[TaskBatch]:
    """The tasks that score the texts of what is reranked, for each query of a bucket.

    Where scores do not depend on other texts, rerankers of one ranking that differ in depth share their calls.
    """
    bucket, items = element
    tasks: defaultdict[str, list[Task]] = defaultdict(list)
    for item in items_in(items):
        for sources, passages in _requests(item, works, evaluation):
            work = works[sources[0]]
            name = f"{STAGE} {sources[0]}"
            for texts in calls_of(work, item.text, passages):
                subject = Subject(STAGE, item.query_id, bucket, sources)
                tasks[name].append(Task(work.call(texts).key or "", name, texts, (subject,)))
    for name, some in tasks.items():
        for batch in batches_of(some):
            yield name, batch


def calls_of(work: Reranking, query: str, passages: Sequence[Passage]) -> Iterator[Texts]:
    """The texts of each call: every text once, in the retriever's order."""
    texts = tuple(dict.fromkeys(passage.text for passage in passages if (passage.text or "").strip()))
    most = work.most_texts or max(1, len(texts))
    for first in range(0, len(texts), most):
        yield query, tuple(text or "" for text in texts[first : first + most])


def _requests(
    item: Item, works: Mapping[int, Reranking], evaluation: Evaluation
) -> Iterator[tuple[tuple[int, ...], list[Passage]]]:
    """The results that are scored together, and the sources that they are scored for."""
    together: defaultdict[object, list[tuple[int, System]]] = defaultdict(list)
    for source, system in _reranked(item, works):
        plan, work = evaluation.sources[source].rerank, works[source]
        assert plan is not None  # noqa: S101  it has a work
        first = next(other for other in works if works[other] == work)
        key = (plan.source, plan.distance, first) if work.is_pointwise else source
        if not system.failed:
            together[key].append((source, system))
    for entries in together.values():
        longest = max((system for _, system in entries), key=lambda system: len(system.passages))
        yield tuple(source for source, _ in entries), item.contexts(longest)


def _reranked(item: Item, works: Mapping[int, Reranking]) -> Iterator[tuple[int, System]]:
    """The sources that are reranked, each with its results before."""
    sources = sorted(works)
    for system in item.systems:
        yield sources[system.configuration], system


@dataclass
class CollectReranked(beam.PTransform):
    """Order what is reranked by the scores."""

    evaluation: Evaluation
    works: Mapping[int, Reranking]

    def expand(self, parts: dict[str, beam.PCollection]) -> Any:  # a Reranked; Beam warns of named results
        """Add the steps; the parts are "items", "scores" of `CallAnswer`, and "failed" of `FailedTask`."""
        outputs = (
            {
                _ITEMS: parts[_ITEMS],
                _SCORES: parts[_SCORES] | "ScoresByBucket" >> beam.FlatMap(scores_by_bucket),
                _FAILED: parts[_FAILED] | "FailedByBucket" >> beam.FlatMap(failed_by_bucket),
            }
            | "GroupScores" >> beam.CoGroupByKey()
            | "Rank"
            >> beam.ParDo(RankFn(self.works))
            .with_output_types(SourceRows, failures=BucketFailures, left=Left)
            .with_outputs(FAILURES, "left", main="rankings")
        )
        warnings = (
            outputs["left"]
            | "SumLeft" >> beam.CombinePerKey(_summed)
            | "SayLeft" >> beam.Map(warning_of, self.evaluation)
        )
        return Reranked(outputs.rankings, outputs[FAILURES], warnings)


def scores_by_bucket(answer: CallAnswer) -> Iterator[ScoresOfQuery]:
    """The scores of a call, for every query and source that needs them."""
    for subject in answer.subjects:
        for source in subject.positions:
            yield subject.bucket, (subject.query_id, source, answer.value)


def failed_by_bucket(failed: FailedTask) -> Iterator[tuple[int, tuple[str, int, Failure]]]:
    """The failure of a call, for every source that needs it."""
    subject = failed.subject
    for source in subject.positions:
        yield subject.bucket, (subject.query_id, source, failed.failure)


class RankFn(beam.DoFn):
    """Makes the reranked rankings of a bucket."""

    def __init__(self, works: Mapping[int, Reranking]) -> None:
        self._works = works

    def process(self, element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[object]:
        """Yield a batch for each source, failures, and the numbers of documents without a score."""
        bucket, parts = element
        scores: defaultdict[tuple[str, int], dict[str, float | None]] = defaultdict(dict)
        for query_id, source, some in parts[_SCORES]:
            scores[query_id, source] |= dict(some)
        failures = {(query_id, source): failure for query_id, source, failure in parts[_FAILED]}
        for items in parts[_ITEMS]:
            rankings: defaultdict[int, list[tuple[str, Ranking]]] = defaultdict(list)
            for item in items_in(items):
                for source, system in _reranked(item, self._works):
                    if system.failed:  # known from the ranking before
                        continue
                    key, passages = (item.query_id, source), item.contexts(system)
                    failure = failures.get(key) or _without_any_text(item.query_id, passages)
                    if failure is not None:
                        count(Counter.FAILURES, 1)
                        yield beam.pvalue.TaggedOutput(FAILURES, (bucket, (source, failure)))
                        continue
                    ranking, left = reranked(passages, scores[key])
                    rankings[source].append((item.query_id, ranking))
                    for reason, number in left.items():
                        yield beam.pvalue.TaggedOutput("left", ((source, reason), (number, 1)))
            for source, some in rankings.items():
                yield bucket, (source, batch_of(some, None))


def reranked(passages: Sequence[Passage], known: Mapping[str, float | None]) -> tuple[Ranking, Mapping[str, int]]:
    """The results by score, and by reason the number of those without one, which come last."""
    scores: list[float | None] = []
    left: defaultdict[str, int] = defaultdict(int)
    for passage in passages:
        has_text = bool((passage.text or "").strip())
        score = known.get(text_hash(passage.text or "")) if has_text else None
        if score is None:
            left[_NO_SCORE if has_text else _NO_TEXT] += 1
        scores.append(score)
    order = by_score(scores)
    values = [scores[place] for place in order]
    ranking = Ranking(
        tuple(passages[place].doc_id or "" for place in order),
        tuple(math.nan if value is None else value for value in values),
        tuple(passages[place].text or "" for place in order),
    )
    return ranking, left


def _without_any_text(query_id: str, passages: Sequence[Passage]) -> Failure | None:
    """The failure of a query none of whose documents has a text."""
    if not passages or any((passage.text or "").strip() for passage in passages):
        return None
    problem = f"not reranked: there is no text of {passages[0].doc_id!r}, nor of any other result"
    return Failure(STAGE, FailureKind.INVALID, query_id, 0, f"{problem}; give the documents as dataset.corpus")


def _summed(numbers: Iterable[tuple[int, int]]) -> tuple[int, int]:
    documents, queries = 0, 0
    for more_documents, more_queries in numbers:
        documents, queries = documents + more_documents, queries + more_queries
    return documents, queries


def warning_of(left: Left, evaluation: Evaluation) -> str:
    """The warning about results that a reranker could not score."""
    (source, reason), (documents, queries) = left
    name = evaluation.configurations[evaluation.owner(source)].name
    results = f"{documents:,} results of {queries:,} queries"
    return f"{name}: {results} {reason} for the reranker; they follow the others, in the retriever's order"
