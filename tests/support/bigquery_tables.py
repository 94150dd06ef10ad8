"""Tables in the emulator of BigQuery, made of rows or of Arrow tables."""

import io
import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from support.emulators import Cloud


@dataclass(frozen=True)
class Tables:
    """A dataset of its own.

    Attributes:
        client: Google's.
        dataset: `project.dataset`.
    """

    client: bigquery.Client
    dataset: str

    def add(self, name: str, content: pa.Table | dict[str, list[Any]]) -> str:
        """Make a table; returns the path that experiments have for it."""
        table = content if isinstance(content, pa.Table) else pa.table(content)
        file = io.BytesIO()
        pq.write_table(table, file)
        file.seek(0)
        # The emulator loads only into what is there.
        self.client.create_table(bigquery.Table(f"{self.dataset}.{name}", [_column(field) for field in table.schema]))
        config = bigquery.LoadJobConfig(source_format="PARQUET")
        self.client.load_table_from_file(file, f"{self.dataset}.{name}", job_config=config).result()
        return f"bigquery://{self.dataset}.{name}"

    def run(self, statement: str) -> None:
        """Run a statement; %s in it is the dataset."""
        self.client.query(statement.replace("%s", self.dataset)).result()


def new_dataset(cloud: Cloud) -> Tables:
    """An empty dataset."""
    project, options = cloud.bigquery.project, {"api_endpoint": cloud.bigquery.rest_url}
    client = bigquery.Client(project, credentials=AnonymousCredentials(), client_options=options)
    dataset = f"{project}.test_{uuid.uuid4().hex[:10]}"
    client.create_dataset(dataset)
    return Tables(client, dataset)


def _column(field: pa.Field) -> bigquery.SchemaField:
    kind, mode = field.type, "NULLABLE"
    if pa.types.is_list(kind):
        kind, mode = kind.value_type, "REPEATED"
    if pa.types.is_struct(kind):
        return bigquery.SchemaField(field.name, "RECORD", mode, fields=[_column(child) for child in kind])
    name = {"string": "STRING", "int64": "INT64", "double": "FLOAT64", "float": "FLOAT64", "bool": "BOOL"}[str(kind)]
    return bigquery.SchemaField(field.name, name, mode)
