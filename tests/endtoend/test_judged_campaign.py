"""The fault campaign of models: a service that fails one call in ten in every way it can, and a run that is killed.

RANKBEAM_CAMPAIGN_ANSWERS=2000 is the full size. Its quota of tokens binds for RANKBEAM_CAMPAIGN_MINUTES:

    RANKBEAM_CAMPAIGN_ANSWERS=2000 RANKBEAM_CAMPAIGN_MINUTES=12 \\
        python -m pytest -m campaign tests/endtoend/test_judged_campaign.py

`tests/clients/calls/test_token_quota.py` has a quota that binds in virtual time.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import Outcome, rankbeam
from support.remote import signalled
from support.standin_models import KEY, dataset, rows, run_file, service, write_experiment
from support.standins import Faults, Stats, serve

from rankbeam.pipelines.results.run import Results

pytestmark = pytest.mark.campaign

ANSWERS = int(os.environ.get("RANKBEAM_CAMPAIGN_ANSWERS", "60"))
MINUTES = float(os.environ.get("RANKBEAM_CAMPAIGN_MINUTES", "0.2"))
CONTEXTS, DOCUMENTS = 2, 50
METRICS = ["Faithfulness", "AnswerRelevance", "ContextRecall", "ClaimRecall", "CitationPrecision"]
TOKENS_AN_ANSWER = 4_200  # of an answer and its judgements, faults included
LATENCY_S = (0.05, 0.1)  # tokens are counted when they are answered: what this varies by, a minute may be too long by

PASSING = (
    "quota_info", "quota_hint", "unavailable", "internal", "timeout", "request_timeout", "reset", "hang", "malformed",
    "partial", "bad_gateway", "empty_body", "no_candidates", "empty", "prose", "broken_json", "wrong_enum",
    "missing_item",
)  # fmt: skip
FINAL = {"gemini": ("safety", "truncated", "blocked_prompt", "recitation"), "openai": ("safety", "truncated")}
FINAL_KINDS = {"blocked", "truncated"}
MISBEHAVING = ("prose", "broken_json", "wrong_enum", "wrong_type", "missing_item", "empty", "no_candidates")
FEW, IN_FLIGHT = 25, 16
LOST = 5 * IN_FLIGHT  # calls in flight at the kill, and answers that were not written yet
_LONGEST_S = 3600.0
TABLES = {
    "query_metrics": (),
    "verdicts": (),
    "claims": ("quote_start", "quote_end"),  # a broken quote costs no repair, and the claim has no place
    "texts": (),
    "answers": ("input_tokens", "cached_tokens", "output_tokens", "cost"),
    "failures": ("attempts",),
}
"""By table that must be that of a clean run, the columns that tell how often was asked."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")


def experiment(
    folder: Path,
    name: str,
    service: Mapping[str, str],
    answers: int = ANSWERS,
    most_failures: float = 1.0,
    **quota: Any,
) -> str:
    """An experiment that answers and judges under a quota; its output is a folder of its name."""
    quota = {"requests_per_minute": 60_000, "timeout_s": 5, "attempts": 9, "concurrent_calls": IN_FLIGHT, **quota}
    rankings = [[n % DOCUMENTS, (n * 7 + 3) % DOCUMENTS] for n in range(answers)]
    base = {
        "dataset": dataset(folder, answers, DOCUMENTS),
        "services": {"model": service},
        "configurations": [
            {
                "name": "rag",
                "retriever": run_file(folder, "rag", rankings),
                "top_k": CONTEXTS,
                "generate": {"service": "model", "contexts": CONTEXTS},
            }
        ],
        "metrics": METRICS,
        "quotas": {service["type"]: quota},
        "max_failure_rate": most_failures,
        "output": {"path": name},
    }
    return write_experiment(folder, base, name)


def until_nothing_passes(path: str) -> tuple[Outcome, Results]:
    """Evaluate, again as long as something failed that another run may mend: three bad answers in a row."""
    for number in range(4):
        outcome = rankbeam("evaluate", path, "--run-id", f"r{number}")
        assert outcome.status == 0, outcome.stderr
        results = Results(path.removesuffix(".yaml"), f"r{number}")
        if set(results.table("failures")["kind"].to_pylist()) <= FINAL_KINDS:
            break
    return outcome, results


def tokens_of_minutes(stats: Stats) -> Iterator[float]:
    """The tokens of every minute that begins with an answer."""
    tokens = np.array(sorted(stats.tokens))
    total = np.concatenate([[0.0], np.cumsum(tokens[:, 1])])
    ends = np.searchsorted(tokens[:, 0], tokens[:, 0] + 60)
    yield from (total[ends] - total[:-1]).tolist()


