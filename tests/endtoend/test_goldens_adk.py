"""Google's Agent Development Kit reads an exported benchmark, with its own models and its own loader."""

import json
import subprocess
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.data import REPOSITORY
from support.goldens import goldens_file, lines

PYTHON = REPOSITORY / ".venv-adk" / "bin" / "python"
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-adk is not installed: make adk-test"),
]


def test_adk_reads_the_evalset_with_its_own_models_and_loader(tmp_path: Path) -> None:
    outcome = rankbeam("goldens", goldens_file(tmp_path, reviews={"pool": 0}))
    assert outcome.status == 0, outcome.stderr
    path = str(tmp_path / "helpdesk.evalset.json")
    assert rankbeam("goldens", "export", str(tmp_path / "out"), "--format", "adk", "--output", path).status == 0
    reader = REPOSITORY / "tests" / "support" / "adk" / "read.py"
    done = subprocess.run([PYTHON, reader, path], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    queries = lines(tmp_path / "out" / "queries.jsonl")
    assert json.loads(done.stdout) == {row["_id"]: [row["text"], row["metadata"]["answer"]] for row in queries}
