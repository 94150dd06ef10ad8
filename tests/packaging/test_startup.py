"""A command imports only what it needs: help and refusals come at once."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.data import REPOSITORY

from rankbeam.pipelines.cli import main

HEAVY = {"apache_beam", "bm25s", "duckdb", "google", "numpy", "pyarrow", "pydantic", "rich"}

# Some packages import parts of `google` through .pth files whenever Python starts: only what comes after counts.
PROBE = """
import sys
before = set(sys.modules)
from pathlib import Path
try:
    from rankbeam.pipelines.cli import main
    if sys.argv[2:]:
        main(sys.argv[2:], "rankbeam")
finally:
    Path(sys.argv[1]).write_text("\\n".join(set(sys.modules) - before))
"""


def imported(arguments: Sequence[str], folder: Path) -> set[str]:
    """The top-level packages that a command imports; without arguments, those that `rankbeam.pipelines.cli` does."""
    path = folder / "modules.txt"
    command = [sys.executable, "-c", PROBE, str(path), *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name.partition(".")[0] for name in path.read_text().splitlines()}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["--version"], *([name, "--help"] for name in sorted(main.commands))],
    ids=lambda arguments: " ".join(["rankbeam", *arguments]) if arguments else "import rankbeam.pipelines.cli",
)
def test_nothing_heavy_is_imported_for(arguments: list[str], tmp_path: Path) -> None:
    modules = imported(arguments, tmp_path)
    assert {"click", "rankbeam"} <= modules
    assert modules & HEAVY == set()


def test_validate_needs_no_warehouse_no_terminal_colours_and_no_scipy(tmp_path: Path) -> None:
    modules = imported(["validate", "examples/helpdesk/experiment.yaml"], tmp_path)
    assert {"click", "yaml"} <= modules
    assert modules & {"bm25s", "duckdb", "rich", "scipy"} == set()
