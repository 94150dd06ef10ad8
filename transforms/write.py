"""Write tables: Parquet files below the output, one folder a table and run, and the row of `runs` last."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.clients import files
from transforms.kernels.arrays import offsets_of
from transforms.records import tables
from transforms.records.dataset import DatasetSummary
from transforms.records.evaluation import Evaluation, Run
from transforms.records.failures import Failure
from transforms.records.scored import ScoredPartition, Status, slice_values


def run_folder(output: str, table: str, run_id: str) -> str:
    """Where one run's rows of one table lie.

    >>> run_folder("out", "runs", "r1")
    'out/runs/r1'
    """
    return files.join(output, table, run_id)


@dataclass
class WriteTable(beam.PTransform):
    """Write one table of a run to Parquet; yields the paths written, once they are complete.

    Attributes:
        name: of the table, a key of `tables.TABLES`.
        output: the folder of all tables.
        run: whose rows these are.
    """

    name: str
    output: str
    run: Run

    def expand(self, rows: beam.PCollection[pa.Table]) -> beam.PCollection[str]:
        """Add the steps."""
        schema = tables.TABLES[self.name]
        prefix = files.join(run_folder(self.output, self.name, self.run.run_id), "part")
        stamped = rows | "Stamp" >> beam.Map(self.run.stamp, schema).with_output_types(pa.Table)
        return stamped | "WriteParquet" >> beam.io.WriteToParquetBatched(
            prefix, schema, codec="zstd", file_name_suffix=".parquet"
        )


@dataclass
class FinishRun(beam.PTransform):
    """Write the row of `runs`, after all other tables: whoever reads it knows that the run is complete.

    Attributes:
        output: the folder of all tables.
        run: the run.
        versions: of rankbeam and the libraries that make its numbers.
        written: what `WriteTable` yields for every other table.
        failures: the failed calls.
        warnings: of the retrievers.
        summary: the dataset's.
        scored: the scored partitions.
    """

    output: str
    run: Run
    versions: dict[str, str]
    written: list[beam.PCollection[str]]
    failures: beam.PCollection[Any]
    warnings: beam.PCollection[str]
    summary: beam.PCollection[DatasetSummary]
    scored: beam.PCollection[ScoredPartition]

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        """Add the steps."""
        failed = self.failures | "CountFailures" >> beam.combiners.Count.Globally()
        unjudged = self.scored | "Unjudged" >> beam.Map(_unjudged) | "CountUnjudged" >> beam.CombineGlobally(sum)
        done = [beam.pvalue.AsIter(paths) for paths in self.written]
        return (
            pbegin
            | "Once" >> beam.Create([self.output])
            | "WriteRun"
            >> beam.Map(
                write_run,
                self.run,
                self.versions,
                beam.pvalue.AsSingleton(self.summary),
                beam.pvalue.AsSingleton(failed),
                beam.pvalue.AsSingleton(unjudged),
                beam.pvalue.AsIter(self.warnings),
                *done,
            )
        )


def write_run(
    output: str,
    run: Run,
    versions: dict[str, str],
    summary: DatasetSummary,
    failures: int,
    unjudged: int,
    retriever_warnings: Iterable[str],
    *written: Iterable[str],
) -> str:
    """Write the row of a finished run; returns the path.

    Args:
        output: the folder of all tables.
        run: the run.
        versions: as `FinishRun`.
        summary: the dataset's.
        failures: how many calls failed.
        unjudged: how many rankings were of queries without judgements.
        retriever_warnings: of the retrievers; each is kept once.
        written: the paths of the other tables; that they are known means that they are complete.
    """
    warnings = [*summary.warnings(), *sorted(set(retriever_warnings))]
    if unjudged:
        warnings.append(f"{unjudged:,} rankings of queries without judgements, not scored")
    row = {
        "state": "done",
        "finished_at": datetime.now(UTC),
        "experiment_yaml": run.experiment_yaml,
        "dataset_fingerprint": summary.fingerprint,
        "dataset": json.dumps(summary.as_json(), sort_keys=True),
        "versions": json.dumps(versions, sort_keys=True),
        "calls": 0,
        "failures": failures,
        "warnings": warnings,
    }
    plain = pa.schema([field for field in tables.RUNS if field.name in row])
    sink = pa.BufferOutputStream()
    pq.write_table(run.stamp(pa.Table.from_pylist([row], plain), tables.RUNS), sink, compression="zstd")
    path = files.join(run_folder(output, "runs", run.run_id), "run.parquet")
    del written
    files.write(path, sink.getvalue().to_pybytes())
    return path


def query_metrics(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[pa.Table]:
    """Rows of `tables.QUERY_METRICS`, without the common columns, for each configuration."""
    names = pa.array([str(metric) for metric in evaluation.metrics])
    statuses = pa.array([status.name.lower() for status in Status])
    sliced = [slice_values(partition.queries, name) for name in evaluation.slices]
    queries = partition.queries.num_rows
    slices = [
        [{"name": name, "value": values[row]} for name, values in zip(evaluation.slices, sliced, strict=True)]
        for row in range(queries)
    ]
    slice_type = tables.QUERY_METRICS.field("slices").type
    metric_type = tables.QUERY_METRICS.field("metrics").type
    for scored in partition.configurations if queries else ():
        row, column = np.nonzero(np.broadcast_to(scored.scored[:, None], scored.values.shape))
        structs = pa.StructArray.from_arrays(
            [names.take(pa.array(column)), pa.array(scored.values[row, column])], fields=list(metric_type.value_type)
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets_of(row, queries), pa.int32()), structs)
        yield pa.table(
            {
                "config_id": pa.repeat(evaluation.configurations[scored.configuration].config_id, queries),
                "query_id": partition.queries["query_id"],
                "text": partition.queries["text"],
                "status": statuses.take(pa.array(scored.status)),
                "slices": pa.array(slices, slice_type),
                "metrics": lists,
            }
        )


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
            }
            for position, each in enumerate(evaluation.configurations)
        ],
        schema=pa.schema([field for field in tables.CONFIGURATIONS if field not in tables.COMMON]),
    )


def failure_row(element: tuple[int, tuple[int, Failure]], evaluation: Evaluation) -> pa.Table:
    """One row of `tables.FAILURES`, without the common columns."""
    _, (source, failure) = element
    row = {
        "config_id": evaluation.configurations[evaluation.primary(source)].config_id,
        "query_id": failure.query_id,
        "stage": failure.stage,
        "kind": str(failure.kind),
        "attempts": failure.attempts,
        "message": failure.message,
    }
    return pa.Table.from_pylist([row], pa.schema([field for field in tables.FAILURES if field not in tables.COMMON]))


def _unjudged(partition: ScoredPartition) -> int:
    return partition.unjudged
