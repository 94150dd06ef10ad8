"""Rows read of a run in another place: means whole, and a sample of the queries."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.judged import RUN_ID, judged_run

from rankbeam.pipelines import report
from rankbeam.pipelines.manage import derived
from rankbeam.pipelines.manage.derived import left_out, sample_rows
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse import duckdb as warehouse

PARTS = 3


@pytest.fixture
def run(tmp_path: Path) -> Results:
    """A run whose values are in three files of as many queries, as three workers write them."""
    run = judged_run(1, queries=60, buckets=PARTS)
    run.write(tmp_path)
    folder = tmp_path / "query_metrics" / RUN_ID
    whole = pq.read_table(folder / "part-0.parquet")
    for number, partition in enumerate(run.partitions):
        ids = partition.queries["query_id"].to_pylist()
        pq.write_table(
            whole.filter(pa.compute.is_in(whole["query_id"], pa.array(ids))), folder / f"part-{number}.parquet"
        )
    return Results(str(tmp_path), RUN_ID)


def most(run: Results, parts: int) -> int:
    """The bytes of so many parts."""
    paths = sorted((Path(run.output) / "query_metrics" / RUN_ID).iterdir())
    return sum(path.stat().st_size for path in paths[:parts])


def queries(run: Results) -> set[str]:
    return set(run.table("query_metrics", ["query_id"])["query_id"].to_pylist())


def test_a_run_with_few_rows_is_read_whole(run: Results) -> None:
    assert sample_rows(run) is run
    assert left_out(run.output) == []


@pytest.mark.long
@pytest.mark.parametrize(("parts", "read"), [(0, 1), (1, 1), (2, 2)])
def test_of_a_large_table_whole_files_are_read(run: Results, parts: int, read: int) -> None:
    some = sample_rows(run, most(run, parts))
    assert queries(some) == {query_id for query_id in queries(run) if int(query_id[1]) < read}
    assert [row["query_id"] for row in some.query_metrics("base")] == sorted(queries(some))
    assert some.means == run.means
    assert some.comparisons == run.comparisons
    (sample,) = set(some.run["warnings"]) - set(run.run["warnings"])
    assert sample.startswith("large tables are read only for a random sample of the queries: query_metrics: ")


def test_the_report_and_duckdb_hold_what_they_show(run: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    few = most(run, 1)
    page = report.build(sample_rows(run, few))
    assert '"q0-000"' in page
    assert '"q1-000"' not in page
    assert "read only for a random sample of the queries" in page
    monkeypatch.setattr(derived, "MOST_BYTES", few)
    left = left_out(run.output)
    assert left == [("query_metrics", RUN_ID)]
    with duckdb.connect(warehouse.build(run.output, left), read_only=True) as connection:

        def count(table: str) -> int:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])

        assert count("query_metrics") == count("per_query") == 0
        assert count("configuration_metrics") == run.table("configuration_metrics").num_rows > 0
        assert count("leaderboard") > 0
