"""Services that are down, through the command line: what a run asks of them, says of them, and what it asks again."""

import re
from collections import Counter as Tally
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam_process
from support.remote import answers, dataset, failure_rows, http, write_experiment
from support.standins import Faults, Standin, serve

QUERIES = 150
MOST = 60

pytestmark = pytest.mark.campaign


def experiment(folder: Path, server: Standin, **more: Any) -> str:
    """An experiment that asks 150 queries, 50 a second, and gives a service up after five seconds."""
    quota = {"requests_per_minute": 3000, "give_up_after_s": 5, "timeout_s": 30}
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": quota}}
    base["configurations"] = [{"name": "remote", "retriever": http(server), "top_k": 20}]
    return write_experiment(folder, base | more)


@pytest.mark.parametrize("after", [0, 40])
def test_a_service_that_is_down_from_the_start_or_dies_costs_sixty_calls_and_is_asked_again_by_the_next_run(
    after: int, tmp_path: Path
) -> None:
    down = Faults(rate=1.0, kinds=("unavailable",), after=after, first=39)
    with serve("http", answers=answers(QUERIES), faults=down) as server:
        path = experiment(tmp_path, server)
        run = rankbeam_process("evaluate", path, "--run-id", "r1", timeout_s=240)
        first = server.stats()
        again = rankbeam_process("evaluate", path, "--run-id", "r2", timeout_s=240)
        both = server.stats()
    assert first.calls < after + 39 < after + MOST  # it was down until the run ended
    assert first.answered == after
    assert again.status == 0, again.stderr
    assert (both.answered, both.calls) == (QUERIES, QUERIES + 39)
    assert run.status == 3, run.stderr
    assert f"of {QUERIES} queries have failed for good, more than 5.0% (max_failure_rate)" in run.stderr
    rows = failure_rows(tmp_path / "out", "r1")
    assert len(rows) == QUERIES - after
    assert {row["kind"] for row in rows} == {"unavailable"}
    not_asked = [row for row in rows if row["attempts"] == 0]
    assert len(not_asked) >= QUERIES - after - MOST
    assert all(row["message"].startswith("not asked: ") for row in not_asked)
    assert re.search(
        r"\d+ attempts in a row failed, .* calls wait, and one at a time is tried for up to 5 s", run.stderr
    )


def test_a_service_that_recovers_answers_every_query(tmp_path: Path) -> None:
    down = Faults(rate=1.0, kinds=("unavailable",), after=40, first=21)
    with serve("http", answers=answers(QUERIES), faults=down) as server:
        run = rankbeam_process("evaluate", experiment(tmp_path, server), "--run-id", "r1", timeout_s=240)
        stats = server.stats()
    assert run.status == 0, run.stderr
    assert (stats.answered, stats.calls) == (QUERIES, QUERIES + 21)
    assert "the service answers again" in run.stderr


def test_a_quota_of_the_day_that_is_spent_ends_the_run_and_the_rest_is_asked_tomorrow(tmp_path: Path) -> None:
    spent = Faults(rate=1.0, kinds=("quota_hint",), after=40, hint_s=6 * 3600)
    with serve("http", answers=answers(QUERIES), faults=spent, latency_s=(0.0, 0.0)) as server:
        path = experiment(tmp_path, server)
        run = rankbeam_process("evaluate", path, "--run-id", "r1", timeout_s=240)
        assert server.stats().calls <= 40 + MOST
    assert run.status == 3, run.stderr
    rows = failure_rows(tmp_path / "out", "r1")
    assert {row["kind"] for row in rows} == {"quota"}
    assert Tally(row["attempts"] > 0 for row in rows)[False] >= QUERIES - 40 - MOST
