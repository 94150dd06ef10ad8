"""Reading and writing BigQuery: rows per CPU second of this process, beside Beam's ReadFromBigQuery, WriteToBigQuery.

Both work on the same emulator, which has a process of its own; its work is not counted. Of reading judgements,
rankbeam's figure is of the whole step: rows read, checked, and divided into buckets. Beam's is of its rows, counted and
thrown away. Of writing, `warehouse_writing` tells.

Beam's client of the REST interface knows no emulator, and its client of the Storage API no channel without TLS: here
both are led to the emulator. What is measured is Beam's code, from the session to the rows, and from the rows to the
load job's end.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import apache_beam as beam
import grpc
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.io.gcp import bigquery as beam_bigquery
from apache_beam.io.gcp.internal.clients.bigquery import BigqueryV2
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from google.cloud import bigquery_storage_v1 as storage
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport
from machine import described
from support.bigquery_tables import new_dataset
from support.emulators import Cloud, cloud, process
from warehouse_writing import rates_of

from rankbeam.transforms.read import ReadDataset

BUCKETS = 16


def table_of(rows: int) -> pa.Table:
    """Judgements: 50 of each query, with ids as web collections have them."""
    number = np.arange(rows)
    ids = [pa.array([f"query-{i // 50:06d}" for i in number]), pa.array([f"clueweb12-{i:012d}" for i in number])]
    return pa.table([*ids, pa.array((number % 4).astype(float))], ["query_id", "doc_id", "grade"])


def ours(path: str, result: Path) -> None:
    """Read by rankbeam, and joined into queries; writes how many judgements these have."""
    with beam.Pipeline(FnApiRunner(), PipelineOptions()) as pipeline:
        dataset = pipeline | ReadDataset(path, None, BUCKETS)
        _ = dataset.summary | beam.Map(lambda summary: result.write_text(str(summary.judgements)))


def beams(path: str, result: Path, *, arrow: bool) -> None:
    """Read by Beam; writes how many rows there are."""
    project, dataset, table = path.removeprefix("bigquery://").split(".")
    read = beam.io.ReadFromBigQuery(
        table=f"{project}:{dataset}.{table}",
        method=beam.io.ReadFromBigQuery.Method.DIRECT_READ,
        use_native_datetime=arrow,
    )
    with beam.Pipeline(FnApiRunner(), PipelineOptions(["--project", project])) as pipeline:
        rows = pipeline | read | beam.combiners.Count.Globally()
        _ = rows | beam.Map(lambda count: result.write_text(str(count)))


def lead(google: Cloud, patches: pytest.MonkeyPatch) -> None:
    """Lead the clients of this process, Beam's among them, to the emulator."""
    for name, value in google.environment.items():
        patches.setenv(name, value)
    patches.setattr(BigqueryV2, "BASE_URL", f"{google.bigquery.rest_url}/bigquery/v2/")

    def connected() -> storage.BigQueryReadClient:
        channel = grpc.insecure_channel(google.bigquery.grpc_address, [("grpc.max_receive_message_length", -1)])
        return storage.BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))

    patched = SimpleNamespace(types=storage.types, BigQueryReadClient=connected)
    patches.setattr(beam_bigquery, "bq_storage", patched)


def rate_of(google: Cloud, read: Callable[[str, Path], None], rows: int, rounds: int) -> float:
    """Rows per CPU second: the median of some rounds, each on a table of its own.

    Afterwards Beam deletes all datasets with a label of its own, and the emulator lists all of them as such.
    """
    rates = []
    for _ in range(rounds):
        path = new_dataset(google).add("qrels", table_of(rows))
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            read(path, Path(folder, "rows"))
            rates.append(rows / (time.process_time() - start))
            text = Path(folder, "rows").read_text()
        if text != str(rows):
            raise SystemExit(f"{text} of {rows} rows were read")
    return float(np.median(rates))


def read_rates(google: Cloud, rows: int, rounds: int) -> dict[str, float]:
    """Rows per CPU second by the name of the reader, rankbeam first."""
    ways = {
        "rankbeam, read and joined": ours,
        "ReadFromBigQuery, DIRECT_READ (Avro)": partial(beams, arrow=False),
        "ReadFromBigQuery, DIRECT_READ (Arrow)": partial(beams, arrow=True),
    }
    return {name: rate_of(google, read, rows, rounds) for name, read in ways.items()}


def table(kind: str, rates: dict[str, float]) -> list[str]:
    """Lines of Markdown; the first rate is rankbeam's, the others are Beam's."""
    best = max(list(rates.values())[1:])
    lines = ["", f"| {kind} | rows per CPU second | of Beam's faster one |", "|---|---:|---:|"]
    return [*lines, *(f"| {name} | {rate:,.0f} | {rate / best:.1f} |" for name, rate in rates.items())]


def main() -> None:
    """Measure, and print tables."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--beam-rows", type=int, default=100_000, help="that Beam writes; it reads as many as we do")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", choices=["reading", "writing"])
    options = arguments.parse_args()
    if reason := process.missing():
        raise SystemExit(reason)
    lines = described()
    with cloud() as google, pytest.MonkeyPatch.context() as patches, patch.object(sys, "argv", sys.argv[:1]):
        lead(google, patches)
        if options.only != "writing":
            lines += table("reader", read_rates(google, options.rows, options.rounds))
        if options.only != "reading":
            lines += table("writer", rates_of(google, options.rows, options.beam_rows, options.rounds))
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
