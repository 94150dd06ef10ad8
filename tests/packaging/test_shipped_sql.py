"""The SQL of the views is in what is built, and is read from there."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.data import REPOSITORY

READ = """
import sys
sys.path.insert(0, sys.argv[1])
from rankbeam.transforms.clients.warehouse import views
print(views.FOLDER, len(views.sources()), views.for_duckdb() == views.FOR_DUCKDB.read_text(), "sqlglot" in sys.modules)
"""
COPIED = ("rankbeam", "deploy", "pipelines", "transforms", "LICENSE", "README.md", "pyproject.toml", "setup.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel of a copy."""
    folder = tmp_path_factory.mktemp("shipped")
    for name in COPIED:
        if (REPOSITORY / name).is_dir():
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / name, folder / "copy" / name, symlinks=True, ignore=without)
        else:
            shutil.copy(REPOSITORY / name, folder / "copy" / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "copy"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_both_archives_hold_the_views_and_nothing_else_of_deploy(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name: archive.read(name) for name in archive.namelist() if name.startswith("rankbeam/deploy/")}
    with tarfile.open(sdist) as packed:
        members = {member.name.partition("/")[2]: member for member in packed.getmembers() if member.isfile()}
        in_sdist = {
            name: packed.extractfile(each) for name, each in members.items() if name.startswith("rankbeam/deploy/")
        }
        read = {name: file.read() for name, file in in_sdist.items() if file is not None}
    sql = [path for folder in ("bigquery", "duckdb") for path in (REPOSITORY / "deploy" / folder).glob("*.sql")]
    assert (
        in_wheel == read == {f"rankbeam/{path.relative_to(REPOSITORY).as_posix()}": path.read_bytes() for path in sql}
    )


def test_an_installed_package_reads_its_own(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    (tmp_path / "deploy").mkdir()  # a folder of the user's with that name
    (tmp_path / "deploy" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    command = [sys.executable, "-c", READ, tmp_path / "installed"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    count = len(list((REPOSITORY / "deploy" / "bigquery").glob("*.sql")))
    assert done.stdout.split() == [str(tmp_path / "installed" / "rankbeam" / "deploy"), str(count), "True", "False"], (
        done.stderr
    )
