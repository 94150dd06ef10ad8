"""What every source says of the queries of one bucket: read, asked, or made of what others say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, StringArray
from rankbeam.transforms.kernels.ranking import fusion
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.rankings import Ranked
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.evaluation import Evaluation, Source
from rankbeam.transforms.records.failures import Failure
from rankbeam.transforms.records.fusion import FusionMethod, FusionPart, FusionPlan, Normalisation
from rankbeam.transforms.records.rankings.retrieved import Retrieved


@dataclass(frozen=True)
class Answers:
    """What one source says of n judged queries.

    Attributes:
        source: the source.
        name: what it is called in messages.
        query_ids: Arrow strings [n].
        retrieved: its rows.
        failed: bool[n], the query has no answer, because a call failed.
        uncut: bool[n], it has none that a distance threshold could be applied to.
    """

    source: Source
    name: str
    query_ids: StringArray
    retrieved: Retrieved
    failed: BoolArray
    uncut: BoolArray

    def failed_at(self, distance: float | None) -> BoolArray:
        """Which queries have no answer that is cut there; None is no threshold."""
        return self.failed if distance is None else self.failed | self.uncut

    def nearer_than(self, distance: float | None) -> Retrieved:
        """The rows whose score is a smaller distance; None keeps all.

        Raises:
            InputError: a row has no score, so that nobody can tell.
        """
        if distance is None:
            return self.retrieved
        retrieved = self.retrieved.only(~self.uncut[self.retrieved.query])
        if (row := retrieved.first_without_score()) is not None:
            problem = f"so whether it is nearer than {distance:g} cannot be told"
            raise self._no_score(retrieved, row, f"{problem}; take the threshold out, or let the service give scores")
        return retrieved.nearer_than(distance)

    def votes(self, plan: FusionPlan, part: FusionPart) -> tuple[Retrieved, FloatArray]:
        """The best row of every document in this source's ranking, best first, and what it counts in a fusion.

        The ranking is that of a configuration in rankbeam's own dialect.

        Raises:
            InputError: scores are needed, and a row has none.
        """
        retrieved, ranked = self._ranked(part)
        rows = retrieved.take(ranked.row)
        if plan.method == FusionMethod.RRF:
            return rows, fusion.reciprocal_ranks(ranked.rank, plan.c, part.weight)
        if (row := rows.first_without_score()) is not None:
            raise self._no_score(
                rows, row, "so it has no part in a weighted fusion; use method: rrf, which goes by ranks"
            )
        score = -rows.score if part.lower_is_better else rows.score
        return rows, part.weight * _normalised(plan.normalisation, rows.query, score, len(self.query_ids))

    def _ranked(self, part: FusionPart) -> tuple[Retrieved, Ranked]:
        retrieved, queries = self.nearer_than(part.distance), len(self.query_ids)
        order = np.arange(len(retrieved.query))
        if self.source.path is not None:
            order = order_by_score(retrieved.query, retrieved.score, retrieved.doc_id)
        ranked = Ranked.of(order, retrieved.query, retrieved.doc_id, queries)
        return retrieved, ranked.upto(part.top_k).collapsed(queries)

    def _no_score(self, rows: Retrieved, row: int, problem: str) -> InputError:
        doc_id, query_id = rows.doc_id[row].as_py(), self.query_ids[int(rows.query[row])].as_py()
        return InputError(f"{self.name}: document {doc_id!r} of query {query_id!r} has no score, {problem}")


def answers_of(
    queries: pa.RecordBatch,
    rows: Mapping[int, Sequence[pa.RecordBatch]],
    failures: Mapping[int, Sequence[Failure]],
    evaluation: Evaluation,
) -> tuple[Answers, ...]:
    """What each source of an evaluation says of some queries.

    Args:
        queries: the judged ones, as `columns.JUDGED_QUERIES`.
        rows: for each source that is read or asked, batches of `columns.RANKINGS` or `columns.RETRIEVED`.
        failures: for each source that is asked, the queries without an answer.
        evaluation: the sources.

    Raises:
        InputError: a fusion needs scores that a part does not have.
    """
    bucket = _Bucket(queries, rows, failures, evaluation)
    return tuple(bucket.answers(number) for number in range(len(evaluation.sources)))


@dataclass(frozen=True)
class _Bucket:
    """Finds the answers of each source once. A function in a function, calling itself, would keep them all alive."""

    queries: pa.RecordBatch
    rows: Mapping[int, Sequence[pa.RecordBatch]]
    failures: Mapping[int, Sequence[Failure]]
    evaluation: Evaluation
    found: dict[int, Answers] = field(default_factory=dict)

    def answers(self, number: int) -> Answers:
        """Of one source; the parts of a fusion may come after it."""
        if number not in self.found:
            source, name = self.evaluation.sources[number], _name(self.evaluation, number)
            query_ids = self.queries["query_id"]
            uncut = np.zeros(len(query_ids), bool)
            if source.fusion is None:
                failures = self.failures.get(number, ())
                failed = _failed(query_ids, [each for each in failures if not each.only_thresholds])
                uncut = _failed(query_ids, [each for each in failures if each.only_thresholds])
                retrieved = Retrieved.of(self.queries, self.rows.get(number, ()))
            else:
                parts = [self.answers(part.source) for part in source.fusion.parts]
                distances = [part.distance for part in source.fusion.parts]
                failed = np.logical_or.reduce(
                    [part.failed_at(distance) for part, distance in zip(parts, distances, strict=True)]
                )
                retrieved = fuse(source.fusion, parts, failed, name)
            self.found[number] = Answers(source, name, query_ids, retrieved, failed, uncut)
        return self.found[number]


def fuse(plan: FusionPlan, parts: Sequence[Answers], failed: BoolArray, name: str) -> Retrieved:
    """Make one ranking of several, for each of n queries.

    Args:
        plan: the rule.
        parts: what its sources say, in the plan's order.
        failed: bool[n], queries of which a part could not be had: they are not fused of the others.
        name: what the fusion is called in messages.

    Returns:
        The documents of all parts: by fused score, ties by document id descending; each with the text of the first
        part that has one.

    Raises:
        InputError: the sum of some scores is no number.
    """
    voted = []
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is no number is refused below
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
        )
    doc_id = doc_id.take(pa.array(fused.rows.max(axis=0)))
    if not (finite := np.isfinite(fused.score)).all():
        worst = int(np.argmin(finite))
        query_id = parts[0].query_ids[int(fused.query[worst])].as_py()
        problem = f"the scores of document {doc_id[worst].as_py()!r} for query {query_id!r} are too large to be summed"
        raise InputError(f"{name}: {problem}; use method: rrf, which goes by ranks")
    return Retrieved(fused.query, doc_id, fused.score, _texts([rows for rows, _ in voted], fused.rows), strangers=0)


def _texts(parts: Sequence[Retrieved], place: IntArray) -> StringArray | None:
    """The text of each document in the first part that has one; None where no part has any.

    Args:
        parts: what the p parts say.
        place: int64[p, u], where each document stands in the rows of all parts together; -1 where a part lacks it.
    """
    if all(rows.text is None for rows in parts):
        return None
    # Together they may have more bytes than the offsets of a plain string array can count.
    texts = [pa.nulls(len(rows.query), pa.large_string()) if rows.text is None else rows.text for rows in parts]
    text = pa.concat_arrays([each.cast(pa.large_string()) for each in texts])
    known = np.append(text.is_valid().to_numpy(zero_copy_only=False), False)
    chosen = np.full(place.shape[1], -1)
    for of_part in place[::-1]:
        chosen = np.where(known[of_part], of_part, chosen)
    return text.take(pa.array(chosen, mask=chosen < 0)).cast(pa.string())


def _normalised(how: Normalisation, query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    kernels = {
        Normalisation.MIN_MAX: fusion.min_max,
        Normalisation.Z_SCORE: fusion.z_scores,
        Normalisation.SUM: fusion.sum_to_one,
    }
    return kernels[how](query, score, queries) if how in kernels else score


def _failed(query_ids: StringArray, failures: Sequence[Failure]) -> BoolArray:
    names = pa.array([each.query_id for each in failures], pa.string())
    failed: BoolArray = pc.is_in(query_ids, value_set=names).to_numpy(zero_copy_only=False)
    return failed


def _name(evaluation: Evaluation, number: int) -> str:
    """What users know a source by: the path of its run, or what they called it, or what it is a part of."""
    path, primary = evaluation.sources[number].path, evaluation.primary(number)
    if path is not None:
        return path
    if primary is not None:
        return f"configuration {evaluation.configurations[primary].name!r}"
    for whole, source in enumerate(evaluation.sources):
        if source.fusion is not None and number in [part.source for part in source.fusion.parts]:
            return f"a part of {_name(evaluation, whole)}"
    return f"source {number}"
