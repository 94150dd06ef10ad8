"""A judge whose errors are one-sided: its own interval misses the truth, that of 60 labels and judge together holds it.

The judge calls a quarter of the unsupported claims supported. The truth is known: a claim is supported where the
context contains it, and people decide by that.
"""

import json
import random
from pathlib import Path

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.labelled import decided, tasks
from support.standin_answers import model, planned, write_experiment
from support.standins import serve
from support.standins.models import LENIENT

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.slices import ALL

QUERIES, LABELS = 300, 60
JUDGED, TOGETHER = "Faithfulness", "Faithfulness(labels=True)"


def cases() -> tuple[list[dict[str, object]], float]:
    """Answers of two to five claims with their contexts, and the mean share of claims that a context contains."""
    drawn, rows, shares = random.Random(26), [], []
    for number in range(QUERIES):
        claims = [f"Fact {number} {place} holds." for place in range(drawn.randint(2, 5))]
        supported = [drawn.random() < 0.6 for _ in claims]
        context = " ".join(claim for claim, is_said in zip(claims, supported, strict=True) if is_said)
        contexts = [{"doc_id": f"d{number}", "text": f"Context {number}. {context}"}]
        rows.append({"query_id": f"q{number}", "answer": " ".join(claims), "contexts": contexts})
        shares.append(sum(supported) / len(claims))
    return rows, sum(shares) / QUERIES


@pytest.mark.campaign
def test_labels_mend_a_judge_whose_errors_are_one_sided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    rows, truth = cases()
    answers = write(tmp_path / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    queries = [{"_id": row["query_id"], "text": f"What of {row['query_id']}?"} for row in rows]
    out = tmp_path / "out"
    with serve("openai") as server:
        service = model(server, "openai", model=LENIENT)
        path = write_experiment(
            tmp_path, service, {}, metrics=[JUDGED], judge={"service": "m", "repeat_share": 0},
            configurations=[{"name": "app", "answers": {"type": "replay", "path": answers}}],
        )  # fmt: skip
        stated = yaml.safe_load(Path(path).read_text("utf-8"))
        stated["dataset"] = {"queries": write(tmp_path / "all.jsonl", "".join(f"{json.dumps(q)}\n" for q in queries))}
        write(Path(path), yaml.safe_dump(stated))
        forecast = planned(path)["calls"]
        first = rankbeam("evaluate", path, "--run-id", "judged")
        assert first.status == 0, first.stderr
        calls = server.stats().calls
        assert rankbeam("label", str(out), "--sample", str(LABELS), "--metric", JUDGED).status == 0
        labels = decided(
            tmp_path / "labels.jsonl",
            tasks(out),
            lambda task: ("not_stated", "supported")[task["claim"] in task["text"]],
        )
        assert rankbeam("label", str(out), "--apply", labels).status == 0
        stated["judge"]["labels"] = str(out / "labels")
        write(Path(path), yaml.safe_dump(stated | {"metrics": [JUDGED, TOGETHER]}))
        second = rankbeam("evaluate", path, "--run-id", "together")
        assert second.status == 0, second.stderr
        assert server.stats().calls == calls  # labels pay for no verdict again
    known_items = 48
    assert calls == 2 * QUERIES + known_items
    assert forecast[0] <= calls <= forecast[1]
    results = Results(str(out), "together")
    (config_id,) = (row["config_id"] for row in results.configurations)
    judged, together = (results.means[config_id, ALL, name] for name in (JUDGED, TOGETHER))
    assert judged.ci_low > truth  # confident, and wrong
    assert together.ci_low < truth < together.ci_high
    assert together.queries == LABELS
    assert together.judge_power > 0
    assert together.effective_labels > LABELS
    (row,) = (row for row in results.table("agreement").to_pylist() if row["step"] == "support")
    assert row["bias"] > 0
    assert {(cell["first"], cell["second"]) for cell in row["confusion"]} == {
        ("supported", "supported"), ("not_stated", "supported"), ("not_stated", "not_stated"),
    }  # fmt: skip
