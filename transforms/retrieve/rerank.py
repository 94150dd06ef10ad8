"""Rerank: score the texts of rankings by calls or in process, and order the rankings by their scores.

rankings ─► first results with their texts ─► calls by content ─► scores ─► reranked rankings
                       ├───────────► models in this process ───────┤
                       └──────────────────────────────────────────────┘
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.models.scoring import CrossEncode, Rate
from rankbeam.transforms.clients.retrievers.rerankers import Rerank
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Subject, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import Failure, FailureKind, pluralize
from rankbeam.transforms.records.judging.items import Item, System, items_in
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.stages import RERANK, Scores, Texts, by_score
from rankbeam.transforms.retrieve.local import FAILURES, BucketFailures, batch_of, sum_pairs

if TYPE_CHECKING:
    from rankbeam.transforms.clients.models.onnx_session import ScoredPair

_ITEMS, _SCORES, _FAILED, _COMPUTED = "items", "scores", "failed", "computed"
_NO_TEXT, _NO_SCORE = "have no text", "got no score"

ScoresOfQuery = tuple[int, tuple[str, int, Scores]]  # a bucket; and a query, a source and the scores of its texts

Cut = tuple[str, tuple[int, int]]
"""A model in this process, its number of truncated pairs, and the number of all its pairs."""

Left = tuple[tuple[int, str], tuple[int, int]]
"""A source and a reason; the number of documents that were not scored for this reason, and of their queries."""


CalledReranking = Rate | Rerank  # work that scores a query's texts by calls

Reranking = CalledReranking | CrossEncode  # work that scores a query's texts


def as_configurations(evaluation: Evaluation) -> Evaluation:
    """One configuration for each reranked source, in order; its contexts are the results to rerank."""
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
    """The tasks that score the texts of results to rerank, for each query of a bucket.

    If scores do not depend on other texts, rerankers of one ranking share their calls even if they differ in depth.
    """
    bucket, items = element
    tasks: defaultdict[str, list[Task]] = defaultdict(list)
    for item in items_in(items):
        for sources, passages in _requests(item, works, evaluation):
            work = works[sources[0]]
            if isinstance(work, CrossEncode):
                continue
            name = f"{RERANK} {sources[0]}"
            for texts in calls_of(work, item.text, passages):
                subject = Subject(RERANK, item.query_id, bucket, sources)
                tasks[name].append(Task(work.call(texts).key or "", name, texts, (subject,)))
    for name, named_tasks in tasks.items():
        for batch in batches_of(named_tasks):
            yield name, batch


def calls_of(work: Reranking, query: str, passages: Sequence[Passage]) -> Iterator[Texts]:
    """The texts of each call: each text occurs once, in the retriever's order."""
    texts = tuple(dict.fromkeys(passage.text for passage in passages if (passage.text or "").strip()))
    most = work.most_texts or max(1, len(texts))
    for first in range(0, len(texts), most):
        yield query, tuple(text or "" for text in texts[first : first + most])


def _requests(
    item: Item, works: Mapping[int, Reranking], evaluation: Evaluation
) -> Iterator[tuple[tuple[int, ...], list[Passage]]]:
    """Results that are scored together, and the sources that need their scores."""
    together: defaultdict[object, list[tuple[int, System]]] = defaultdict(list)
    for source, system in _systems_by_source(item, works):
        plan, work = evaluation.sources[source].rerank, works[source]
        assert plan is not None  # noqa: S101  sources with a work have a plan
        first = next(other for other in works if works[other] == work)
        key = (plan.source, plan.distance, first) if work.is_pointwise else source
        if not system.failed:
            together[key].append((source, system))
    for entries in together.values():
        longest = max((system for _, system in entries), key=lambda system: len(system.passages))
        yield tuple(source for source, _ in entries), item.contexts(longest)


def _systems_by_source(item: Item, works: Mapping[int, Reranking]) -> Iterator[tuple[int, System]]:
    sources = sorted(works)
    for system in item.systems:
        yield sources[system.configuration], system


@dataclass
class ScoreInProcess(beam.PTransform):
    """Score texts with models in this process; yield `ScoresOfQuery`, and warnings."""

    evaluation: Evaluation
    works: Mapping[int, Reranking]

    def expand(self, items: beam.PCollection[Bucketed]) -> Any:  # Beam warns of tuples
        score = beam.FlatMap(score_in_process, self.works, self.evaluation).with_output_types(ScoresOfQuery, cut=Cut)
        outputs = items | "Score" >> score.with_outputs("cut", main="scores")
        encoders = {work.service: work for work in self.works.values() if isinstance(work, CrossEncode)}
        warnings = (
            outputs["cut"]
            | "SumCut" >> beam.CombinePerKey(sum_pairs)
            | "SayCut" >> beam.FlatMap(_warning_of_cut, encoders)
        )
        return outputs.scores, warnings


def score_in_process(element: Bucketed, works: Mapping[int, Reranking], evaluation: Evaluation) -> Iterator[object]:
    """Score results with models in this process; each model sees each text of a query once."""
    bucket, items = element
    for item in items_in(items):
        known: defaultdict[str, dict[str, ScoredPair]] = defaultdict(dict)
        for sources, passages in _requests(item, works, evaluation):
            work = works[sources[0]]
            if not isinstance(work, CrossEncode):
                continue
            scored = known[work.service]
            for query, texts in calls_of(work, item.text, passages):
                scored |= work.scored(query, [text for text in texts if text_hash(text) not in scored])
            scores = tuple((name, pair.score) for name, pair in scored.items())
            yield from ((bucket, (item.query_id, source, scores)) for source in sources)
        for service, scored in known.items():
            count(Counter.PAIRS_SCORED, len(scored))
            cut = sum(pair.is_cut for pair in scored.values())
            yield beam.pvalue.TaggedOutput("cut", (service, (cut, len(scored))))


