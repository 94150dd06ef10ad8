"""A BigQuery dataset that the first release wrote is loaded into, read, compared and reported.

`tests/support/first_release/bigquery.json` holds the columns of all tables at commit 313c12e, as that commit keeps them
for Terraform and makes its tables; the rows are those of `tests/support/first_release/run`, which it loads from there.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import bigquery
from support.bigquery_tables import Tables, new_dataset
from support.data import REPOSITORY
from support.emulators import Cloud
from support.runs import rankbeam

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.records import tables

pytest_plugins = ["support.emulators.fixtures"]

RELEASED = REPOSITORY / "tests" / "support" / "first_release"


@pytest.fixture
def released(cloud: Cloud) -> Iterator[Tables]:
    """The dataset of that time, with its run."""
    dataset = new_dataset(cloud)
    for name, columns in json.loads((RELEASED / "bigquery.json").read_text()).items():
        fields = [bigquery.SchemaField.from_api_repr(column) for column in columns]
        dataset.client.create_table(bigquery.Table(f"{dataset.dataset}.{name}", fields))
        options = bigquery.ParquetOptions()
        options.enable_list_inference = True
        config = bigquery.LoadJobConfig(source_format="PARQUET", schema=fields, parquet_options=options)
        [part] = (RELEASED / "run" / name / "first").glob("*.parquet")
        with part.open("rb") as file:
            dataset.client.load_table_from_file(file, f"{dataset.dataset}.{name}", job_config=config).result()
    yield dataset
    dataset.client.delete_dataset(dataset.dataset, delete_contents=True)


def test_its_dataset_is_loaded_into_read_and_compared(released: Tables, tmp_path: Path) -> None:
    place = f"bigquery://{released.dataset}"
    old = find_run(place, "first")
    alone = rankbeam("compare", place, "--format", "json")
    assert alone.exit_code == 0, alone.stderr
    for name in ("one.run", "two.run", "qrels.txt"):
        shutil.copy(RELEASED / name, tmp_path)
    experiment = tmp_path / "experiment.yaml"
    text = (RELEASED / "experiment.yaml").read_text()
    experiment.write_text(text.replace("{path: out}", f"{{path: out, bigquery: {released.dataset}}}"))
    done = rankbeam("evaluate", experiment, "--run-id", "second")
    assert done.exit_code == 0, done.stderr
    both = rankbeam("compare", place, "--baseline-run-id", "first", "--run-id", "second", "--format", "json")
    assert both.exit_code == 0, both.stderr
    assert {row["verdict"] for row in json.loads(both.stdout)["comparisons"]} == {"equal"}
    assert find_run(place, "first").configurations == old.configurations
    new = find_run(place, "second")
    for name, schema in tables.TABLES.items():
        columns = [field.to_api_repr() for field in released.client.get_table(f"{released.dataset}.{name}").schema]
        assert schemas.merge_columns(columns, schemas.columns_of(schema)) == columns, name
        assert old.table(name).schema == new.table(name).schema == schema
    written = rankbeam("report", place, "--run-id", "first", "--output", tmp_path / "report.html")
    assert written.exit_code == 0, written.stderr
