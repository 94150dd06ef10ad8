"""Write tables: Parquet files below the output, one folder for each table and run; the row of `runs` comes last.

The last step may load the finished run into BigQuery, so that a submitted job needs no later command.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.storage import files, parquet
from rankbeam.transforms.clients.storage.parquet import Part, put_in_place, run_folder
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.answer_tables import unanswered_shares
from rankbeam.transforms.records.calls.steps import OVER_BUDGET, Usage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import FailedCall, failure_warnings
from rankbeam.transforms.records.metrics.evaluation import Statistics
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.estimates import RunEstimates

WrittenPart = tuple[str, str]  # a table, and the path of a complete part


class WriteFn(beam.DoFn):
    """Writes a bundle's rows to one file for `FinishRun`; Beam's own writer would add eight steps for each table."""

    def __init__(self, name: str, output: str, run: Run) -> None:
        self._name, self._folder, self._run = name, run_folder(output, name, run.run_id), run

    def start_bundle(self) -> None:
        self._part: Part | None = None

    def process(self, element: pa.Table) -> Iterator[WrittenPart]:
        schema = tables.TABLES[self._name]
        if self._part is None:
            self._part = Part(self._folder, schema)
        self._part.write(self._run.stamp(element, schema))
        yield from ()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._part is not None:
            yield GlobalWindows.windowed_value((self._name, self._part.close()))


@dataclass(frozen=True)
class RunVerdict:
    """The result of checking a run against its experiment's limits."""

    gates: pa.Table
    is_missed: bool
    warnings: tuple[str, ...]


@dataclass
class FinishRun(beam.PTransform):
    """Move all tables into place, then write the row of `runs`, which shows readers that the run is complete."""

    output: str
    run: Run
    versions: dict[str, str]
    statistics: Statistics
    judge: Callable[[RunEstimates, Mapping[str, pa.Table], Mapping[str, float]], RunVerdict]
    written: list[beam.PCollection[WrittenPart]]
    summary: beam.PCollection[DatasetSummary]
    estimates: beam.PCollection[RunEstimates]
    warnings: beam.PCollection[str]
    usage: beam.PCollection[Usage] | None = None

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        usage = () if self.usage is None else beam.pvalue.AsIter(self.usage)
        written = [beam.pvalue.AsIter(parts) for parts in self.written]
        return (
            pbegin
            | "Once" >> beam.Create([self.output])
            | "WriteRun"
            >> beam.Map(
                write_run,
                self.run,
                self.versions,
                self.statistics,
                self.judge,
                beam.pvalue.AsSingleton(self.summary),
                beam.pvalue.AsSingleton(self.estimates),
                beam.pvalue.AsIter(self.warnings),
                usage,
                *written,
            )
        )


def write_run(
    output: str,
    run: Run,
    versions: dict[str, str],
    statistics: Statistics,
    judge: Callable[[RunEstimates, Mapping[str, pa.Table], Mapping[str, float]], RunVerdict],
    summary: DatasetSummary,
    estimates: RunEstimates,
    warnings: Iterable[str],
    usage: Iterable[Usage],
    *written: Iterable[WrittenPart],
) -> str:
    used = list(usage)
    parts: dict[str, list[str]] = {name: [] for name in tables.TABLES if name not in ("runs", "gates")}
    for name, path in chain.from_iterable(written):
        parts[name].append(path)
    places = {
        name: put_in_place(run_folder(output, name, run.run_id), paths, tables.TABLES[name])
        for name, paths in parts.items()
    }
    judge_tables = {name: _read_table(name, places) for name in ("judge_quality", "agreement")}
    verdict = judge(estimates, judge_tables, unanswered_shares(_statuses(places["answers"])))
    write_alone("gates", output, run, verdict.gates)
    texts = sorted(set(warnings))
    is_missed = verdict.is_missed or any(text.startswith(OVER_BUDGET) for text in texts)
    count(Counter.RUNS_MISSED, int(is_missed))
    failed = failure_warnings(_failures(places["failures"]))
    row = {
        "state": "missed" if is_missed else "done",
        "finished_at": datetime.now(UTC),
        "experiment_yaml": run.experiment_yaml,
        "dataset_fingerprint": summary.fingerprint,
        "dataset": json.dumps(summary.as_json(), sort_keys=True),
        "versions": json.dumps(versions, sort_keys=True),
        "statistics": statistics.as_json(),
        "calls": sum(usage_row.calls for usage_row in used),
        "ledger_hits": sum(usage_row.ledger_hits for usage_row in used),
        "failures": estimates.failures,
        "warnings": [*summary.warnings(), *texts, *failed, *verdict.warnings],
    }
    return write_alone("runs", output, run, pa.Table.from_pylist([row], tables.own_columns(tables.RUNS)))


def write_alone(name: str, output: str, run: Run, rows: pa.Table) -> str:
    """Write a small table to one file and return its path; `rows` lacks the common columns."""
    path = files.join(run_folder(output, name, run.run_id), "part-00000-of-00001.parquet")
    content = pa.BufferOutputStream()
    pq.write_table(run.stamp(rows, tables.TABLES[name]), content, compression="zstd")
    files.write(path, content.getvalue().to_pybytes())  # without the folder `_unfinished`: two commands may write
    return path


def _read_table(name: str, places: Mapping[str, Iterable[str]]) -> pa.Table:
    parts = []
    for path in places[name]:
        with parquet.open_file(path) as file:
            parts.append(file.read())
    return pa.concat_tables([tables.TABLES[name].empty_table(), *parts])


def _statuses(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with parquet.open_file(path) as file:
            yield from file.iter_batches(columns=["config_id", "status"])


def _failures(paths: Iterable[str]) -> Iterator[FailedCall]:
    """The failed calls of queries, and the missing judged values."""
    for path in paths:
        with parquet.open_file(path) as file:
            for batch in file.iter_batches(columns=list(FailedCall._fields)):
                calls = batch.filter(batch["query_id"].is_valid()).select(list(FailedCall._fields))
                yield from map(FailedCall, *(column.to_pylist() for column in calls.columns))


@dataclass
class LoadTables(beam.PTransform):
    """Load all tables of a run once its row in `runs` is written; yield the run_id."""

    dataset: DatasetName
    run_id: str
    output: str
    folders: dict[str, str]

    def expand(self, finished: beam.PCollection[str]) -> beam.PCollection[str]:
        loaded = beam.Map(load_run, self.dataset, self.run_id, self.output, self.folders)
        # The reshuffle keeps a retried load from writing the run's row again.
        return finished | "Written" >> beam.Reshuffle() | "Load" >> loaded


def load_run(_: str, dataset: DatasetName, run_id: str, output: str, folders: dict[str, str]) -> str:
    """Load a run and return its id. Beam may repeat this, since the rows of the run are replaced."""
    from rankbeam.transforms.clients.bigquery import publish  # few runs are loaded

    try:
        return publish.load_run(dataset, run_id, folders).run_id
    except LoadFailed as error:
        if not error.can_repeat:
            raise
        command = f"rankbeam warehouse load {output} --dataset {dataset} --run-id {run_id}"
        raise LoadFailed(f"{error}. The Parquet files in {output} are complete; load them with: {command}") from error
