"""Writing results to BigQuery: rows of `query_metrics` per CPU second of this process, beside Beam's WriteToBigQuery.

Both begin with rows that are there before the clock runs, and end when an emulator's table holds them: rankbeam's with
Arrow tables, as scoring leaves them, Beam's with the same rows as dicts. Both put files on gs:// and have them loaded.
rankbeam's figure is of all that a run does then: its other tables are made and loaded too, and one transaction shows
them all. Beam's is of one load job into one table; it ends on the emulator too. Beam may write fewer rows, as rates are
compared: starting costs both some CPU time, so that Beam's rate is about a tenth higher with 300,000 rows than with
100,000, while ours of 1,000,000 rows is twice that of 300,000. `--beam-rows` compares equal numbers.
"""

import gc
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from google.cloud import bigquery
from support.bigquery_tables import Tables, new_dataset
from support.emulators import Cloud

from rankbeam.pipelines.run.build import table_folders, versions
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.schemas import columns_of
from rankbeam.transforms.records.answer_tables import GATES
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition
from rankbeam.transforms.records.tables import QUERY_METRICS, own_columns
from rankbeam.transforms.write.rows import query_metrics
from rankbeam.transforms.write.tables import FinishRun, LoadTables, RunVerdict, WriteFn

BATCH = 10_000
METRICS = (
    "nDCG@10", "nDCG@20", "nDCG@100", "AP", "AP@100", "RR", "P@1", "P@5", "P@10", "R@100", "Success@5", "Rprec",
)  # fmt: skip
RUN = Run("run", "benchmark", datetime(2026, 3, 1, 12, 30, 15, 123456, UTC), "name: benchmark")
TABLE = "query_metrics"

_batches: list[Any] = []
"""Tables of the running pipeline: its steps find them here, so that coders do not see them."""


def evaluation() -> Evaluation:
    """One configuration and twelve metrics."""
    configuration = Configuration("0123456789abcdef", "bm25", 0, "run_file", "{}", 100, None)
    return Evaluation((configuration,), tuple(map(parse_metric, METRICS)), ())


def tables_of(rows: int) -> Iterator[pa.Table]:
    """Rows without the common columns, in batches."""
    draw, configuration = np.random.default_rng(1), evaluation()
    for start in range(0, rows, BATCH):
        number = range(start, min(start + BATCH, rows))
        ids = pa.array([f"query-{i:07d}" for i in number])
        texts = pa.array([f"how do i change the address of order {i}" for i in number])
        values = draw.random((len(number), len(METRICS)))
        values[:, len(METRICS) // 2 :] = values[:, len(METRICS) // 2 :].round(1)  # few values, as P@10 has
        scored = ScoredConfiguration(0, (ScoredPanel(np.zeros(len(number), np.int8), values),))
        queries = pa.RecordBatch.from_arrays([ids, texts], ["query_id", "text"])
        yield from query_metrics(ScoredPartition(queries, {}, (scored,)), configuration)


def batch(number: int) -> Any:
    """One of those that the pipeline under way writes."""
    return _batches[number]


def _same(verdict: RunVerdict, *_: object) -> RunVerdict:
    return verdict


def ours(google: Cloud, into: Tables) -> None:
    """Written and loaded by rankbeam, with the steps that end its own pipelines."""
    output = f"gs://{google.gcs.bucket()}/out"
    with beam.Pipeline(FnApiRunner(), PipelineOptions()) as pipeline:
        rows = pipeline | beam.Create(range(len(_batches))) | beam.Map(batch)
        written = rows | "Write" >> beam.ParDo(WriteFn(TABLE, output, RUN))
        summary = pipeline | "Summary" >> beam.Create([DatasetSummary()])
        estimates = pipeline | "Estimates" >> beam.Create([RunEstimates()])
        warnings = pipeline | "Warnings" >> beam.Create([""])
        verdict = RunVerdict(own_columns(GATES).empty_table(), is_missed=False, warnings=())
        judge = partial(_same, verdict)
        finish = FinishRun(output, RUN, versions(), Statistics(), judge, [written], summary, estimates, warnings)
        folders = table_folders(output, RUN.run_id)
        load = LoadTables(DatasetName.parse(into.dataset), RUN.run_id, output, folders)
        _ = pipeline | "Finish" >> finish | "Load" >> load


def beams(google: Cloud, into: Tables, *, temporary: str) -> None:
    """Written to files of a format, and loaded, by Beam."""
    project, _, dataset = into.dataset.partition(".")
    # The emulator loads only into what is there, as it is.
    schema = [bigquery.SchemaField.from_api_repr(column) for column in columns_of(QUERY_METRICS)]
    into.client.create_table(bigquery.Table(f"{into.dataset}.{TABLE}", schema))
    write = beam.io.WriteToBigQuery(
        f"{project}:{dataset}.{TABLE}",
        schema={"fields": columns_of(QUERY_METRICS)},
        method=beam.io.WriteToBigQuery.Method.FILE_LOADS,
        temp_file_format=temporary,
        custom_gcs_temp_location=f"gs://{google.gcs.bucket()}/temporary",
        create_disposition=beam.io.BigQueryDisposition.CREATE_NEVER,
    )
    options = PipelineOptions(["--project", project, "--job_name", f"benchmark-{uuid.uuid4().hex[:8]}"])
    with beam.Pipeline(FnApiRunner(), options) as pipeline:
        _ = pipeline | beam.Create(range(len(_batches))) | beam.FlatMap(batch) | write


def rate_of(google: Cloud, write: Callable[[Cloud, Tables], None], batches: list[Any], rounds: int) -> float:
    """Rows per CPU second: the median of some rounds, each into a dataset of its own."""
    rows, rates = sum(map(len, batches)), []
    _batches[:] = batches
    gc.collect()
    gc.freeze()  # in a pipeline, the rows would not all be there for the collector to look through
    for _ in range(rounds):
        into = new_dataset(google)
        start = time.process_time()
        write(google, into)
        rates.append(rows / (time.process_time() - start))
        query = f"SELECT count(*), count(DISTINCT query_id), sum(ARRAY_LENGTH(metrics)) FROM `{into.dataset}.{TABLE}`"
        result = [tuple(row) for row in into.client.query(query).result()]
        if result != [(rows, rows, rows * len(METRICS))]:
            raise SystemExit(f"the table holds {result}, not {rows} rows of {len(METRICS)} metrics each")
        into.client.delete_dataset(into.dataset, delete_contents=True)
    _batches.clear()
    gc.unfreeze()
    return float(np.median(rates))


def rates_of(google: Cloud, rows: int, beam_rows: int, rounds: int) -> dict[str, float]:
    """Rows per CPU second by the name of the writer, rankbeam first."""
    tables = list(tables_of(rows))
    rates = {f"rankbeam, {rows:,} rows": rate_of(google, ours, tables, rounds)}
    dicts = [RUN.stamp(table, QUERY_METRICS).to_pylist() for table in tables_of(beam_rows)]
    for name, temporary in {"JSON": "NEWLINE_DELIMITED_JSON", "Avro": "AVRO"}.items():
        rate = rate_of(google, partial(beams, temporary=temporary), dicts, rounds)
        rates[f"WriteToBigQuery, FILE_LOADS ({name}), {beam_rows:,} rows"] = rate
    return rates
