"""`judge: {prompts: v1 | v2, examples: FOLDER}`: what is asked anew, what is paid once, and how runs are marked."""

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write
from support.runs import evaluated
from support.standin_answers import model, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

EXAMPLE = {"query": "Who?", "context": "Ada did.", "reply": {"reason": "r", "intent": 3, "trust": 3, "grade": 3}}

QUERIES = 4
EVERY = range(QUERIES)
EXAMPLES = files("rankbeam.transforms.judge.steps") / "examples"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai") as server:
        yield server


def calls_of(folder: Path, server: Standin, run_id: str, **judge: Any) -> int:
    before = server.stats().calls
    path = write_experiment(
        folder, model(server, "openai"), {}, judge={"service": "m", **judge},
        metrics=["ContextRelevance@2", "Faithfulness"], queries=QUERIES,
    )  # fmt: skip
    assert evaluated(path, run_id=run_id).run["state"] == "done"
    return server.stats().calls - before


@pytest.mark.campaign
def test_each_version_is_paid_once_and_runs_of_different_ones_are_marked(tmp_path: Path, server: Standin) -> None:
    write(tmp_path / "examples" / "grade.jsonl", json.dumps(EXAMPLE) + "\n")
    assert calls_of(tmp_path, server, "r1", prompts="v1") > 0
    assert calls_of(tmp_path, server, "r3") > 0
    assert calls_of(tmp_path, server, "r4", prompts="v2") == calls_of(tmp_path, server, "r5", prompts="v1") == 0
    graded = calls_of(tmp_path, server, "r6", examples="examples")
    steps = {row["step"]: row["prompt_hash"] for row in quality(tmp_path, "r4")}
    with_examples = {row["step"]: row["prompt_hash"] for row in quality(tmp_path, "r6")}
    assert {step for step in steps if steps[step] != with_examples[step]} == {"grade"}
    assert graded > 0
    out = str(tmp_path / "out")
    versions = rankbeam("compare", out, "--run-id", "r3", "--baseline-run-id", "r1")
    alike = rankbeam("compare", out, "--run-id", "r4", "--baseline-run-id", "r3")
    examples = rankbeam("compare", out, "--run-id", "r6", "--baseline-run-id", "r4")
    assert "ContextRelevance@2, Faithfulness are not quite comparable with run r1" in versions.stderr
    assert "comparable" not in alike.stderr
    assert "ContextRelevance@2 is not quite comparable with run r4" in examples.stderr


def answers_of(folder: Path, sentences: int) -> dict[str, Any]:
    """A configuration whose answers exist; the first is long."""
    rows = [
        {"query_id": f"q{number}", "contexts": [{"doc_id": "d1", "text": f"All of {number}."}],
         "answer": " ".join(f"Fact {fact} of {number} holds." for fact in range(1 if number else sentences))}
        for number in range(QUERIES)
    ]  # fmt: skip
    path = write(folder / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    return {"configurations": [{"name": "app", "answers": {"type": "replay", "path": path}}]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "then", "counts"),
    [
        # claims and support of the long answer: one call of each step under version 1, else three
        ({"prompts": "v1"}, {}, {"the prompts are no longer those of v1": (2 * QUERIES, EVERY)}),
        *in_campaigns(({}, {"prompts": "v1"}, {"the prompts are no longer those of v2": (2 * QUERIES + 4, EVERY)})),
        # the claims are in the ledger, and their support is asked with another example
        *in_campaigns(
            ({}, {"examples": "examples"}, {"the judge is shown examples of your own": (QUERIES + 2, EVERY)})
        ),
        *in_campaigns(
            (
                {"prompts": "v1"},
                {"prompts": "v1", "max_context_tokens": 300},
                {"long texts are split differently": (2, range(1))},
            ),
            ({}, {"prompts": "v2", "repeat_share": 1}, {}),
        ),
    ],
)
def test_what_is_bought_again_for_other_prompts_or_parts_is_counted_before_it_is_paid(
    tmp_path: Path, server: Standin, first: dict[str, Any], then: dict[str, Any], counts: dict[str, Any]
) -> None:
    write(tmp_path / "examples" / "support.jsonl", (EXAMPLES / "support.jsonl").read_text().splitlines()[0])
    more = {"metrics": ["Faithfulness"], "queries": QUERIES, **answers_of(tmp_path, 130)}
    write_experiment(tmp_path, model(server, "openai"), {}, judge={"service": "m", "repeat_share": 0, **first}, **more)
    path = str(tmp_path / "experiment.yaml")
    assert json.loads(rankbeam("plan", path, "--format", "json").stdout)["again"] == []
    assert "again" not in rankbeam("evaluate", path, "--run-id", "r1").stderr
    if not then:
        more["name"] = "renamed"  # another experiment in the folder, with the same ledger
    write_experiment(tmp_path, model(server, "openai"), {}, judge={"service": "m", "repeat_share": 0, **then}, **more)
    plan = json.loads(rankbeam("plan", path, "--format", "json").stdout)
    verdicts = Results(str(tmp_path / "out"), "r1").table("verdicts").to_pylist()
    of_query = Counter(row["query_id"] for row in verdicts if row["step"] == "support")
    expected = {
        reason: (calls, sum(of_query[f"q{number}"] for number in numbers))
        for reason, (calls, numbers) in counts.items()
    }
    assert {row["reason"]: (row["calls"], row["verdicts"]) for row in plan["again"]} == expected
    before = server.stats().calls
    done = rankbeam("evaluate", path, "--run-id", "r2")
    assert done.status == 0, done.stderr
    assert ("are in the ledger but paid for again, only because" in done.stderr) == bool(counts)
    assert (server.stats().calls > before) == (first != then)
    assert json.loads(rankbeam("plan", path, "--format", "json").stdout)["again"] == []


@pytest.mark.long
def test_another_version_of_the_model_is_marked(tmp_path: Path, server: Standin) -> None:
    for run_id in ("r1", "r2"):
        calls_of(tmp_path, server, run_id)
    files = (tmp_path / "out").rglob("*.parquet")
    (path,) = (path for path in files if "judge_quality" in str(path) and "r2" in path.relative_to(tmp_path).as_posix())
    table = pq.read_table(path)
    place = table.schema.get_field_index("model_version")
    versions = [
        f"{version}-new" if step == "grade" else version
        for step, version in zip(table["step"].to_pylist(), table["model_version"].to_pylist(), strict=True)
    ]
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(versions, pa.string())), path)
    compared = rankbeam("compare", str(tmp_path / "out"), "--run-id", "r2", "--baseline-run-id", "r1")
    assert "ContextRelevance@2 is not quite comparable with run r1" in compared.stderr
    assert "the versions of the judge's model differ" in compared.stderr
    assert "Faithfulness" not in compared.stderr


def quality(folder: Path, run_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Results(str(folder / "out"), run_id).table("judge_quality").to_pylist()
    return rows


@pytest.mark.parametrize(
    ("judge", "problem"),
    [
        (
            {"prompts": "v3"},
            "holds no template; name them after steps, such as support.txt, or write a version: v1",
        ),
        ({"examples": "nowhere"}, "holds no examples"),
    ],
)
def test_what_is_neither_a_version_nor_a_folder_is_refused(
    tmp_path: Path, server: Standin, judge: dict[str, Any], problem: str
) -> None:
    path = write_experiment(
        tmp_path, model(server, "openai"), {}, judge={"service": "m", **judge}, metrics=["Faithfulness"]
    )
    done = rankbeam("validate", path)
    assert done.status == 2
    assert problem in done.stderr
    assert f"judge.{next(iter(judge))}" in done.stderr
