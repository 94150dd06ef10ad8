"""The same seed and documents give the same bytes in another process, with other hashes, locale and time zone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.goldens import HELPDESK, goldens_file, stable

ELSEWHERE = {
    "plain": {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
    "other": {
        "PYTHONHASHSEED": "4711",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "TZ": "Asia/Tokyo",
    },
}


@pytest.mark.campaign
def test_a_seed_gives_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, documents=str(HELPDESK), items=10, seed=5, reviews={"pool": 3})
    code = "from rankbeam.pipelines.cli import main; main()"
    for name, environment in ELSEWHERE.items():
        command = [sys.executable, "-c", code, "goldens", path, "--output", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment}, timeout=120)
    assert stable(tmp_path / "plain") == stable(tmp_path / "other")
    assert stable(tmp_path / "plain")["queries.jsonl"]
