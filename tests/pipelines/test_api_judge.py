"""`rankbeam.judge`: answers in memory to judged metrics, with a plan and limits before any call."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pydantic import BaseModel
from support.campaigns import in_campaigns
from support.cli import rankbeam as command
from support.standin_answers import model
from support.standins import Standin, serve

import rankbeam
from rankbeam.pipelines.api.inputs import Inputs
from rankbeam.pipelines.api.judged import path_of

ROWS = [
    {
        "question": "When are invoices sent?",
        "answer": "On the first day.",
        "contexts": ["They are sent on the first day."],
    },
    {
        "question": "Is there a free plan?",
        "answer": "Yes, for ten users.",
        "contexts": ["The free plan has five users."],
    },
]
DAY = datetime.fromisoformat("2026-11-26")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai") as server:
        yield server


def service(server: Standin) -> dict[str, Any]:
    return model(server, "openai")


class Frame:
    """As DataFrames of pandas and polars hand out their columns."""

    def __init__(self, columns: pa.Table) -> None:
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)


def as_file(folder: Path) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


OF_OTHER_TYPES = [{**row, "contexts": np.array(row["contexts"]), "turn": np.int64(1), "sent": DAY} for row in ROWS]
ALIKE: list[Callable[[Path], Any]] = [
    lambda _: iter(ROWS),
    lambda _: Frame(pa.Table.from_pylist(ROWS)),
    as_file,
    lambda _: ROWS,
    lambda _: pa.Table.from_pylist(ROWS),
    lambda folder: str(as_file(folder)),
]


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The mean that the command prints."""
    folder = tmp_path_factory.mktemp("command")
    file, output = str(as_file(folder)), str(folder / "out")
    done = command("judge", file, "-m", "Faithfulness", "--service", "lexical", "--output", output)
    assert done.status == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("form", [lambda _: OF_OTHER_TYPES, *in_campaigns(*ALIKE)])
def test_rows_of_any_form_have_the_values_of_the_command(
    form: Callable[[Path], Any], by_command: str, tmp_path: Path
) -> None:
    result = rankbeam.judge(form(tmp_path), "Faithfulness", service="lexical", output=tmp_path / "out")
    assert sorted(result.per_query()["value"].to_pylist()) == [0.0, 1.0]
    assert "answers" in by_command
    assert "0.5" in by_command
    assert result.leaderboard()["configuration"].to_pylist() == ["answers"]
    assert result.warnings == []


class Sample(BaseModel):
    """As ragas and DeepEval have rows."""

    question: str
    answer: str
    contexts: list[str]


def test_columns_and_models_are_the_same_rows(tmp_path: Path) -> None:
    inputs = Inputs(str(tmp_path))
    rows = [{"question": "a", "answer": "b", "contexts": ["c", "d"]}, {"question": "e", "answer": "f", "contexts": []}]
    for same in ({key: [row[key] for row in rows] for key in rows[0]}, map(Sample.model_validate, rows)):
        assert path_of(same, inputs) == path_of(rows, inputs)
    ids = [{**row, "example_id": UUID(int=7)} for row in rows]  # as LangSmith's DataFrames and examples have them
    assert path_of(ids, inputs) == path_of([{**row, "example_id": str(UUID(int=7))} for row in ids], inputs)
    for form in (iter(ROWS), Frame(pa.Table.from_pylist(ROWS)), pa.Table.from_pylist(ROWS)):
        assert path_of(form, inputs) == path_of(ROWS, inputs)
    with pytest.raises(rankbeam.InputError, match="rows are dict"):
        path_of({"question": ["a", "b"], "answer": ["c"]}, inputs)


