"""A model that answers nothing: the run says so, in its tables, its last line and its exit status."""

from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.standin_answers import QUERIES, model, write_experiment
from support.standins import Faults, serve

from rankbeam.pipelines.results.run import Results

QUOTA = {"attempts": 1, "give_up_after_s": 0.5}
ONLY_RANKINGS = {"metrics": ["nDCG@5"], "judge": None}


def _evaluate(folder: Path, faults: Faults, **more: Any) -> tuple[Any, Results]:
    with serve("openai", faults=faults) as server:
        experiment = {key: value for key, value in (ONLY_RANKINGS | more).items() if value is not None}
        path = write_experiment(folder, model(server, "openai"), QUOTA, **experiment)
        text = Path(path).read_text(encoding="utf-8")
        if "judge" not in experiment:
            Path(path).write_text("\n".join(line for line in _without_judge(text)), encoding="utf-8")
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
    return outcome, Results(str(folder / "out"), "r1")


def _without_judge(text: str) -> list[str]:
    lines = text.splitlines()
    start = lines.index("judge:")
    end = next(place for place in range(start + 1, len(lines)) if not lines[place].startswith(" "))
    return lines[:start] + lines[end:]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.mark.long
def test_a_dead_answering_model_misses_the_limit_where_only_rankings_are_scored(tmp_path: Path) -> None:
    outcome, results = _evaluate(tmp_path, Faults(rate=1.0, kinds=("internal",)))
    assert outcome.status == 3, outcome.stderr
    last = outcome.stderr.splitlines()[-1]
    assert "more than 5.0% of the answers failed (max_failure_rate): rag (100.0%)" in last
    assert f"{QUERIES} queries have no answer (unavailable): " in last
    rows = results.table("failures").to_pylist()
    assert {(row["query_id"], row["metric"], row["kind"]) for row in rows} == {
        (f"q{number}", None, "unavailable") for number in range(QUERIES)
    }
    assert results.run["state"] == "missed"


@pytest.mark.campaign
def test_a_share_of_failed_answers_below_the_limit_is_no_miss(tmp_path: Path) -> None:
    faults = Faults(first=4, kinds=("internal",))
    outcome, results = _evaluate(tmp_path, faults, max_failure_rate=0.5)
    assert outcome.status == 0, outcome.stderr
    assert len(results.table("failures")) == 4
    assert "4 queries have no answer (unavailable)" in outcome.stderr


@pytest.mark.campaign
def test_blocked_answers_count_as_well(tmp_path: Path) -> None:
    outcome, results = _evaluate(tmp_path, Faults(rate=1.0, kinds=("content_filter",)))
    assert outcome.status == 3, outcome.stderr
    assert {row["kind"] for row in results.table("failures").to_pylist()} == {"blocked"}


@pytest.mark.long
def test_a_judged_run_has_no_row_twice(tmp_path: Path) -> None:
    judge = {"service": "m", "repeat_share": 0}
    faults = Faults(rate=1.0, kinds=("internal",))
    outcome, results = _evaluate(tmp_path, faults, judge=judge, metrics=["nDCG@5", "Faithfulness"])
    assert outcome.status == 3
    assert [row["metric"] for row in results.table("failures").to_pylist()] == ["Faithfulness"] * QUERIES
    assert "12 judged values are missing (unavailable): " in outcome.stderr.splitlines()[-1]


@pytest.mark.campaign
def test_truncated_answers_have_their_tokens(tmp_path: Path) -> None:
    _, results = _evaluate(tmp_path, Faults(rate=1.0, kinds=("truncated",)))
    rows = results.table("answers").to_pylist()
    assert {row["status"] for row in rows} == {"truncated"}
    assert all(row["output_tokens"] > 0 for row in rows)
    used = sum(row["output_tokens"] for row in results.table("usage").to_pylist())
    assert sum(row["output_tokens"] for row in rows) == used
