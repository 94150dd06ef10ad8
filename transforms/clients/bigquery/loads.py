"""Load the Parquet files of a run into staging tables: one job per table; its id identifies the files it loads.

BigQuery loads files into a dataset only from buckets in the dataset's location.
"""

import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any

import pyarrow.parquet as pq

from rankbeam.transforms.clients.bigquery import errors, tables
from rankbeam.transforms.clients.bigquery.errors import BigQueryError, ErrorKind
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.schemas import Column
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, Session, again_after
from rankbeam.transforms.clients.storage import files, gcs, matching, parquet
from rankbeam.transforms.records import tables as schemas
from rankbeam.transforms.records.errors import InputError

_PART = re.compile(r"part-(\d{5,})-of-(\d{5,})\.parquet")
_MOST_URIS = 10_000  # of one load job
_KEY_BYTES = 10
_REGION = re.compile(r"[A-Z]+-[A-Z]+[0-9]+")
_FROM_ANYWHERE = "US"  # the one location of datasets that takes files from any bucket


@dataclass(frozen=True)
class RunFiles:
    """The files of one finished run."""

    run_id: str
    experiment: str
    started_at: datetime
    finished_at: datetime
    parts: Mapping[str, tuple[tuple[str, int], ...]]

    def key(self, *scope: str) -> str:
        """A hash of the files' content."""
        sizes = {
            name: [(path.rpartition("/")[2], size) for path, size in files_of] for name, files_of in self.parts.items()
        }
        return key_of(*scope, self.run_id, self.started_at.isoformat(), self.finished_at.isoformat(), sizes)


def find_run(run_id: str, folders: Mapping[str, str]) -> RunFiles:
    parts = {name: _parts(name, folder) for name, folder in folders.items()}
    names = ["run_id", "experiment", "started_at", "finished_at"]
    with parquet.open_file(parts["runs"][0][0]) as file:
        row = file.read(names).to_pylist()[0]
    if row["run_id"] != run_id:
        raise InputError(f"holds the run {row['run_id']!r}, not {run_id!r}", path=folders["runs"])
    return RunFiles(**row, parts=parts)


