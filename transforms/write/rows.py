"""Make rows of the tables from scored queries and calls, without the common columns."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import IntArray, offsets_of
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallUsage, Usage, usages_by_position
from rankbeam.transforms.records.corpora import BuiltCorpus
from rankbeam.transforms.records.errors import Failure
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.panels import column_order
from rankbeam.transforms.records.scores.scored import (
    LABELS,
    ScoredConfiguration,
    ScoredPanel,
    ScoredPartition,
    Status,
    values_of,
)
from rankbeam.transforms.records.slices import rank_labels, ranked_by, slice_values

_STATUSES = pa.array(LABELS)

Cells = tuple[IntArray, IntArray, list[pa.Array]]
"""Cells of the lists of metrics: the query, the metric's position, and the other fields."""

Needed = Mapping[str, Mapping[int, Collection[int]]]
"""The positions of all configurations that need calls, by the calls' stage and the position that they name."""


def query_metrics(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[pa.Table]:
    """Rows of `tables.QUERY_METRICS`, without the common columns, for each configuration."""
    names = pa.array([str(metric) for metric in evaluation.metrics])
    queries = partition.queries.num_rows
    attributes = {name: slice_values(partition.queries, name) for name in evaluation.attributes}
    by_rank = [name for name in evaluation.slices if ranked_by(name)]
    metric_type = tables.QUERY_METRICS.field("metrics").type
    for scored in partition.configurations if queries else ():
        ranks = {name: rank_labels(values_of(scored, evaluation.panels, name)) for name in by_rank}
        row, column, cells = (
            _judged_cells(scored, evaluation) if len(scored.panels) > 1 else _retrieval_cells(scored.retrieval)
        )
        structs = pa.StructArray.from_arrays(
            [names.take(pa.array(column)), *cells], fields=list(metric_type.value_type)
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets_of(row, queries), pa.int32()), structs)
        yield pa.table(
            {
                "config_id": pa.repeat(evaluation.configurations[scored.configuration].config_id, queries),
                "query_id": partition.queries["query_id"],
                "text": partition.queries["text"],
                "status": _STATUSES.take(pa.array(scored.retrieval.status)),
                "slices": _slices(queries, attributes | ranks),
                "metrics": lists,
            }
        )


def _retrieval_cells(panel: ScoredPanel) -> Cells:
    """The cells of an experiment without judged metrics: every metric of each query with values."""
    row, column = np.nonzero(np.broadcast_to(panel.scored[:, None], panel.values.shape))
    unknown, texts = pa.nulls(len(row), pa.float64()), pa.nulls(len(row), pa.string())
    bounds = [unknown] * 2 if panel.tie_bounds is None else map(pa.array, panel.tie_bounds[:, row, column])
    return row, column, [pa.array(panel.values[row, column]), *bounds, texts, texts]


def _judged_cells(scored: ScoredConfiguration, evaluation: Evaluation) -> Cells:
    """The cells of an experiment with judged metrics; each metric has its own status for every query."""
    order = column_order(evaluation.metrics)
    retrieval, *judged = scored.panels
    queries, metrics = retrieval.values.shape
    present = np.ones((queries, len(order)), np.bool_)
    present[:, :metrics] = retrieval.scored[:, None]
    row, place = np.nonzero(present[:, order])
    column = np.array(order)[place]
    values = np.column_stack([panel.values for panel in scored.panels])
    bounds = np.full((2, *values.shape), np.nan)
    if retrieval.tie_bounds is not None:
        bounds[:, :, :metrics] = retrieval.tie_bounds
    status = np.column_stack([np.full((queries, metrics), len(Status)), *(panel.status for panel in judged)])
    reasons = [pa.nulls(queries, pa.string()) if panel.reasons is None else panel.reasons for panel in judged]
    texts = pa.chunked_array([pa.nulls(1, pa.string()), *reasons], pa.string())
    text = np.where(column < metrics, 0, 1 + (column - metrics) * queries + row)
    numbers = (pa.array(bound[row, column], from_pandas=True) for bound in (values, *bounds))
    statuses = pa.concat_arrays([_STATUSES, pa.nulls(1, pa.string())]).take(pa.array(status[row, column]))
    return row, place, [*numbers, statuses, texts.take(pa.array(text)).combine_chunks()]


def _slices(queries: int, values: Mapping[str, list[str]]) -> pa.ListArray:
    kind = tables.QUERY_METRICS.field("slices").type
    by_name = np.array(list(values.values()), object).reshape(len(values), queries)
    structs = pa.StructArray.from_arrays(
        [pa.array(list(values) * queries, pa.string()), pa.array(by_name.T.ravel(), pa.string())],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(np.arange(queries + 1) * len(values), pa.int32()), structs)


