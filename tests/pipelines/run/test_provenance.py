"""The commit of a run, which git reads without changing the user's repository."""

import os
import subprocess
from pathlib import Path

import pytest

from rankbeam.pipelines.run import provenance


def git(*words: str) -> str:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    return subprocess.run(["git", *who, *words], capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_is_read_without_a_write_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    (tmp_path / "file").write_text("a")
    git("add", "file")
    assert provenance.provenance({}).get("commit") is None
    git("commit", "--quiet", "--message", "first")
    (tmp_path / "untracked").write_text("b")
    os.utime("file", (0, 0))  # git would store the new time
    before = Path(".git", "index").read_bytes()
    assert provenance.provenance({})["commit"] == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("changed")
    assert provenance.provenance({})["commit"] == git("rev-parse", "HEAD") + "-dirty"
    assert Path(".git", "index").read_bytes() == before
