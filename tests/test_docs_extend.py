"""The guide to types of one's own: its retrievers run from an installed package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.documents import page

EXTEND = page("extend")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the guide's experiment and its files, and below `site` a package with the guide's types."""
    site = tmp_path / "site"
    site.mkdir()
    for block in EXTEND.blocks:
        if block.file:
            (site / block.file).write_text(block.text, encoding="utf-8")
    info = site / "own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[rankbeam.retrievers]\nprefix = local:Prefix\nshelf = shelf:Shelf\ntitles = titles:Titles\n"
        "[rankbeam.models]\necho = echo:Echo\nmute = mute:Mute\n"
    )
    (tmp_path / "own.yaml").write_text(EXTEND.block("yaml").text, encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "boat"}\n{"_id": "q2", "text": "bear"}\n')
    (tmp_path / "qrels.txt").write_text("q1 0 boat 1\nq2 0 bboat 0\nq2 0 bbear 1\n")
    return tmp_path


def test_the_types_of_the_guide_run_from_an_installed_package(installed: Path) -> None:
    """In a process of its own, as an installed package would: entry points are read once."""
    command = [sys.executable, "-m", "rankbeam", "evaluate", "own.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
    done = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = dict(re.findall(r"^(\S+) +(\d\.\d{4})", done.stdout, flags=re.MULTILINE))
    # `prefix` finds "bbear" for q2 alone; `shelf` finds "boat" first for both queries.
    assert values == {"prefix:prefix=a": "0.0000", "prefix:prefix=b": "0.5000", "shelf": "0.5000"}


def run(installed: Path, command: str, experiment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
    arguments = [sys.executable, "-m", "rankbeam", command, experiment]
    return subprocess.run(arguments, cwd=installed, env=environment, capture_output=True, text=True, check=False)


def test_the_model_of_the_guide_answers_from_documents_of_its_retriever(installed: Path) -> None:
    (installed / "corpus.jsonl").write_text('{"_id": "boat", "text": "a boat"}\n{"_id": "bbear", "text": "a bear"}\n')
    shutil.copy(installed / "site" / "echo.yaml", installed)
    done = run(installed, "evaluate", "echo.yaml")
    assert done.returncode == 0, done.stderr
    answers = pq.read_table(installed / "out-echo" / "answers").to_pylist()
    assert [(row["status"], len(row["answer"].split()), row["model_version"]) for row in answers] == [
        ("ok", 3, "echo-001")
    ] * 2


def test_what_the_guide_says_is_missing_is_refused_before_anything_runs(installed: Path) -> None:
    (installed / "site" / "mute.py").write_text(
        "from rankbeam import ModelParameters\nclass Mute(ModelParameters): ...\n"
    )
    text = (installed / "site" / "echo.yaml").read_text()
    (installed / "no-corpus.yaml").write_text(text.replace(", corpus: corpus.jsonl", ""))
    refused = run(installed, "validate", "no-corpus.yaml")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "corpus" in refused.stderr
    (installed / "corpus.jsonl").write_text('{"_id": "boat", "text": "a boat"}\n')
    (installed / "mute.yaml").write_text(text.replace("type: echo", "type: mute").replace(", words: 3", ""))
    refused = run(installed, "validate", "mute.yaml")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "model type 'mute': mute:Mute does not define connect()" in refused.stderr
