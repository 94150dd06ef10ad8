"""Rows of the tables, made from scored queries."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import offsets_of
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.failures import Failure
from rankbeam.transforms.records.scores.scored import ScoredPartition, Status
from rankbeam.transforms.records.slices import slice_values


def query_metrics(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[pa.Table]:
    """Rows of `tables.QUERY_METRICS`, without the common columns, for each configuration."""
    names = pa.array([str(metric) for metric in evaluation.metrics])
    statuses = pa.array([status.name.lower() for status in Status])
    queries = partition.queries.num_rows
    slices = _slices(partition.queries, evaluation.attributes)
    metric_type = tables.QUERY_METRICS.field("metrics").type
    for scored in partition.configurations if queries else ():
        row, column = np.nonzero(np.broadcast_to(scored.scored[:, None], scored.values.shape))
        unknown = pa.nulls(len(row), pa.float64())
        bounds = [unknown] * 2 if scored.tie_bounds is None else map(pa.array, scored.tie_bounds[:, row, column])
        structs = pa.StructArray.from_arrays(
            [names.take(pa.array(column)), pa.array(scored.values[row, column]), *bounds],
            fields=list(metric_type.value_type),
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets_of(row, queries), pa.int32()), structs)
        yield pa.table(
            {
                "config_id": pa.repeat(evaluation.configurations[scored.configuration].config_id, queries),
                "query_id": partition.queries["query_id"],
                "text": partition.queries["text"],
                "status": statuses.take(pa.array(scored.status)),
                "slices": slices,
                "metrics": lists,
            }
        )


def _slices(queries: pa.RecordBatch, names: tuple[str, ...]) -> pa.ListArray:
    """Per query, every named attribute with its value."""
    kind = tables.QUERY_METRICS.field("slices").type
    by_name = np.array([slice_values(queries, name) for name in names], object).reshape(len(names), queries.num_rows)
    structs = pa.StructArray.from_arrays(
        [pa.array(list(names) * queries.num_rows, pa.string()), pa.array(by_name.T.ravel(), pa.string())],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(np.arange(queries.num_rows + 1) * len(names), pa.int32()), structs)


def rankings(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[pa.Table]:
    """Rows of `tables.RANKINGS`, without the common columns, for each configuration."""
    queries = partition.queries.num_rows
    for scored in partition.configurations if queries else ():
        if scored.documents is not None:
            yield pa.table(
                {
                    "config_id": pa.repeat(evaluation.configurations[scored.configuration].config_id, queries),
                    "query_id": partition.queries["query_id"],
                    "documents": scored.documents,
                }
            )


def configurations(evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATIONS`, without the common columns."""
    return pa.Table.from_pylist(
        [
            {
                "config_id": each.config_id,
                "name": each.name,
                "position": position,
                "retriever": each.retriever,
                "parameters": each.parameters,
                "derived_from": each.derived_from,
                "dialect": each.dialect.name,
                "parts": [evaluation.configurations[asked].config_id for asked in evaluation.parts(position)],
            }
            for position, each in enumerate(evaluation.configurations)
        ],
        schema=tables.own_columns(tables.CONFIGURATIONS),
    )


def failure_row(element: tuple[int, tuple[int, Failure]], evaluation: Evaluation) -> pa.Table:
    """One row of `tables.FAILURES`, without the common columns."""
    _, (source, failure) = element
    owner = evaluation.with_threshold(source) if failure.only_thresholds else evaluation.owner(source)
    row = {
        "config_id": evaluation.configurations[owner].config_id,
        "query_id": failure.query_id,
        "stage": failure.stage,
        "kind": str(failure.kind),
        "attempts": failure.attempts,
        "message": failure.message,
    }
    return pa.Table.from_pylist([row], tables.own_columns(tables.FAILURES))
