"""Parts of a table: nobody reads one before all are in their places, and an interrupted move goes on."""

import errno
import io
import uuid
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystems import FileSystems
from support import memory_filesystem

from rankbeam.transforms.clients.storage import files, matching, parquet
from rankbeam.transforms.clients.storage.parquet import Part, put_in_place
from rankbeam.transforms.records.errors import InputError

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.int64())])


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The folder of a table, which does not exist yet."""
    yield str(tmp_path / "table" / "run") if request.param == "local" else "mem://bucket/table/run"
    memory_filesystem.FILES.clear()


def rows(first: int, count: int = 2) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table([pa.array([f"é{number}" for number in numbers]), pa.array(numbers, pa.int64())], SCHEMA)


def parts(folder: str, count: int) -> list[str]:
    paths = []
    for number in range(count):
        part = Part(folder, SCHEMA)
        part.write(rows(10 * number))
        part.write(rows(10 * number + 2, 1))
        paths.append(part.close())
    return paths


def stored(folder: str) -> list[str]:
    """Every file below the folder, as names relative to it."""
    metadata = FileSystems.match([folder.rstrip("/") + "/**"])[0].metadata_list
    below = [file.path[len(folder) + 1 :] for file in metadata]
    return sorted(name for name in below if files.is_local(folder) is False or (Path(folder) / name).is_file())


def content(paths: list[str]) -> list[int]:
    tables = []
    for path in paths:
        with files.open_raw(path) as file:
            tables.append(pq.read_table(io.BytesIO(file.read())))
    assert {table.schema.equals(SCHEMA) for table in tables} == {True}
    return sorted(value for table in tables for value in table["value"].to_pylist())


def test_a_large_table_is_divided_into_groups(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was one group, of which DuckDB reads 2,048 rows at once, however many bytes they have."""
    monkeypatch.setattr(parquet, "_GROUP_BYTES", rows(0, 5).nbytes)
    part = Part(folder, SCHEMA)
    part.write(rows(0, 20))
    with parquet.open_file(part.close()) as file:
        assert 4 <= file.num_row_groups <= 5
        assert file.read().equals(rows(0, 20))


def test_parts_are_put_in_place_under_numbered_names(folder: str) -> None:
    paths = parts(folder, 3)
    assert len(set(paths)) == 3
    places = put_in_place(folder, paths, SCHEMA)
    assert places == [files.join(folder, f"part-{number:05}-of-00003.parquet") for number in range(3)]
    assert stored(folder) == [f"part-{number:05}-of-00003.parquet" for number in range(3)]
    assert content(places) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_the_order_in_which_parts_are_named_does_not_matter(folder: str) -> None:
    paths = parts(folder, 3)
    by_place = [content([path]) for path in sorted(paths)]
    assert [content([place]) for place in put_in_place(folder, paths[::-1], SCHEMA)] == by_place


def test_a_table_without_rows_has_a_file_with_its_columns(folder: str) -> None:
    places = put_in_place(folder, [], SCHEMA)
    assert stored(folder) == ["part-00000-of-00001.parquet"]
    assert places == [files.join(folder, "part-00000-of-00001.parquet")]
    assert content(places) == []


def test_what_others_left_unfinished_is_removed(folder: str) -> None:
    abandoned = Part(folder, SCHEMA)
    abandoned.write(rows(900))
    abandoned.close()
    places = put_in_place(folder, parts(folder, 1), SCHEMA)
    assert stored(folder) == ["part-00000-of-00001.parquet"]
    assert content(places) == [0, 1, 2]


def test_parts_that_were_deleted_before_they_are_in_place_are_named(folder: str) -> None:
    first, *others = parts(folder, 2)
    files.delete(first)
    with pytest.raises(InputError, match="was deleted during the run") as caught:
        put_in_place(folder, [first, *others], SCHEMA)
    assert caught.value.path == first


def test_a_table_that_was_deleted_is_made_anew_in_fewer_parts(folder: str) -> None:
    put_in_place(folder, parts(folder, 3), SCHEMA)
    files.delete(folder)
    assert stored(folder) == []
    assert content(matching.expand(put_in_place(folder, parts(folder, 1), SCHEMA)[0])) == [0, 1, 2]
    assert stored(folder) == ["part-00000-of-00001.parquet"]


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_calling_again_after_a_failure_half_way(folder: str, moved: int) -> None:
    paths = sorted(parts(folder, 3))
    expected = [content([path]) for path in paths]
    places = [files.join(folder, f"part-{number:05}-of-00003.parquet") for number in range(3)]
    if moved:  # as far as a first call came before its worker was lost
        FileSystems.rename(paths[:moved], places[:moved])
    for _ in range(2):  # and again after it was done
        assert put_in_place(folder, paths, SCHEMA) == places
        assert stored(folder) == [place[len(folder) + 1 :] for place in places]
        assert [content([place]) for place in places] == expected