def rankings(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[pa.Table]:
    """Rows of `tables.RANKINGS`, without the common columns, for each configuration."""
    queries = partition.queries.num_rows
    for scored in partition.configurations if queries else ():
        if scored.documents is not None:
            rows = pa.table(
                {
                    "config_id": pa.repeat(evaluation.configurations[scored.configuration].config_id, queries),
                    "query_id": partition.queries["query_id"],
                    "documents": scored.documents,
                }
            )
            is_asked = scored.retrieval.status != Status.NOT_ASKED
            yield rows if is_asked.all() else rows.filter(pa.array(is_asked))


def configurations(evaluation: Evaluation) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "config_id": configuration.config_id,
                "name": configuration.name,
                "position": position,
                "retriever": configuration.retriever,
                "parameters": configuration.parameters,
                "derived_from": configuration.derived_from,
                "dialect": configuration.dialect.name,
                "parts": [evaluation.configurations[part].config_id for part in evaluation.parts(position)],
                "dropped_at": configuration.dropped_at,
            }
            for position, configuration in enumerate(evaluation.configurations)
        ],
        schema=tables.own_columns(tables.CONFIGURATIONS),
    )


def failure_rows(element: tuple[int, tuple[int, Failure]], evaluation: Evaluation) -> pa.Table:
    _, (source, failure) = element
    callers = [evaluation.with_threshold(source)] if failure.only_thresholds else evaluation.callers(source)
    rows = [
        {
            "config_id": evaluation.configurations[caller].config_id,
            "query_id": failure.query_id,
            **_about(failure),
        }
        for caller in callers
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.FAILURES))


def usage_row(usage: Usage, quotas: Mapping[str, Quota], evaluation: Evaluation, needed_by: Needed) -> pa.Table:
    tokens, quota = usage.tokens, quotas[usage.pool]
    total = next((item for item in usage.took if item.position is None), CallUsage())
    usages, recalled = (
        usages_by_position(items, needed_by.get(usage.stage, {})) for items in (usage.took, usage.recalled)
    )
    row = {
        "stage": usage.stage,
        "pool": usage.pool,
        "model": usage.model,
        "calls": usage.calls,
        "ledger_hits": usage.ledger_hits,
        **tokens.by_column(),
        "cost": quota.cost(usage.calls, tokens),
        "p50_s": total.percentile_s(50),
        "p95_s": total.percentile_s(95),
        "configurations": [
            {
                **_usage_of(evaluation, position, use, quota),
                "shared_calls": use.shared,
                "p50_s": use.percentile_s(50),
                "p95_s": use.percentile_s(95),
            }
            for position, use in sorted(usages.items())
        ],
        "from_ledger": [
            {**_usage_of(evaluation, position, use, quota), "ledger_hits": use.hits}
            for position, use in sorted(recalled.items())
        ],
    }
    return pa.Table.from_pylist([row], tables.own_columns(tables.USAGE))


def _usage_of(evaluation: Evaluation, position: int, usage: CallUsage, quota: Quota) -> dict[str, object]:
    return {
        "config_id": evaluation.configurations[position].config_id,
        "calls": usage.calls,
        **usage.tokens.by_column(),
        "cost": quota.cost(usage.calls, usage.tokens),
    }


def corpora(built: Sequence[BuiltCorpus]) -> pa.Table:
    rows = [
        {
            "name": corpus.name,
            "type": corpus.kind,
            "identity": corpus.identity,
            "specification": json.dumps(corpus.specification, sort_keys=True),
            "documents": corpus.documents,
            "resource": corpus.resource,
            "state": corpus.state,
            "files": corpus.files,
            "failed_files": corpus.failed,
            "imported_files": corpus.imported,
            "keep": corpus.keep,
            "expires": corpus.expires,
        }
        for corpus in built
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.CORPORA))


def failed_documents(built: Sequence[BuiltCorpus]) -> pa.Table:
    """Rows of `tables.FAILURES`, without the common columns: one for each document that could not be imported."""
    rows = [
        {**_about(failure), "corpus": corpus.name, "doc_id": failure.query_id}
        for corpus in built
        for failure in corpus.failures
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.FAILURES))


def _about(failure: Failure) -> dict[str, object]:
    names = ("stage", "kind", "attempts", "message")
    return {name: getattr(failure, name) for name in names}
