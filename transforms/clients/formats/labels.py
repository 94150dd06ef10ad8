"""Places that store labels: a folder of Parquet files, a single file, or a BigQuery table."""

import io
import secrets
import tempfile
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.bigquery import errors, read, schemas
from rankbeam.transforms.clients.bigquery.errors import BigQueryError
from rankbeam.transforms.clients.bigquery.names import TableName, TableSource, is_table
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, PATIENCE, Session
from rankbeam.transforms.clients.storage import files, matching, parquet
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.labels import ADDED, LABELS, Label, Labels, text_hash

FOLDER = "labels"  # the folder of labels and tasks inside an output folder


def read_labels(path: str) -> Labels:
    rows: dict[Label, None] = {}
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for name, table in [_table_labels(path)] if is_table(path) else _files_labels(path):
        for row in Labels.of(table).rows:
            rows[row] = None
            decision, place = known.setdefault((row.item_id, row.annotator), (row.decision, name))
            if decision != row.decision:
                problem = (
                    f"{row.annotator!r} decided {row.decision!r} on item {row.item_id}, and {decision!r} in {place}"
                )
                raise InputError(f"{problem}; remove one of the two", path=name)
    return Labels(tuple(rows))


def _files_labels(path: str) -> Iterator[tuple[str, pa.Table]]:
    for name in matching.expand(path):
        with parquet.open_file(name) as file:
            _refuse_without_columns(name, file.schema_arrow.names)
            yield name, file.read([column for column in LABELS.names if column in file.schema_arrow.names])


def _table_labels(path: str) -> tuple[str, pa.Table]:
    source = TableSource.parse(path)
    columns = read.describe(source).columns
    _refuse_without_columns(path, columns)
    schema = pa.schema([field for field in LABELS if field.name in columns])
    batches = [batch.select(schema.names) for batch in read.batches(source, schema.names)]
    for batch in batches[:1]:
        for field in batch.schema:
            if field.type != LABELS.field(field.name).type:
                kind = LABELS.field(field.name).type
                raise InputError(f"has a column {field.name} of type {field.type}; labels have {kind}", path=path)
    return path, pa.Table.from_batches(batches, schema) if batches else LABELS.empty_table()


def _refuse_without_columns(path: str, columns: Sequence[str]) -> None:
    if missing := [column for column in LABELS.names if column not in (*columns, *ADDED)]:
        problem = f"has no column {missing[0]}; labels are what `rankbeam label OUT --apply FILE` writes"
        raise InputError(problem, path=path)


def has_labels(place: str) -> bool:
    if not is_table(place):
        return files.exists(place)
    name = TableName.parse(place)
    session = Session(name.dataset, IMPATIENT)
    try:
        _ = session.location
        return session.table(name.table) is not None
    except BigQueryError as error:
        raise InputError(error.advice(name.dataset), path=place) from error


def save_labels(place: str, rows: Sequence[Label]) -> str:
    """Write labels to a file named after their content, or append to a table the labels that it lacks."""
    ordered = sorted(rows, key=lambda row: (row.item_id, row.annotator, row.owner_hash or "", row.position or 0))
    table = pa.Table.from_pylist([vars(row) for row in ordered], schema=LABELS)
    content = io.BytesIO()
    pq.write_table(table, content)
    digest = text_hash("\n".join(f"{row.item_id} {row.annotator} {row.decision}" for row in ordered))
    if is_table(place):
        _append(place, content.getvalue(), digest)
        return place
    path = files.join(place, f"labels-{digest[:16]}.parquet")
    files.make_writable_folder(place)
    files.write(path, content.getvalue())
    return path


def _append(place: str, content: bytes, digest: str) -> None:
    """Load rows into a table, which is created if it does not exist; either all rows are loaded or none."""
    from google.cloud import bigquery

    name = TableName.parse(place)
    session = Session(name.dataset, PATIENCE)
    config = bigquery.LoadJobConfig(
        source_format=bigquery.SourceFormat.PARQUET,
        create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
        write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
    )
    try:
        columns = [bigquery.SchemaField.from_api_repr(column) for column in schemas.columns_of(LABELS)]
        table = session.table(name.table) or session.create(bigquery.Table(str(name), columns))
        known = {column.name for column in table.schema}
        if lacking := [column for column in columns if column.name in ADDED and column.name not in known]:
            table.schema = [*table.schema, *lacking]
            session.update(table, ["schema"])
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            file.write(content)
            file.flush()
            job_id = f"rankbeam_labels_{digest[:16]}_{secrets.token_hex(4)}"
            job = session.wait(session.load_file(job_id, file.name, name, config))
        if (refusal := errors.of_job(job)) is not None:
            raise refusal
    except BigQueryError as error:
        raise InputError(f"the labels were not saved: {error.advice(name.dataset)}", path=place) from error