def test_calling_again_for_a_table_without_rows(folder: str) -> None:
    for _ in range(2):
        assert content(put_in_place(folder, [], SCHEMA)) == []
        assert stored(folder) == ["part-00000-of-00001.parquet"]


def test_a_rename_that_fails_loses_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    paths = sorted(parts(folder, 3))
    obstacle = tmp_path / "run" / "part-00001-of-00003.parquet"
    obstacle.mkdir()
    (obstacle / "file").write_text("in the way")
    with pytest.raises(OSError, match="part-00001-of-00003"):
        put_in_place(folder, paths, SCHEMA)
    (obstacle / "file").unlink()
    obstacle.rmdir()
    assert content(put_in_place(folder, paths, SCHEMA)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_readers_of_the_folder_do_not_see_a_part_before_it_is_in_place(tmp_path: Path) -> None:
    folder = str(tmp_path / "table" / "run")
    put_in_place(folder, parts(folder, 1), SCHEMA)
    still_written = Part(folder, SCHEMA)
    still_written.write(rows(500))
    complete = parts(folder, 2)
    assert {Path(path).parent.name for path in complete} == {"_unfinished"}
    assert pq.read_table(folder).num_rows == 3
    assert ds.dataset(str(tmp_path), format="parquet").count_rows() == 3
    count = "SELECT count(*) FROM read_parquet(?)"
    assert duckdb.execute(count, [f"{folder}/*.parquet"]).fetchall() == [(3,)]
    assert duckdb.execute(count, [f"{tmp_path}/table/*/*.parquet"]).fetchall() == [(3,)]
    assert len(matching.expand(folder)) == 1
    still_written.close()


def test_a_part_of_a_new_table_is_not_found(tmp_path: Path) -> None:
    folder = str(tmp_path / "table" / "run")
    parts(folder, 1)
    assert ds.dataset(folder, format="parquet").count_rows() == 0
    with pytest.raises(duckdb.IOException):
        duckdb.execute("SELECT count(*) FROM read_parquet(?)", [f"{folder}/*.parquet"])


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("a file")
    with pytest.raises(InputError, match="cannot be written") as caught:
        Part(str(tmp_path / "table" / "run"), SCHEMA)
    assert str(tmp_path / "table" / "run") in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOTDIR


def test_other_rows_than_the_schemas_are_an_error(tmp_path: Path) -> None:
    part = Part(str(tmp_path), SCHEMA)
    with pytest.raises(ValueError, match="schema"):
        part.write(pa.table({"name": ["a"], "other": [1]}))
    part.write(rows(0))
    assert content([part.close()]) == [0, 1]


def test_names_of_parts_do_not_collide(folder: str) -> None:
    names = [Path(path).stem for path in parts(folder, 20)]
    assert len({uuid.UUID(hex=name) for name in names}) == 20


def test_rows_that_come_singly_or_in_thousands_make_full_row_groups_in_their_order(folder: str) -> None:
    part = Part(folder, SCHEMA)
    counts = [1, 2, 0, 5_000, 40_000, 1, 30_000]
    begins = [sum(counts[:position]) for position in range(len(counts))]
    for begin, count in zip(begins, counts, strict=True):
        part.write(rows(begin, count))
    [place] = put_in_place(folder, [part.close()], SCHEMA)
    with files.open_raw(place) as handle:
        file = pq.ParquetFile(handle)
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        assert groups == [30_720, 30_720, 13_564]
        assert file.read().equals(rows(0, sum(counts)))


@pytest.mark.long
def test_large_rows_do_not_wait_for_a_full_group(folder: str) -> None:
    large = pa.table([pa.array(["x" * (40 << 20)]), pa.array([1])], SCHEMA)
    part = Part(folder, SCHEMA)
    for _ in range(2):
        part.write(large)
    [place] = put_in_place(folder, [part.close()], SCHEMA)
    with files.open_raw(place) as handle:
        assert pq.ParquetFile(handle).num_row_groups == 2
