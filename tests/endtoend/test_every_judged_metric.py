"""Every judged metric, from the YAML to its table, against plain Python over the replies of a scripted model."""

import json
from pathlib import Path

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.judged_world import EXPECTED, METRICS_OF_ONE_ANSWER, World
from support.standin_answers import model
from support.standins import serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.definitions import JUDGED

OF_AGENTS = ("Trajectory", "Steps", "Retrievals", "Tokens", "InputTokens", "OutputTokens", "Cost", "Seconds")

QUERIES = 8


def world(number: int) -> World:
    cites = number != 3  # one answer cites nothing
    last_cited = 8 if number == 4 else 2  # one answer cites a context that does not exist
    first, last = (" [1]", f" [{last_cited + 1}]") if cites else ("", "")
    return World(
        query=f"what is {number}",
        answer=f"Thing {number} is round{first}. It weighs {number} kilos{last}. Nobody owns it.",
        contexts=tuple(f"Context {place} of {number} is here. It names {number * place} things." for place in range(3)),
        reference=f"Number {number} is round. Its weight is {number} kilos.",
        answerable=number % 3 > 0,
        nuggets=tuple((f"nugget {place} of {number}", place % 2 == 0 and number != 5) for place in range(4)),
        cited=frozenset((0, last_cited) if cites else ()),
    )


WORLDS = {f"q{number}": world(number) for number in range(QUERIES)}


def lines(rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)  # type: ignore[attr-defined]  # any iterable


def test_every_metric_has_the_value_of_its_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    worlds = WORLDS.items()
    references = [
        {"query_id": name, "answer": w.reference, "answerable": w.answerable,
         "nuggets": [{"text": text, "vital": vital} for text, vital in w.nuggets]} for name, w in worlds
    ]  # fmt: skip
    answers = [
        {"query_id": name, "answer": w.answer,
         "contexts": [{"doc_id": f"{name}-{place}", "text": text} for place, text in enumerate(w.contexts)]}
        for name, w in worlds
    ]  # fmt: skip
    dataset = {
        "queries": write(tmp_path / "queries.jsonl", lines({"_id": name, "text": w.query} for name, w in worlds)),
        "answers": {"path": write(tmp_path / "references.jsonl", lines(references))},
    }
    with serve("openai") as server:
        experiment = {
            "name": "every", "dataset": dataset, "services": {"m": model(server, "openai")},
            "quotas": {"m": {"requests_per_minute": 60_000}},
            "configurations": [
                {"name": "prod", "answers": {"type": "replay", "path": write(tmp_path / "a.jsonl", lines(answers))}}
            ],
            "judge": {"service": "m", "embeddings": "m", "repeat_share": 0},
            "metrics": METRICS_OF_ONE_ANSWER, "statistics": {"replicates": 0}, "output": {"path": "out"},
        }  # fmt: skip
        done = rankbeam(
            "evaluate", write(tmp_path / "e.yaml", yaml.safe_dump(experiment, sort_keys=False)), "--run-id", "r"
        )
    assert done.status == 0, done.stderr
    rows = Results(str(tmp_path / "out"), "r").table("query_metrics").to_pylist()
    values = {(value["metric"], row["query_id"]): value["value"] for row in rows for value in row["metrics"]}
    expected = {(metric, name): EXPECTED[metric](w) for metric in METRICS_OF_ONE_ANSWER for name, w in worlds}
    assert EXPECTED.keys() == {name for name, of in JUDGED.items() if not name.startswith(OF_AGENTS)}
    assert values == {
        place: None if value is None else pytest.approx(value, abs=1e-12) for place, value in expected.items()
    }
    assert {metric for (metric, _), value in expected.items() if value is not None} == set(METRICS_OF_ONE_ANSWER)