def key_of(*parts: Any) -> str:
    """A hash that can be part of a job's id and of a table's name."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES).hexdigest()


def staging_name(key: str, table: str) -> str:
    return f"_rankbeam_{key}_{table}"


def load(session: Session, run: RunFiles, key: str, columns: Mapping[str, list[Column]]) -> None:
    """Load every table of a run into its staging table, except tables that an earlier attempt has loaded."""
    begun = [_Load(session, key, name, run.parts[name], columns[name]) for name in columns]
    for load in begun:
        load.begin()
    for load in begun:
        load.finish()


class _Load:
    """The jobs that load one table, one after the other until one succeeds; none if there are no files."""

    def __init__(
        self, session: Session, key: str, name: str, parts: tuple[tuple[str, int], ...], columns: list[Column]
    ) -> None:
        self._session, self._name, self._parts, self._columns = session, name, parts, columns
        self._staging = staging_name(key, name)
        self._ids = (f"rankbeam_load_{key}_{name}_{number}" for number in count())

    def begin(self) -> None:
        """Begin a job, or find one that is running or has succeeded."""
        staging = tables.stage(self._session, self._staging, self._columns)
        while self._parts:
            job_id = next(self._ids)
            job = self._session.job(job_id)
            self._job = job or self._submit(job_id)
            if job is None or job.state != "DONE" or (not job.error_result and _is_in(staging, job)):
                return

    def finish(self) -> None:
        """Wait for the job; begin another one after a transient error."""
        if self._parts:
            again = again_after(ErrorKind.PASSING)
            if (error := self._session.patience.repeated(partial(next, self._attempts()), again)) is not None:
                raise BigQueryError(error.kind, f"loading {self._name}: {error.message}")

    def _attempts(self) -> Iterator[BigQueryError | None]:
        """Yield the error of each job, or None for a job that has succeeded."""
        while True:
            self._job = self._session.wait(self._job)
            yield errors.of_job(self._job)
            self.begin()

    def _submit(self, job_id: str) -> Any:
        from google.cloud import bigquery

        options = bigquery.ParquetOptions()
        options.enable_list_inference = True  # otherwise a list is a record with a field `list`
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            parquet_options=options,
            schema=self._columns,
            create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
            write_disposition=bigquery.WriteDisposition.WRITE_TRUNCATE,
        )
        table = self._session.dataset.table(self._staging)
        paths = [path for path, _ in self._parts]
        if paths[0].startswith(gcs.SCHEME):
            return self._session.load_uris(job_id, uris_of(paths), table, config)
        with _one_file(paths, schemas.TABLES[self._name]) as path:
            return self._session.load_file(job_id, path, table, config)


def uris_of(paths: list[str]) -> list[str]:
    """The files for a load job: listed by name, or matched by a pattern if there are too many."""
    if len(paths) <= _MOST_URIS:
        return paths
    folder, _, last = paths[-1].rpartition("/")
    return [f"{folder}/part-*-of-{last.rpartition('-of-')[2]}"]


def _parts(table: str, folder: str) -> tuple[tuple[str, int], ...]:
    """All parts of a table; none if the run is older than the table."""
    try:
        sizes = [(path.replace("\\", "/"), size) for path, size, _ in matching.version(folder)]
    except InputError:
        if table in schemas.ADDED:
            return ()
        raise
    names = [_PART.fullmatch(path.rpartition("/")[2]) for path, _ in sizes]
    count = max((int(name[2]) for name in names if name), default=0)
    if [int(name[1]) if name and int(name[2]) == count else None for name in names] != list(range(count)):
        problem = f"holds {len(sizes)} files that are not the {count} parts of one table; run the experiment again"
        raise InputError(problem, path=folder)
    return tuple(sizes)


def _is_in(staging: Any, job: Any) -> bool:
    """Return whether the rows that a job loaded are still in the table, because it has not been recreated since."""
    return staging.created is not None and job.created is not None and job.created >= staging.created


@contextlib.contextmanager
def _one_file(paths: list[str], schema: Any) -> Iterator[str]:
    """The path of a local file with the rows of all parts: an upload is one file."""
    if len(paths) == 1 and files.is_local(paths[0]):
        yield paths[0]
        return
    with tempfile.TemporaryDirectory(prefix="rankbeam-") as folder:
        path = files.join(folder, "rows.parquet")
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for path_of_part in paths:
                with parquet.open_file(path_of_part) as part:
                    for group in range(part.num_row_groups):
                        writer.write_table(part.read_row_group(group))
        yield path


def refuse_apart(output: str, dataset: DatasetName) -> None:
    """Check, as far as the locations are known, that files of a folder can be loaded into a dataset.

    An account that may write objects may lack the permission to read their bucket's location; nothing is refused then.
    """
    if not output.startswith(gcs.SCHEME):
        return
    name = output.removeprefix(gcs.SCHEME).partition("/")[0]
    bucket = _bucket(output, name)
    if bucket is None or not bucket.location:
        return
    try:
        place = Session(dataset, IMPATIENT).location
    except BigQueryError as error:
        raise InputError(f"{dataset}: {error.advice(dataset)}") from error
    if not can_load(place, bucket.location, tuple(bucket.data_locations or ())):
        problem = f"the bucket {name} is in {bucket.location}, and the dataset {dataset} in {place}"
        advice = "BigQuery loads only from where the dataset is; choose another bucket or another dataset"
        raise InputError(f"{problem}: {advice}", path=output)


def can_load(dataset: str, bucket: str, regions: tuple[str, ...] = ()) -> bool:
    """Return whether BigQuery may load files from a bucket; False only if it certainly cannot.

    >>> can_load("europe-west1", "EUROPE-WEST1"), can_load("EU", "EUROPE-WEST4"), can_load("US", "ASIA")
    (True, True, True)
    >>> can_load("us-central1", "US-EAST1"), can_load("EU", "US"), can_load("europe-west1", "US")
    (False, False, False)
    """
    dataset, places = dataset.upper(), {bucket.upper(), *(region.upper() for region in regions)}
    if dataset in (_FROM_ANYWHERE, *places):
        return True
    if _REGION.fullmatch(dataset) and all(map(_REGION.fullmatch, places)):
        return False
    return any(_continent(dataset) == _continent(place) for place in places)


def _continent(place: str) -> str:
    """The two letters that regions, pairs of regions and larger areas of a continent have in common.

    >>> _continent("EUROPE-WEST1") == _continent("EUR4") == _continent("EU"), _continent("NAM4") == _continent("US")
    (True, True)
    """
    return "US" if place.startswith(("NAM", "NORTHAMERICA", "US")) else place[:2]


def _bucket(output: str, name: str) -> Any | None:
    """The bucket; None if it does not exist or its metadata is not readable."""
    from apache_beam.io.gcp.gcsio import GcsIO

    gcs.prepare(output)
    try:
        return GcsIO().get_bucket(name)
    except gcs.errors(output):  # a missing bucket is refused where it is written to
        return None
