"""Files and folders whose names contain characters of patterns, in buckets and on this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.emulators import Cloud

from rankbeam.pipelines.manage import jobs
from rankbeam.transforms.clients.search import index_folder
from rankbeam.transforms.clients.storage import files, matching, whole_files
from rankbeam.transforms.goldens import parts

pytest_plugins = ["support.emulators.fixtures"]


@pytest.fixture
def bucket(cloud: Cloud) -> str:
    return f"gs://{cloud.gcs.bucket()}"


@pytest.mark.parametrize("name", ["data[1].jsonl", "data*.jsonl", "data1.jsonl"])
def test_a_file_has_its_own_version(bucket: str, name: str) -> None:
    for other, content in ((name, b"1\n"), ("data12.jsonl", b"12\n")):
        files.write(f"{bucket}/{other}", content)
    ((path, size, _),) = matching.version(f"{bucket}/{name}")
    assert (path, size) == (f"{bucket}/{name}", 2)


@pytest.mark.filterwarnings("error::FutureWarning")
@pytest.mark.parametrize("folder", ["out*", "out[1]", "out"])
def test_nothing_beside_a_folder_is_listed_or_deleted(bucket: str, folder: str) -> None:
    ours, other = f"{bucket}/{folder}", f"{bucket}/out1"
    for place in (ours, other):
        jobs.save(place, "r1", {"run_id": place})
        files.write(f"{place}/runs/part.parquet", b"rows")
    assert [record["run_id"] for record in jobs.every(ours)] == [ours]
    assert [file.path for file in whole_files.list_files(f"{ours}/runs", "runs")] == [f"{ours}/runs/part.parquet"]
    files.delete(f"{ours}/runs")
    assert whole_files.delete(f"{ours}/jobs/r1.json")
    assert files.match(f"{bucket}/out*/**") == [f"{other}/jobs/r1.json", f"{other}/runs/part.parquet"]


def test_results_and_indexes_below_a_folder_of_this_machine(tmp_path: Path) -> None:
    (folder := tmp_path / "out[1]").mkdir()
    parts.write_part(str(folder), "usage", ['{"a": 1}'])
    assert list(parts.read_parts(str(folder), "usage", dict[str, int])) == [{"a": 1}]
    (index := folder / "source" / "content" / "index").mkdir(parents=True)
    (index / index_folder.MANIFEST).write_text("{}")
    assert [one.folder for one in index_folder.kept_indexes(str(folder))] == [str(index)]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_whole_bucket_is_a_folder(bucket: str, end: str) -> None:
    files.make_writable_folder(f"{bucket}{end}")
    jobs.save(f"{bucket}{end}", "r1", {})
    assert files.match(f"{bucket}/**") == [f"{bucket}/jobs/r1.json"]


@pytest.mark.parametrize("pattern", ["*/q.jsonl", "**/q.jsonl", "tables"])
def test_a_folder_that_may_not_be_listed_is_refused_rather_than_left_out(pattern: str, tmp_path: Path) -> None:
    for name in ("open/q.jsonl", "shut/q.jsonl", "tables/a/q.parquet", "tables/shut/q.parquet"):
        files.write(str(tmp_path / name), b"\n")
    shut = [tmp_path / "shut", tmp_path / "tables/shut"]
    for folder in shut:
        folder.chmod(0)
    code = f"from rankbeam.transforms.clients.storage import matching; matching.expand({str(tmp_path / pattern)!r})"
    stderr = _as_user(code)
    for folder in shut:
        folder.chmod(0o755)
    assert "shut/: cannot be listed, so its files would be missing: Permission denied" in stderr, stderr


def test_a_folder_that_need_not_be_listed_is_not_refused(tmp_path: Path) -> None:
    """As others' home folders often are: a file in it can be read by its name."""
    files.write(str(tmp_path / "home/q.jsonl"), b"\n")
    (tmp_path / "home").chmod(0o311)
    code = "from rankbeam.transforms.clients.storage import matching; "
    stderr = _as_user(f"{code}assert matching.expand({str(tmp_path / '*/q.jsonl')!r})")
    (tmp_path / "home").chmod(0o755)
    assert stderr == ""


def test_a_duckdb_file_that_may_not_be_read_is_not_called_foreign(tmp_path: Path) -> None:
    (tmp_path / "results.duckdb").touch(0)
    stderr = _as_user(
        f"from rankbeam.transforms.clients.warehouse import duckdb; duckdb.refuse_foreign({str(tmp_path)!r})"
    )
    assert "results.duckdb: cannot be opened: Permission denied" in stderr, stderr


def _as_user(code: str) -> str:
    """The errors of Python code, which is run without root's permission to read every file."""
    as_user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    return subprocess.run([*as_user, sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