@pytest.mark.long
def test_a_plan_is_shown_a_budget_that_suffices_is_kept_and_rows_are_judged_once(
    server: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stated: dict[str, Any] = {"service": service(server), "output": tmp_path, "requests_per_minute": 6e4}
    limits: dict[str, Any] = {"prices": {"input": 1.0, "output": 2.0}, "max_cost": 1.0, "max_calls": 50}
    first = rankbeam.judge(ROWS, ["Faithfulness"], **stated, **limits)
    shown, calls = capsys.readouterr(), server.stats().calls
    assert first.state == "done"
    costs = [row["cost"] for row in first.results.table("usage").to_pylist()]
    assert 0 < sum(filter(None, costs)) < 1.0
    assert calls > 0
    assert "calls to make" in shown.err
    assert shown.out == ""
    second = rankbeam.judge(ROWS, ["Faithfulness"], **stated)
    assert server.stats().calls == calls
    assert second.per_query()["value"].to_pylist() == first.per_query()["value"].to_pylist()


LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"max_calls": 1}, "max_calls is 1, and up to "),
    ({"service": "lexical", "max_calls": 1}, "max_calls is 1, and up to "),
    ({"max_tokens": 10}, "max_tokens is 10, and up to "),
    ({"prices": {"input": 1.0, "output": 2.0}, "max_cost": 1e-9}, "max_cost: is 1e-09, and the calls are planned"),
    ({"max_cost": 1.0}, "max_cost needs prices="),
    ({"prices": {"input": 1.0}}, "quotas.judge.price_per_million.output: is missing"),
    ({"confirm": True}, "confirm=True needs a terminal"),
    ({"prices": 5}, "quotas.judge.price_per_million: must be a mapping"),
    ({"criteria": 5}, "5 is not text; give a path as str or Path"),
    ({"service": 7}, "a service is int; name a PROVIDER:MODEL or 'lexical', or give a dict"),
    ({"service": "opnai:m"}, "no provider is called 'opnai'; did you mean 'openai'?"),
    (
        {"service": "http://localhost/v1"},
        'an address needs a model, too: {type: openai, base_url: "http://localhost/v1"',
    ),
    ({"metrics": ["AnswerSimilarity"]}, "name the model that makes them: embeddings='openai:MODEL'"),
    ({"service": None}, "name the model that judges: service='openai:MODEL', or service='lexical'"),
    ({"metrics": ["Faithfulnes"]}, "did you mean 'Faithfulness'?"),
    ({"columns": {"answr": "a"}}, "columns: "),
    ({"rows": []}, "rows: none given"),
    ({"rows": ["text"]}, "rows: row 1 is str"),
    ({"rows": 3}, "rows are int"),
    ({"rows": [{"question": "q", "answer": {1, 2}}]}, "rows: row 1 cannot be written as JSON: 'answer': {1, 2} is set"),
    ({"rows": [{"question": "q", "answer": "\ud83d"}]}, "rows: row 1: the value of 'answer' holds half a character"),
    ({"metrics": ["ClaimF1"]}, "no row has one under a known key; name it: --column reference=KEY"),
    ({"rows": [{"q": "q"}]}, "rows:1: no key of these rows is known as the question"),
]


@pytest.mark.parametrize(("arguments", "problem"), LIMITS)
def test_what_is_above_a_limit_or_wrong_is_refused_before_any_call(
    arguments: dict[str, Any], problem: str, server: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    stated = {"rows": ROWS, "metrics": ["Faithfulness"], "service": service(server), "output": tmp_path, **arguments}
    with pytest.raises(rankbeam.InputError) as refused:
        rankbeam.judge(stated.pop("rows"), stated.pop("metrics"), **stated)
    assert problem in str(refused.value)
    assert server.stats().calls == 0


def test_a_file_that_another_thread_may_read_is_not_written_again(tmp_path: Path) -> None:
    path = Path(path_of(ROWS, Inputs(str(tmp_path))))
    content, (moment, number) = path.read_bytes(), (path.stat().st_mtime_ns, path.stat().st_ino)
    assert path_of(ROWS, Inputs(str(tmp_path))) == str(path)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (moment, number)
    path.write_bytes(content[: len(content) // 2])  # as after a crash
    path_of(ROWS, Inputs(str(tmp_path)))
    assert path.read_bytes() == content


@pytest.mark.long
def test_metrics_that_compare_texts_need_no_judge(tmp_path: Path) -> None:
    rows = [{"question": "Who pays?", "answer": "The owner.", "reference": "The owner pays."}]
    result = rankbeam.judge(rows, ["TokenF1"], output=tmp_path / "out")
    assert result.leaderboard()["TokenF1"].to_pylist() == [pytest.approx(2 / 3)]
    written = tmp_path / "rows.jsonl"
    written.write_text(json.dumps(rows[0]) + "\n")
    done = command("judge", str(written), "-m", "TokenF1", "--output", str(tmp_path / "command"))
    assert (done.status, "0.6667" in done.stdout) == (0, True), done.stderr
    for options in ({}, {"criteria": {"Tone": {"question": "Is it polite?"}}}, {"prices": {"input": 1.0}}):
        with pytest.raises(rankbeam.InputError, match="name the judge: service='openai:MODEL'"):
            rankbeam.judge(rows, ["TokenF1"] if options else (), output=tmp_path / "none", **options)
