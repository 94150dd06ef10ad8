"""An application that fails one call in ten in every way it can, and a run that is killed twice."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.campaigns import sized
from support.cli import rankbeam, rankbeam_process
from support.remote import answers, dataset, signalled, write_experiment
from support.runs import query_values
from support.standins import DEFAULT_KINDS, Faults, Standin, serve

from rankbeam.pipelines.results.run import Results

pytestmark = pytest.mark.campaign

CALLS, IN_FLIGHT = sized(600, 240), 16
TABLES = {
    "answers": ["query_id", "status", "answer", "reference", "contexts", "citations", "seconds"],
    "rankings": ["query_id", "documents"],
    "verdicts": ["query_id", "step", "verdict", "right_hash", "position", "sample"],
}


def experiment(folder: Path, server: Standin) -> str:
    application = {
        "type": "http", "url": f"{server.url}/search", "version": "1", "answer": "hits.hits[0]._source.text",
        "results": "hits.hits[:5]", "id": "_id", "text": "_source.text",
    }  # fmt: skip
    quota = {"requests_per_minute": 6000, "concurrent_calls": IN_FLIGHT, "timeout_s": 3, "attempts": 8}
    value: dict[str, Any] = {
        "dataset": dataset(folder, CALLS), "quotas": {"http": quota}, "max_failure_rate": 0.0,
        "services": {"overlap": {"type": "lexical"}}, "judge": {"service": "overlap", "repeat_share": 0},
        "configurations": [{"name": "app", "answers": application}], "metrics": ["nDCG@5", "Faithfulness"],
        "statistics": {"replicates": 0},
    }  # fmt: skip
    return write_experiment(folder, value)


def rows(results: Results, table: str, *without: str) -> list[str]:
    names = [name for name in TABLES[table] if name not in without]
    table_rows: pa.Table = results.table(table, names)
    return sorted(repr(row) for row in table_rows.to_pylist())


def stored(folder: Path) -> tuple[int, int]:
    """The number of answers in the ledger, and of the calls that a killed run had in flight."""
    survey = json.loads(rankbeam("ledger", str(folder / "out"), "--format", "json").stdout)
    return int(survey["answers"]), int(survey["lost"])


def test_two_kills_and_faults_change_no_table_and_repeat_only_calls_in_flight(tmp_path: Path) -> None:
    replies = answers(CALLS)
    with serve("http", answers=replies) as server:
        assert rankbeam_process("evaluate", experiment(tmp_path / "clean", server), "--run-id", "r1").status == 0
    faults = Faults(rate=0.1, kinds=DEFAULT_KINDS, seed=7, hang_s=60, hint_s=1.0)
    with serve("http", answers=replies, faults=faults, latency_s=(0.05, 0.3)) as server:
        path = experiment(tmp_path / "faulty", server)
        arguments, lost = ["evaluate", path, "--run-id", "r1"], list[int]()
        for share in (0.25, 0.6):
            reached = lambda share=share: server.stats().answered >= CALLS * share  # noqa: E731
            assert signalled(arguments, signal.SIGKILL, reached, tmp_path).status == -signal.SIGKILL
            time.sleep(1.0)  # what is in flight is answered, to nobody
            answers_stored, in_flight = stored(tmp_path / "faulty")
            lost.append(server.stats().answered - answers_stored)
            assert 0 < in_flight <= IN_FLIGHT
        done = rankbeam_process(*arguments, timeout_s=240)
        stats = server.stats()
        again = rankbeam_process("evaluate", path, "--run-id", "r2", timeout_s=240)
        assert server.stats().calls == stats.calls  # nothing is asked again
    assert (done.status, again.status) == (0, 0), done.stderr
    clean, faulty, second = (
        Results(str(tmp_path / name / "out"), run)
        for name, run in (("clean", "r1"), ("faulty", "r1"), ("faulty", "r2"))
    )
    assert query_values(faulty) == query_values(clean)
    for table in TABLES:
        assert rows(faulty, table, "seconds") == rows(clean, table, "seconds")
        assert rows(second, table) == rows(faulty, table)  # durations, too
    assert len(rows(faulty, "answers")) == CALLS
    first, both = lost
    assert 0 <= first <= IN_FLIGHT
    assert 0 <= both - first <= IN_FLIGHT
    assert stats.answered == CALLS + both  # nothing that the ledger holds is asked again
    assert sum(stats.faults.values()) > CALLS // 20
