"""Tables that another program changed are refused by commands that read them, with the file and the column."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import rankbeam
from support.finished import finished, ranks
from support.finished import ranked as ranked

from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records.errors import InputError

SMALL = {"metrics": ["RR"], "slices": [], "statistics": {"replicates": 0}}
Change = Callable[[pa.Table], pa.Table]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("unchanged")
    return finished(folder, {"base": ranks(1), "other": ranks(2)}, "r", name="search", **SMALL).output


@pytest.fixture
def output(unchanged: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unchanged, tmp_path / "out"))


def changed(output: Path, table: str, change: Change) -> str:
    (path,) = (output / table / "r").glob("*.parquet")
    pq.write_table(change(pq.read_table(path)), path)
    return str(path)


def as_texts(column: str) -> Change:
    def change(rows: pa.Table) -> pa.Table:
        return rows.set_column(rows.column_names.index(column), column, pa.array(["x"] * rows.num_rows))

    return change


@pytest.mark.parametrize(
    ("table", "column", "command"),
    [("query_metrics", "metrics", "report"), ("query_metrics", "metrics", "compare"), ("runs", "started_at", "runs"),
     ("configurations", "position", "compare"), ("comparisons", "difference", "report")],
)  # fmt: skip
def test_a_column_of_another_type_is_named(output: Path, table: str, column: str, command: str) -> None:
    path = changed(output, table, as_texts(column))
    outcome = rankbeam(command, str(output))
    assert outcome.status == 2
    assert f"{path}: the column {column} is string, not " in outcome.stderr
    assert "rankbeam did not write this table; evaluate again" in outcome.stderr


@pytest.mark.parametrize("table", ["runs", "configurations", "configuration_metrics"])
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_table_without_rows_is_refused(output: Path, table: str, command: str) -> None:
    changed(output, table, lambda rows: rows.slice(0, 0))
    outcome = rankbeam(command, str(output))
    assert outcome.status == 2
    assert re.search(rf"{table}/r: the table {table} has no rows, which rankbeam did not write", outcome.stderr)


def test_wider_numbers_are_read(output: Path) -> None:
    """Other programs write whole numbers with 64 bits."""
    before = rankbeam("compare", str(output)).stdout

    def wider(rows: pa.Table) -> pa.Table:
        for place, field in enumerate(rows.schema):
            if pa.types.is_int32(field.type):
                rows = rows.set_column(place, field.name, rows[field.name].cast(pa.int64()))
        return rows

    for table in ("configurations", "configuration_metrics", "query_metrics"):
        changed(output, table, wider)
    assert rankbeam("compare", str(output)).stdout == before


@pytest.mark.parametrize("names", [["part-00000-of-00002"], ["part-00000-of-00001", "part-00000-of-00001 (1)"]])
def test_a_table_of_an_interrupted_or_doubled_copy_is_refused(output: Path, names: list[str]) -> None:
    (path,) = (output / "query_metrics" / "r").glob("*.parquet")
    content = path.read_bytes()
    path.unlink()
    for name in names:
        (path.parent / f"{name}.parquet").write_bytes(content)
    problem = f"query_metrics/r: has {len(names)} files, and their names say {3 - len(names)}; copy the folder again"
    outcome = rankbeam("compare", str(output))
    assert (outcome.status, problem in outcome.stderr) == (2, True)
    with pytest.raises(InputError, match=re.escape(problem)):
        warehouse.build(str(output))
