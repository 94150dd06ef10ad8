"""Gates on the judge, and what a run says of a judge that changes while it judges."""

import json
import re
from pathlib import Path

import pytest
import yaml
from support.oracle import Script, install, judged
from support.runs import rankbeam

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.gates.gates import GateModel, KnownNames, located_gates
from rankbeam.transforms.records.errors import InputErrors

QUERIES = 34


@pytest.mark.parametrize("more", [{"metric": "AP"}, {"slice": "all"}, {"value": "mean"}, {"configuration": "a"}])
def test_a_gate_on_the_judge_is_about_nothing_else(more: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is a gate on the judge, which takes a limit and no other key"):
        GateModel.model_validate({"judge": "sentinels", "at_least": 0.9, **more})


@pytest.mark.long
def test_a_judge_that_changes_and_is_often_wrong_ends_the_run_with_status_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = frozenset(f"grade-{number:02}" for number in range(1, 5))
    install(tmp_path, monkeypatch, Script(version=lambda number: f"oracle-{1 + (number >= 50)}", wrong=wrong))
    experiment = judged(tmp_path, QUERIES, repeat_share=0.0, strict_version=True)
    experiment["gates"] = [{"judge": "sentinels", "at_least": 0.9}]
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump({"name": "test", "output": {"path": "out"}, **experiment}), encoding="utf-8")
    outcome = rankbeam("evaluate", path, "--run-id", "r")
    assert outcome.exit_code == 3, outcome.stderr
    assert "judge oracle (oracle-1, oracle-2) · 20 of 24 known items right (83.3%)" in outcome.stdout
    assert re.search(r"MISSED +– +all +sentinels +0\.8333 +≥ 0\.9 +-0\.06667", outcome.stdout)
    (message,) = [line for line in outcome.stderr.splitlines() if "versions" in line]
    counts = re.fullmatch(
        r"rankbeam: verdicts of 2 versions of the judge oracle, in one comparison: "
        r"oracle-1 \((\d+)\), oracle-2 \((\d+)\) \(judge\.strict_version\); 1 of 1 gate check missed",
        message,
    )
    assert counts is not None, message
    assert int(counts[1]) + int(counts[2]) == QUERIES * 3
    again = rankbeam("gate", tmp_path / "out", "--format", "json")
    assert again.exit_code == 3
    (check,) = json.loads(again.stdout)["checks"]
    assert (check["value"], check["found"], check["configuration"]) == ("sentinels", 20 / 24, None)


@pytest.mark.long
def test_a_judge_near_chance_is_warned_of_and_gates_on_its_metrics_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = frozenset(f"grade-{number:02}" for number in range(1, 13))
    install(tmp_path, monkeypatch, Script(wrong=wrong))
    experiment = judged(tmp_path, QUERIES, repeat_share=0.0)
    experiment["metrics"] += ["AP"]
    experiment["gates"] = [{"metric": metric, "at_least": 0.0} for metric in experiment["metrics"]]
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump({"name": "test", "output": {"path": "out"}, **experiment}), encoding="utf-8")
    outcome = rankbeam("evaluate", path, "--run-id", "r")
    assert outcome.exit_code == 0, outcome.stderr
    doubt = "the judge oracle got 12 of 24 known items of grade right, which is near chance"
    assert f"{doubt}: its verdicts are not reliable" in " ".join(outcome.stderr.split())
    rows = json.loads(rankbeam("gate", tmp_path / "out", "--format", "json").stdout)["checks"]
    assert {check["metric"]: (check["met"], check["reason"]) for check in rows} == {
        "ContextRelevance@3": (True, doubt),
        "AP": (True, ""),
    }


@pytest.mark.parametrize(
    ("name", "computed", "expected"),
    [
        ("Faithfulness", ["Faithfulness(judge=a)", "AP"], "Faithfulness(judge=a)"),
        ("faithfulness", ["Faithfulness(judge=a)"], "Faithfulness(judge=a)"),
        ("Faithfulness(judge=a)", ["Faithfulness(judge=a)"], "Faithfulness(judge=a)"),
        ("ContextRelevance@3", ["ContextRelevance(judge=a)@3"], "ContextRelevance(judge=a)@3"),
        (
            "AnswerCorrectness(ragas,judge=a)",
            ["AnswerCorrectness(ragas,judge=a,embeddings=e)"],
            "AnswerCorrectness(ragas,judge=a,embeddings=e)",
        ),
        ("Faithfulness", ["Faithfulness(judge=a)", "Faithfulness(judge=b)"], None),
        ("Faithfulness(judge=b)", ["Faithfulness(judge=a)"], None),
        ("Faithfulness", ["Faithfulness(ragas,judge=a)"], None),
        ("ContextRelevance@3", ["ContextRelevance(judge=a)@5"], None),
    ],
)
def test_a_gate_names_a_judged_metric_without_its_judge_where_there_is_one(
    name: str, computed: list[str], expected: str | None
) -> None:
    located = load(yaml.safe_dump({"gates": [{"metric": name, "at_least": 0.5}]}), "gates.yaml")
    known = KnownNames(["bm25"], computed, [], None)
    if expected is None:
        with pytest.raises(InputErrors, match="is not one of the computed metrics"):
            located_gates(located, known)
    else:
        assert [gate.metric for gate in located_gates(located, known)] == [expected]