@pytest.mark.parametrize("kind", ["gemini", "openai"])
def test_every_verdict_and_value_is_that_of_a_run_without_faults(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    per_minute = int(ANSWERS * TOKENS_AN_ANSWER / MINUTES)
    final = Faults(contents=0.05, content_kinds=FINAL[kind], seed=21)
    with serve(kind, faults=final) as server:
        port = int(server.address.rpartition(":")[2])
        _, clean = until_nothing_passes(experiment(tmp_path, "clean", service(kind, server)))
        needed = server.stats()
    assert needed.faults.keys() == set(FINAL[kind])
    every = replace(final, rate=0.1, kinds=PASSING, hang_s=60)
    with serve(kind, faults=every, latency_s=LATENCY_S, port=port) as server:
        path = experiment(tmp_path, "faulty", service(kind, server), tokens_per_minute=per_minute)
        is_half_done = lambda: server.stats().calls >= 0.4 * needed.calls  # noqa: E731
        evaluate = ["evaluate", path, "--run-id", "r"]
        killed = signalled(evaluate, signal.SIGKILL, is_half_done, tmp_path, every_s=0.5, within_s=_LONGEST_S)
        _, faulty = until_nothing_passes(path)
        stats = server.stats()
    assert killed.status == -signal.SIGKILL
    for table, without in TABLES.items():
        assert rows(faulty, table, without) == rows(clean, table, without), table
    assert len(rows(faulty, "answers")) == ANSWERS
    assert set(stats.faults) == {*PASSING, *FINAL[kind]}
    busiest = max(tokens_of_minutes(stats)) / per_minute
    with capsys.disabled():
        sys.stdout.write(f"{kind}: {stats.calls:,} calls of {needed.calls:,} needed, ")
        sys.stdout.write(f"busiest minute {busiest:.1%} of {per_minute:,} tokens\n")
    assert stats.calls <= 1.15 * needed.calls + LOST, stats.faults
    assert busiest <= 1.005


def values(results: Results) -> dict[tuple[str, str], tuple[str, float | None]]:
    """Status and value by query and metric."""
    return {
        (row["query_id"], value["metric"]): (value["status"], value["value"])
        for row in results.table("query_metrics").to_pylist()
        for value in row["metrics"]
    }


@pytest.mark.parametrize("kind", ["gemini", "openai"])
def test_a_judge_that_misbehaves_takes_values_away_and_changes_none(kind: str, tmp_path: Path) -> None:
    with serve(kind) as server:
        port = int(server.address.rpartition(":")[2])
        _, clean = until_nothing_passes(experiment(tmp_path, "clean", service(kind, server), answers=FEW))
    with serve(kind, faults=Faults(contents=0.1, content_kinds=MISBEHAVING), port=port) as server:
        path = experiment(tmp_path, "faulty", service(kind, server), answers=FEW)
        outcome = rankbeam("evaluate", path, "--run-id", "r")
        stats = server.stats()
    assert outcome.status == 0, outcome.stderr
    assert set(stats.faults) == set(MISBEHAVING)
    expected, actual = values(clean), values(Results(str(tmp_path / "faulty"), "r"))
    assert actual.keys() == expected.keys()
    lost = {place for place, value in actual.items() if value != expected[place]}
    assert {actual[place] for place in lost} == {("failed", None)}
    failures = Results(str(tmp_path / "faulty"), "r").table("failures").to_pylist()
    assert {(row["query_id"], row["metric"]) for row in failures if row["metric"]} == lost
    assert f"{len(lost):,} judged values are missing (malformed)" in outcome.stderr


@pytest.mark.parametrize("kind", ["gemini", "openai"])
def test_a_run_that_spent_the_quota_of_the_day_goes_on_the_next_day(kind: str, tmp_path: Path) -> None:
    with serve(kind) as server:
        port = int(server.address.rpartition(":")[2])
        _, clean = until_nothing_passes(experiment(tmp_path, "clean", service(kind, server), FEW))
        needed = server.stats()
        path = experiment(tmp_path, "faulty", service(kind, server), FEW, 0.1)
    spent = Faults(after=needed.calls // 2, first=10**9, kinds=("quota_day",))
    with serve(kind, faults=spent, port=port) as server:
        stopped = rankbeam("evaluate", path, "--run-id", "today")
        today = server.stats()
    assert stopped.status == 3, stopped.stderr
    assert 0 < today.faults["quota_day"] <= IN_FLIGHT
    failures = Results(str(tmp_path / "faulty"), "today").table("failures")
    assert set(failures["kind"].to_pylist()) == {"quota"}
    with serve(kind, port=port) as server:
        resumed = rankbeam("evaluate", path, "--run-id", "tomorrow")
        tomorrow = server.stats()
    assert resumed.status == 0, resumed.stderr
    faulty = Results(str(tmp_path / "faulty"), "tomorrow")
    for table, without in TABLES.items():
        assert rows(faulty, table, without) == rows(clean, table, without), table
    assert today.answered + tomorrow.calls == needed.calls
