"""A ledger that the first release wrote is read, merged with new parts, and continued: no paid answer is lost.

`tests/support/first_release_ledger` was written by commit 313c12e: `evaluate` of the experiment in it, with a
service behind an HTTP proxy that answered all three queries, one of them with no hit.
"""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from support.data import REPOSITORY
from support.json_server import responding
from support.runs import rankbeam

from rankbeam.transforms.clients.ledger.survey import survey

RELEASED = REPOSITORY / "tests" / "support" / "first_release_ledger"


NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The experiment of that time, with its ledger; its service is gone."""
    monkeypatch.setenv("HTTP_PROXY", NOWHERE)
    monkeypatch.setenv("NO_PROXY", "")
    return Path(shutil.copytree(RELEASED, tmp_path / "release"))


def used(folder: Path, run_id: str) -> tuple[int, int, int]:
    """Calls, ledger hits and failures of a run."""
    with duckdb.connect(str(folder / "out" / "results.duckdb"), read_only=True) as connection:
        [row] = connection.execute(
            "SELECT calls, ledger_hits, failures FROM runs WHERE run_id = ?", [run_id]
        ).fetchall()
    return row


def evaluate(folder: Path, run_id: str) -> tuple[int, int, int]:
    done = rankbeam("evaluate", folder / "experiment.yaml", "--run-id", run_id)
    assert done.exit_code == 0, done.stderr
    return used(folder, run_id)


def test_its_answers_are_used_and_the_ledger_is_continued(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluate(folder, "first") == (0, 3, 0)
    with (folder / "queries.jsonl").open("a") as queries, (folder / "qrels.txt").open("a") as qrels:
        queries.write(json.dumps({"_id": "q4", "text": "a new question"}) + "\n")
        qrels.write("q4 0 d7 1\n")
    with responding(lambda _: (200, b'{"hits": [{"id": "d7", "score": 1.0}]}')) as (url, questions):
        monkeypatch.setenv("HTTP_PROXY", url)
        assert evaluate(folder, "second") == (1, 3, 0)
    assert questions == ["a new question"]
    monkeypatch.setenv("HTTP_PROXY", NOWHERE)
    assert survey(str(folder / "ledger")).files == 2
    compacted = rankbeam("ledger", folder / "ledger", "--compact", "--format", "json")
    assert json.loads(compacted.stdout)["files_after"] == 1
    assert evaluate(folder, "third") == (0, 4, 0)
    summary = survey(str(folder / "ledger"))
    assert (summary.entries, summary.answers, summary.files, summary.damaged, summary.foreign) == (4, 4, 1, (), ())
