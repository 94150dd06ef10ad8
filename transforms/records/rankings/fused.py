"""Rankings of every source for one bucket of queries: read, retrieved, or fused from other sources' rankings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, StringArray
from rankbeam.transforms.kernels.ranking import fusion
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.rankings import RankedRows
from rankbeam.transforms.records.errors import Failure, InputError
from rankbeam.transforms.records.metrics.evaluation import Evaluation, Source
from rankbeam.transforms.records.rankings.retrieved import RetrievedRows
from rankbeam.transforms.records.stages import FusionMethod, FusionPart, FusionPlan, Normalisation

_NO_DISTANCES = (
    "scores decrease along its rankings, so they are not distances: vector_distance_threshold would keep the worst; "
    "set lower_is_better: false, and use min_score"
)
_DISTANCES = (
    "scores increase along its rankings, so they are distances: min_score would keep the worst; "
    "set lower_is_better: true, and use vector_distance_threshold"
)


@dataclass(frozen=True)
class Answers:
    """The rankings of one source for n judged queries."""

    source: Source
    name: str
    query_ids: StringArray  # Arrow strings [n]
    retrieved: RetrievedRows  # its rows
    failed: BoolArray
    uncut: BoolArray  # bool[n], the query has no answer to which a threshold can be applied
    unranked: BoolArray  # bool[n], the query has an answer whose ranking is not known

    def failed_at(self, distance: float | None) -> BoolArray:
        """A mask of the queries without an answer under a threshold; None for no threshold."""
        return self.failed if distance is None else self.failed | self.uncut

    def nearer_than(self, distance: float | None) -> RetrievedRows:
        """The rows within a threshold: distances below it, or scores that are at least its negative; None keeps all.

        Results that a reranker has left out have no score, and are not within a threshold.
        """
        if distance is None:
            return self.retrieved
        retrieved = self.retrieved.only(~self.uncut[self.retrieved.query])
        if self.source.rerank is None and (row := retrieved.first_without_score()) is not None:
            shown = distance if self.source.lower_is_better else 0.0 - distance
            problem = f"so it cannot be compared with the threshold {shown:g}"
            raise self._no_score(retrieved, row, f"{problem}; remove the threshold, or have the service return scores")
        score = retrieved.score
        return retrieved.only(score < distance if self.source.lower_is_better else -score <= distance)

    def wrong_way(self, distance: float | None) -> str | None:
        """The reason why a threshold would keep the worst results, or None."""
        is_distance = self.source.lower_is_better
        if distance is None or self.source.path is not None or not self.retrieved.falls(1 if is_distance else -1):
            return None
        return _NO_DISTANCES if is_distance else _DISTANCES

    def votes(self, plan: FusionPlan, part: FusionPart) -> tuple[RetrievedRows, FloatArray]:
        """The best row of every document in this source's ranking, best first, and its vote in a fusion.

        The source is ranked by the rules of rankbeam's own dialect.
        """
        retrieved, ranked = self._ranked(part)
        rows = retrieved.take(ranked.row)
        if plan.method == FusionMethod.RRF:
            return rows, fusion.reciprocal_ranks(ranked.rank, plan.c, part.weight)
        if (row := rows.first_without_score()) is not None:
            raise self._no_score(rows, row, "which a weighted fusion needs; use method: rrf, which uses ranks")
        score = -rows.score if part.lower_is_better else rows.score
        return rows, part.weight * _normalise_scores(plan.normalisation, rows.query, score, len(self.query_ids))

    def _ranked(self, part: FusionPart) -> tuple[RetrievedRows, RankedRows]:
        retrieved, queries = self.nearer_than(part.distance), len(self.query_ids)
        order = np.arange(len(retrieved.query))
        if self.source.path is not None:
            order = order_by_score(retrieved.query, retrieved.score, retrieved.doc_id)
        ranked = RankedRows.of(order, retrieved.query, retrieved.doc_id, queries)
        return retrieved, ranked.upto(part.top_k).deduplicated(queries)

    def _no_score(self, rows: RetrievedRows, row: int, problem: str) -> InputError:
        doc_id, query_id = rows.doc_id[row].as_py(), self.query_ids[int(rows.query[row])].as_py()
        return InputError(f"{self.name}: document {doc_id!r} of query {query_id!r} has no score, {problem}")


def answers_of(
    queries: pa.RecordBatch,
    rows: Mapping[int, Sequence[pa.RecordBatch]],
    failures: Mapping[int, Sequence[Failure]],
    evaluation: Evaluation,
) -> tuple[Answers, ...]:
    bucket = _Bucket(queries, rows, failures, evaluation)
    return tuple(bucket.answers(number) for number in range(len(evaluation.sources)))


@dataclass(frozen=True)
class _Bucket:
    """Makes each source's answers once. A class, because a recursive inner function would keep all of them alive."""

    queries: pa.RecordBatch
    rows: Mapping[int, Sequence[pa.RecordBatch]]
    failures: Mapping[int, Sequence[Failure]]
    evaluation: Evaluation
    cache: dict[int, Answers] = field(default_factory=dict)

    def answers(self, number: int) -> Answers:
        """The answers of one source; the parts of a fusion may come after it in the evaluation."""
        if number not in self.cache:
            source, name = self.evaluation.sources[number], _name(self.evaluation, number)
            query_ids = self.queries["query_id"]
            uncut = np.zeros(len(query_ids), bool)
            if source.fusion is None:
                unranked = _unranked_mask(query_ids, self.rows.get(number, ()))
                failures = self.failures.get(number, ())
                failed = _failed_mask(query_ids, [failure for failure in failures if not failure.only_thresholds])
                uncut = _failed_mask(query_ids, [failure for failure in failures if failure.only_thresholds])
                retrieved = RetrievedRows.of(self.queries, self.rows.get(number, ()))
                if source.rerank is not None:
                    base = self.answers(source.rerank.source)
                    failed, unranked = failed | base.failed_at(source.rerank.distance), unranked | base.unranked
            else:
                parts = [self.answers(part.source) for part in source.fusion.parts]
                distances = [part.distance for part in source.fusion.parts]
                failed = np.logical_or.reduce(
                    [part.failed_at(distance) for part, distance in zip(parts, distances, strict=True)]
                )
                unranked = np.logical_or.reduce([part.unranked for part in parts])
                retrieved = fuse(source.fusion, parts, failed | unranked, name)
            self.cache[number] = Answers(source, name, query_ids, retrieved, failed, uncut, unranked)
        return self.cache[number]