def not_computed(element: Bucketed, works: Mapping[int, Reranking]) -> Iterator[FailedTask]:
    """The queries, for a plan, whose texts models in this process would score."""
    bucket, items = element
    for item in items_in(items):
        for source, _ in _systems_by_source(item, works):
            if isinstance(works[source], CrossEncode):
                failure = Failure(RERANK, FailureKind.UNAVAILABLE, item.query_id, 0, "not computed so far")
                yield FailedTask(f"{RERANK} {source}", Subject(RERANK, item.query_id, bucket, (source,)), failure)


def _warning_of_cut(element: Cut, encoders: Mapping[str, CrossEncode]) -> Iterator[str]:
    service, (cut, pairs) = element
    if cut:
        yield encoders[service].cut_warning(cut, pairs)


@dataclass
class CollectReranked(beam.PTransform):
    """Order the results in "items" by score; the other parts are "scores", "failed" and "computed".

    The outputs are rankings, failures and warnings, as for `RetrieveRankings`.
    """

    evaluation: Evaluation
    works: Mapping[int, Reranking]

    def expand(self, parts: dict[str, beam.PCollection]) -> Any:  # Beam warns of tuples
        by_bucket = dict(parts)
        if _SCORES in parts:
            by_bucket[_SCORES] = parts[_SCORES] | "ScoresByBucket" >> beam.FlatMap(scores_by_bucket)
        if _FAILED in parts:
            by_bucket[_FAILED] = parts[_FAILED] | "FailedByBucket" >> beam.FlatMap(failed_by_bucket)
        outputs = (
            by_bucket
            | "GroupScores" >> beam.CoGroupByKey()
            | "Rank"
            >> beam.FlatMap(rank_bucket, self.works)
            .with_output_types(SourceRows, failures=BucketFailures, left=Left)
            .with_outputs(FAILURES, "left", main="rankings")
        )
        warnings = (
            outputs["left"]
            | "SumLeft" >> beam.CombinePerKey(sum_pairs)
            | "SayLeft" >> beam.Map(warning_of, self.evaluation)
        )
        return outputs.rankings, outputs[FAILURES], warnings


def scores_by_bucket(answer: CallAnswer) -> Iterator[ScoresOfQuery]:
    for subject in answer.subjects:
        for source in subject.positions:
            yield subject.bucket, (subject.query_id, source, answer.value)


def failed_by_bucket(failed: FailedTask) -> Iterator[tuple[int, tuple[str, int, Failure]]]:
    subject = failed.subject
    for source in subject.positions:
        yield subject.bucket, (subject.query_id, source, failed.failure)


def rank_bucket(element: tuple[int, Mapping[str, Iterable[Any]]], works: Mapping[int, Reranking]) -> Iterator[object]:
    """Make the reranked rankings of a bucket."""
    bucket, parts = element
    scores: defaultdict[tuple[str, int], dict[str, float | None]] = defaultdict(dict)
    for query_id, source, text_scores in chain(parts.get(_SCORES, ()), parts.get(_COMPUTED, ())):
        scores[query_id, source] |= dict(text_scores)
    failures = {(query_id, source): failure for query_id, source, failure in parts.get(_FAILED, ())}
    for items in parts[_ITEMS]:
        rankings: defaultdict[int, list[tuple[str, Ranking]]] = defaultdict(list)
        for item in items_in(items):
            for source, system in _systems_by_source(item, works):
                if system.failed:  # the retriever's ranking has this failure already
                    continue
                key, passages = (item.query_id, source), item.contexts(system)
                failure = failures.get(key) or _without_any_text(item.query_id, passages)
                if failure is not None:
                    count(Counter.FAILURES, 1)
                    yield beam.pvalue.TaggedOutput(FAILURES, (bucket, (source, failure)))
                    continue
                ranking, unscored = rank_passages(passages, scores[key])
                rankings[source].append((item.query_id, ranking))
                for reason, number in unscored.items():
                    yield beam.pvalue.TaggedOutput("left", ((source, reason), (number, 1)))
        for source, ranked in rankings.items():
            yield bucket, (source, batch_of(ranked, None))


def rank_passages(passages: Sequence[Passage], known: Mapping[str, float | None]) -> tuple[Ranking, Mapping[str, int]]:
    """The results by score, and the number of results without a score, by reason; these come last."""
    scores: list[float | None] = []
    unscored: defaultdict[str, int] = defaultdict(int)
    for passage in passages:
        has_text = bool((passage.text or "").strip())
        score = known.get(text_hash(passage.text or "")) if has_text else None
        if score is None:
            unscored[_NO_SCORE if has_text else _NO_TEXT] += 1
        scores.append(score)
    order = by_score(scores)
    values = [scores[place] for place in order]
    ranking = Ranking(
        tuple(passages[place].doc_id or "" for place in order),
        tuple(math.nan if value is None else value for value in values),
        tuple(passages[place].text or "" for place in order),
    )
    return ranking, unscored


def _without_any_text(query_id: str, passages: Sequence[Passage]) -> Failure | None:
    if not passages or any((passage.text or "").strip() for passage in passages):
        return None
    problem = f"not reranked: neither {passages[0].doc_id!r} nor any other result has a text"
    return Failure(RERANK, FailureKind.INVALID, query_id, 0, f"{problem}; give the documents as dataset.corpus")


def warning_of(left: Left, evaluation: Evaluation) -> str:
    (source, reason), (documents, queries) = left
    name = evaluation.configurations[evaluation.owner(source)].name
    results = f"{pluralize(documents, 'result')} of {pluralize(queries, 'query', 'queries')}"
    return f"{name}: {results} {reason} for the reranker; they follow the others, in the retriever's order"
