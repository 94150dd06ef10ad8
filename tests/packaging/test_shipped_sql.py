"""The SQL of the views is in what is built, and is read from there."""

import shutil
import subprocess
import sys
from pathlib import Path

from support.built import Built
from support.data import REPOSITORY

READ = """
import sys
sys.path.insert(0, sys.argv[1])
from rankbeam.transforms.clients.warehouse import views
print(views.FOLDER, len(views.sources()), views.for_duckdb() == views.FOR_DUCKDB.read_text(), "sqlglot" in sys.modules)
"""


def test_both_archives_hold_the_views_and_nothing_else_of_deploy(built: Built) -> None:
    in_wheel, in_sdist = (
        {name: content for name, content in archive.items() if name.startswith("rankbeam/deploy/")}
        for archive in (built.wheel, built.sdist)
    )
    files = [path for folder in ("bigquery", "duckdb") for path in (REPOSITORY / "deploy" / folder).glob("*.sql")]
    sql = {f"rankbeam/{path.relative_to(REPOSITORY).as_posix()}": path.read_bytes() for path in files}
    assert in_wheel == in_sdist == sql


def test_an_installed_package_reads_its_own(built: Built, tmp_path: Path) -> None:
    shutil.unpack_archive(built.wheel_file, tmp_path / "installed", "zip")
    (tmp_path / "deploy").mkdir()  # a folder of the user's with that name
    (tmp_path / "deploy" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    command = [sys.executable, "-c", READ, tmp_path / "installed"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    count = len(list((REPOSITORY / "deploy" / "bigquery").glob("*.sql")))
    assert done.stdout.split() == [str(tmp_path / "installed" / "rankbeam" / "deploy"), str(count), "True", "False"], (
        done.stderr
    )
