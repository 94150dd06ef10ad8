"""Commands that only read results begin at once: importing Beam and Google's clients takes more than a second."""

import shutil
import subprocess
import sys
from pathlib import Path

from support.data import REPOSITORY

RESULTS = REPOSITORY / "tests" / "support" / "first_release" / "run"

_READ = """
import sys

for slow in ("apache_beam", "google.cloud.bigquery"):
    sys.modules[slow] = None  # importing it is an ImportError

from rankbeam.pipelines.cli import main

for arguments in (line.split() for line in sys.stdin):
    try:
        main(arguments)
    except SystemExit as end:
        print("status", end.code, arguments[0])
"""


def test_commands_that_read_results_import_neither_beam_nor_google(tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "out")
    (tmp_path / "gates.yaml").write_text("gates: [{metric: RR, at_least: 0.1}]")
    commands = ["compare out", "worst out", "runs out", "trend out", "report out", "gate out --experiment gates.yaml"]
    done = subprocess.run(
        [sys.executable, "-c", _READ], input="\n".join(commands), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ends = [line for line in done.stdout.splitlines() if line.startswith("status ")]
    assert ends == [f"status 0 {command.split()[0]}" for command in commands]
