"""The examples with models run, against stand-ins that speak the protocols of their services."""

import re
import shutil
from collections.abc import Mapping, Sequence
from operator import mul
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.cli import Outcome, rankbeam
from support.data import REPOSITORY
from support.standins import serve

EXAMPLES = 3
"""Queries; the examples ask many more."""

Rows = Sequence[Mapping[str, Any]]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """The examples, with fewer queries."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    folder = tmp_path / "examples"
    for queries, qrels in (
        ("helpdesk/queries.jsonl", "helpdesk/qrels/test.tsv"),
        ("answers/queries.jsonl", "answers/qrels.tsv"),
    ):
        lines = (folder / queries).read_text(encoding="utf-8").splitlines(keepends=True)[:EXAMPLES]
        (folder / queries).write_text("".join(lines), encoding="utf-8")
        ids = {re.findall(r'"_id": "(\w+)"', line)[0] for line in lines}
        head, *rows = (folder / qrels).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / qrels).write_text(head + "".join(row for row in rows if row.split("\t")[0] in ids), encoding="utf-8")
    return folder


@pytest.mark.long
def test_gemini_answers_and_judges(examples: Path) -> None:
    with serve("gemini") as server:
        done = evaluated(
            examples / "gemini.yaml", ("location: us-central1", f"location: us-central1, api_endpoint: {server.url}")
        )
        stats = server.stats()
    assert done.status == 0, done.stderr
    answers = table(examples, "answers")
    assert {(row["status"], row["model"]) for row in answers} == {("ok", "gemini-2.5-flash")}
    assert len(answers) == 2 * EXAMPLES
    usage = {row["pool"]: row for row in table(examples, "usage")}
    assert set(usage) == {"writer", "examiner"}
    assert sum(row["calls"] for row in usage.values()) == stats.calls
    for pool, prices in {"writer": (0.30, 0.075, 2.50), "examiner": (1.25, 0.31, 10.00)}.items():
        row = usage[pool]
        tokens = (row["input_tokens"] - row["cached_tokens"], row["cached_tokens"], row["output_tokens"])
        assert row["cost"] == pytest.approx(sum(map(mul, tokens, prices)) / 1e6)
    assert_every_query_is_judged(examples)


@pytest.mark.campaign
def test_an_endpoint_of_ones_own_answers_judges_and_embeds(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "a-key-of-one's-own")
    with serve("openai") as server:
        places = [(f"http://localhost:{port}", server.url) for port in (8000, 8001, 8002)]
        done = evaluated(examples / "openai.yaml", *places)
        stats = server.stats()
    assert done.status == 0, done.stderr
    usage = {row["pool"]: row for row in table(examples, "usage")}
    assert set(usage) == {"small", "large", "vectors"}
    assert sum(row["calls"] for row in usage.values()) == stats.calls
    # No price is given: tokens are counted, and a cost is not known.
    assert all(row["input_tokens"] > 0 and row["cost"] is None for row in usage.values())
    assert all(row["input_tokens"] > 0 and row["cost"] is None for row in table(examples, "answers"))
    assert "cost" not in done.stdout
    assert_every_query_is_judged(examples)


@pytest.mark.campaign
def test_existing_answers_are_judged_by_a_model(examples: Path) -> None:
    with serve("openai") as server:
        model = f'{{type: openai, base_url: "{server.url}/v1", model: m-001}}'
        done = evaluated(examples / "answers" / "experiment.yaml", ("{type: lexical}", model))
    assert done.status == 0, done.stderr
    answers = table(examples / "answers", "answers")
    assert {(row["status"], row["service"], row["input_tokens"]) for row in answers} == {("ok", None, 0)}
    assert len(answers) == 2 * EXAMPLES
    assert [row["pool"] for row in table(examples / "answers", "usage")] == ["examiner"]
    assert_every_query_is_judged(examples / "answers")


@pytest.mark.long
def test_one_gold_serves_every_chunking(tmp_path: Path) -> None:
    path = REPOSITORY / "examples" / "helpdesk" / "chunking.yaml"
    done = rankbeam("evaluate", str(path), "--output", str(tmp_path / "out"))
    assert done.status == 0, done.stderr
    means = {
        (row["config_id"], row["metric"]): (row["queries"], row["mean"])
        for row in table(tmp_path, "configuration_metrics")
        if row["slice"] == "all"
    }
    assert len(means) == 6 * 3
    assert {queries for queries, _ in means.values()} == {64}
    assert all(0.1 < mean < 0.9 for _, mean in means.values())


def assert_every_query_is_judged(folder: Path) -> None:
    """Whatever stand-ins say by hash has a value, or none that exists; nothing has failed."""
    rows = table(folder, "query_metrics")
    assert len(rows) == 2 * EXAMPLES
    assert {metric["status"] for row in rows for metric in row["metrics"]} <= {None, "ok", "undefined"}
    assert all(row["metrics"] for row in rows)
    assert table(folder, "failures") == []
    assert table(folder, "verdicts")


def evaluated(path: Path, *places: tuple[str, str]) -> Outcome:
    """Run an example with some of its text replaced, and quotas that do not slow it down."""
    text = path.read_text(encoding="utf-8")
    for before, after in places:
        assert before in text
        text = text.replace(before, after)
    text = re.sub(r"requests_per_minute: \d+", "requests_per_minute: 6000", text)
    path.write_text(re.sub(r"path: out/?\w*\n", "path: out\n", text), encoding="utf-8")
    return rankbeam("evaluate", str(path))


def table(folder: Path, name: str) -> Rows:
    parts = sorted((folder / "out" / name).glob("**/*.parquet"))
    rows: Rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    return rows