def fuse(plan: FusionPlan, parts: Sequence[Answers], failed: BoolArray, name: str) -> RetrievedRows:
    """Combine several rankings into one, for each of n queries.

    Args:
        plan: the rule.
        parts: the answers of its sources, in the plan's order.
        failed: bool[n], queries for which a part has no ranking; they get no ranking from the other parts.
        name: name of the fusion in messages.

    Returns:
        The documents of all parts: by fused score, ties by document id descending; each with the text of the first
        part that has one.

    Raises:
        InputError: the sum of some scores is not finite.
    """
    voted = []
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is not finite is refused below
        for part, answers in zip(plan.parts, parts, strict=True):
            rows, vote = answers.votes(plan, part)
            answered = ~failed[rows.query]
            voted.append((rows.only(answered), vote[answered]))
        doc_id = pa.concat_arrays([rows.doc_id for rows, _ in voted])
        fused = fusion.fuse(
            query=np.concatenate([rows.query for rows, _ in voted]),
            doc_id=doc_id,
            part=np.repeat(np.arange(len(voted)), [len(vote) for _, vote in voted]),
            vote=np.concatenate([vote for _, vote in voted]),
            absent=np.stack([fusion.votes_for_absent(rows.query, vote, len(failed)) for rows, vote in voted]),
            multiplied=plan.method == FusionMethod.MNZ,
        )
    doc_id = doc_id.take(pa.array(fused.rows.max(axis=0)))
    if not (finite := np.isfinite(fused.score)).all():
        worst = int(np.argmin(finite))
        query_id = parts[0].query_ids[int(fused.query[worst])].as_py()
        problem = f"the scores of document {doc_id[worst].as_py()!r} for query {query_id!r} are too large to be summed"
        raise InputError(f"{name}: {problem}; use method: rrf, which uses ranks")
    return RetrievedRows(fused.query, doc_id, fused.score, _texts([rows for rows, _ in voted], fused.rows), unjudged=0)


def _texts(parts: Sequence[RetrievedRows], row: IntArray) -> StringArray | None:
    """The text of each document in the first part that has one; `row` is int64[p, u], -1 if a part lacks it."""
    if all(rows.text is None for rows in parts):
        return None
    # Together the texts may have more bytes than the 32-bit offsets of a plain string array can address.
    texts = [pa.nulls(len(rows.query), pa.large_string()) if rows.text is None else rows.text for rows in parts]
    text = pa.concat_arrays([part_texts.cast(pa.large_string()) for part_texts in texts])
    has_text = np.append(text.is_valid().to_numpy(zero_copy_only=False), False)
    chosen = np.full(row.shape[1], -1)
    for part_row in row[::-1]:
        chosen = np.where(has_text[part_row], part_row, chosen)
    return text.take(pa.array(chosen, mask=chosen < 0)).cast(pa.string())


def _normalise_scores(how: Normalisation, query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    kernels = {
        Normalisation.MIN_MAX: fusion.min_max,
        Normalisation.Z_SCORE: fusion.z_scores,
        Normalisation.SUM: fusion.sum_to_one,
    }
    return kernels[how](query, score, queries) if how in kernels else score


def _failed_mask(query_ids: StringArray, failures: Sequence[Failure]) -> BoolArray:
    return _named_mask(query_ids, pa.array([failure.query_id for failure in failures], pa.string()))


def _unranked_mask(query_ids: StringArray, rows: Sequence[pa.RecordBatch]) -> BoolArray:
    names = [batch["query_id"].filter(batch["documents"].is_null()) for batch in rows]
    return _named_mask(query_ids, pa.concat_arrays([pa.array([], pa.string()), *names]))


def _named_mask(query_ids: StringArray, names: StringArray) -> BoolArray:
    is_named: BoolArray = pc.is_in(query_ids, value_set=names).to_numpy(zero_copy_only=False)
    return is_named


def _name(evaluation: Evaluation, number: int) -> str:
    """A source's name for users: the path of its run, the name of its configuration, or the fusion it is part of."""
    path, primary = evaluation.sources[number].path, evaluation.primary(number)
    if path is not None:
        return path
    if primary is not None:
        return f"configuration {evaluation.configurations[primary].name!r}"
    for whole, source in enumerate(evaluation.sources):
        if source.fusion is not None and number in [part.source for part in source.fusion.parts]:
            return f"a part of {_name(evaluation, whole)}"
    return f"source {number}"
