"""The contexts of configurations: the first results of each ranking, with their texts, which a model receives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, offsets_of, stable_order
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.rankings import RankedRows
from rankbeam.transforms.records.errors import Failure
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.race import order_of
from rankbeam.transforms.records.rankings.fused import Answers, answers_of
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.trajectories import NO_CONSUMPTION, AgentSteps, Consumption, documents_of, in_rows


@dataclass(frozen=True)
class Passage:
    """One result of a ranking, as a context."""

    doc_id: str | None  # None if only its text is known
    text: str | None  # None if the retriever gave none


@dataclass(frozen=True)
class SuppliedAnswer:
    """The supplied parts of one system's answer to one query."""

    answer: str | None = None  # None if a model is to answer, or nothing
    problem: str | None = None
    has_contexts: bool = True
    consumption: Consumption = NO_CONSUMPTION
    steps: AgentSteps | None = None
    citations: tuple[int, ...] | None = None


NOT_SUPPLIED = SuppliedAnswer()  # a model is to answer, or nothing


@dataclass(frozen=True)
class Contexts:
    """The contexts that one configuration has for one query."""

    configuration: int
    passages: tuple[Passage, ...]
    failed: bool = False
    supplied: SuppliedAnswer = NOT_SUPPLIED


def contexts_of(
    queries: pa.RecordBatch,
    rows: Mapping[int, Sequence[pa.RecordBatch]],
    failures: Mapping[int, Sequence[Failure]],
    evaluation: Evaluation,
    counts: Mapping[int, int | None],
    replayed: Mapping[int, Sequence[pa.RecordBatch]] = MappingProxyType({}),
) -> list[list[Contexts]]:
    """The contexts of some queries; a dialect does not affect them, as it only affects the scoring of a ranking."""
    answers = answers_of(queries, rows, failures, evaluation)
    order = order_of(queries["query_id"])
    by_query: list[list[Contexts]] = [[] for _ in range(queries.num_rows)]
    for position, count in sorted(counts.items()):
        configuration = evaluation.configurations[position]
        if evaluation.sources[configuration.source].replayed:
            rows_given, failed_calls = replayed.get(configuration.source, ()), failures.get(configuration.source, ())
            entries = list(_supplied_answers(queries, rows_given, failed_calls, position))
            _add(by_query, entries, configuration.query_mask(order))
            continue
        answer = answers[configuration.source]
        limits = [limit for limit in (configuration.top_k, count) if limit is not None]
        passages = _passages(answer, configuration.distance, min(limits, default=None), queries.num_rows)
        failed = answer.failed_at(configuration.distance).tolist()
        entries = [[Contexts(position, passages[query], failed[query])] for query in range(queries.num_rows)]
        _add(by_query, entries, configuration.query_mask(order))
    return by_query


def _add(by_query: Sequence[list[Contexts]], additions: Sequence[Sequence[Contexts]], is_queried: BoolArray) -> None:
    """Add the contexts of one configuration to those of the queries that it receives."""
    for contexts, entries, is_asked in zip(by_query, additions, is_queried.tolist(), strict=True):
        if is_asked:
            contexts.extend(entries)


def _supplied_answers(
    queries: pa.RecordBatch, rows: Sequence[pa.RecordBatch], failures: Sequence[Failure], position: int
) -> Iterator[list[Contexts]]:
    """For each query, the answers that exist already, with their contexts: usually one."""
    answers = grouped((row["query_id"], _contexts(row, position)) for batch in rows for row in batch.to_pylist())
    problems = {failure.query_id: _failed_answer(failure) for failure in failures}
    for query_id in queries["query_id"].to_pylist():
        entries = answers.get(query_id)
        yield [Contexts(position, (), True, problems[query_id])] if entries is None else entries


def _failed_answer(failure: Failure) -> SuppliedAnswer:
    used = Consumption(failure.tokens, attempts=failure.attempts)
    return SuppliedAnswer(problem=failure.message, consumption=used)


def _contexts(row: Mapping[str, Any], position: int) -> Contexts:
    steps = in_rows(row["steps"])
    passages = tuple(Passage(context["doc_id"], context["text"]) for context in row["contexts"] or ())
    if row["contexts"] is None:
        passages = tuple(Passage(doc_id, None) for doc_id in documents_of(steps) or ())
    has_contexts = row["contexts"] is not None
    citations = None if row["citations"] is None else tuple(row["citations"])
    tokens = Tokens(*(row[name] or 0 for name in NO_TOKENS.by_column()))
    used = Consumption(tokens, row["seconds"], row["first_token_s"], row["attempts"] or 0)
    supplied = SuppliedAnswer(row["answer"], None, has_contexts, used, steps, citations)
    return Contexts(position, passages, False, supplied)


def _passages(answer: Answers, distance: float | None, count: int | None, queries: int) -> list[tuple[Passage, ...]]:
    """For each query, the first passages of a source's ranking."""
    retrieved = answer.nearer_than(distance)
    score = -retrieved.score if answer.source.lower_is_better else retrieved.score
    is_given = answer.source.path is None
    order = (
        stable_order(retrieved.query, queries) if is_given else order_by_score(retrieved.query, score, retrieved.doc_id)
    )
    ranked = RankedRows.of(order, retrieved.query, retrieved.doc_id, queries).upto(count)
    row = pa.array(ranked.row)
    doc_ids = retrieved.doc_id.take(row).to_pylist()
    texts = [None] * len(doc_ids) if retrieved.text is None else retrieved.text.take(row).to_pylist()
    passages = [Passage(doc_id, text) for doc_id, text in zip(doc_ids, texts, strict=True)]
    offsets = offsets_of(ranked.query, queries).tolist()
    return [tuple(passages[offsets[query] : offsets[query + 1]]) for query in range(queries)]
