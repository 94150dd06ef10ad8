"""Several judges: values by each and by the majority, agreement between them, and what each costs."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np
import pytest
import yaml
from support.cli import rankbeam
from support.data import REPOSITORY
from support.runs import evaluated
from support.standin_answers import model
from support.standins import Standin, serve
from support.standins.faults import Faults
from support.voting import CRITERIA, JUDGES, SUPPORT, experiment, values

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.statistics import raters
from rankbeam.transforms.records.slices import ALL

GUIDE = (REPOSITORY / "docs" / "judging.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def server() -> Any:
    with pytest.MonkeyPatch.context() as patch, serve("openai") as server:
        patch.setenv("RANKBEAM_TEST_KEY", "k")
        yield server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: Standin) -> tuple[Path, dict[str, Any], int]:
    """The folder of a run by three judges, its plan, and its calls."""
    folder = tmp_path_factory.mktemp("judges")
    judge = {"service": JUDGES, "repeat_share": 0, "criteria": CRITERIA}
    gates = [{"metric": "Faithfulness", "at_least": 0.0}, {"metric": "Faithfulness(judge=b)", "at_least": 0.0}]
    path = experiment(folder, server, judge, gates=gates)
    plan = rankbeam("plan", path, "--format", "json")
    assert plan.status == 0, plan.stderr
    before = server.stats().calls
    evaluated(path, "r1")
    return folder, json.loads(plan.stdout), server.stats().calls - before


def votes(folder: Path, step: str) -> dict[tuple[str, str, int, str], dict[str, Any]]:
    """By item, the verdict of each judge."""
    result: defaultdict[tuple[str, str, int, str], dict[str, Any]] = defaultdict(dict)
    for row in Results(str(folder / "out"), "r1").table("verdicts").to_pylist():
        if row["step"] == step:
            place = row["query_id"], row["right_hash"], row["position"], row["items_hash"]
            result[place][row["judge"][0]] = row["grade"] if step == "grade" else row["verdict"]
    return result


def test_each_metric_is_by_the_majority_and_by_each_judge(run: tuple[Path, Any, int]) -> None:
    results = Results(str(run[0] / "out"), "r1")
    names = ["Faithfulness", *(f"Faithfulness(judge={name})" for name in JUDGES)]
    assert results.metrics[:4] == names
    assert [row["metric"] for row in results.table("gates").to_pylist()] == [names[0], names[2]]
    known = values(run[0])
    assert len({tuple(sorted(known[name].items())) for name in names}) == 4


def test_the_majority_is_the_median_of_verdicts_on_the_same_items(run: tuple[Path, Any, int]) -> None:
    folder = run[0]
    results = Results(str(folder / "out"), "r1")
    known, support, grades = values(folder), votes(folder, "support"), votes(folder, "grade")
    claims: Counter[str] = Counter(row["query_id"] for row in results.table("claims").to_pylist())
    for judges, suffix in [(JUDGES, ""), *(([name], f"(judge={name})") for name in JUDGES)]:
        supported: defaultdict[str, set[int]] = defaultdict(set)
        for (query_id, _, position, _), by_judge in support.items():
            assert set(by_judge) == set(JUDGES)
            yes = sum(by_judge[name] == "supported" for name in judges)
            if 2 * yes > len(judges):
                supported[query_id].add(position)
        expected = {query_id: len(supported[query_id]) / count for query_id, count in claims.items()}
        assert known[f"Faithfulness{suffix}"] == pytest.approx(expected)
        graded: defaultdict[str, list[int]] = defaultdict(list)
        for (query_id, *_), by_judge in grades.items():
            graded[query_id].append(median_low(by_judge[name] for name in judges))
        relevance = {query_id: sum(some) / len(some) / 3 for query_id, some in graded.items()}
        assert known[f"ContextRelevance{suffix}"] == pytest.approx(relevance)
        levels = {"yes": 1.0, "so so": 0.5, "no": 0.0}
        tone = {
            query_id: median_low(levels[by_judge[name]] for name in judges)
            for (query_id, *_), by_judge in votes(folder, "criterion:Tone").items()
        }
        assert known[f"Criterion(Tone{suffix.replace('(', ',').replace(')', '')})"] == pytest.approx(tone)


def test_agreement_between_judges_is_that_of_the_kernels(run: tuple[Path, Any, int]) -> None:
    rows = Results(str(run[0] / "out"), "r1").table("agreement").to_pylist()
    items = list(votes(run[0], "support").values())
    codes = {name: [SUPPORT.index(item[name]) for item in items] for name in JUDGES}
    of_support = {(row["first"][:1], row["second"][:1]): row for row in rows if row["step"] == "support"}
    assert set(of_support) == {("a", "b"), ("a", "c"), ("b", "c"), ("j", "j")}
    for one, other in (("a", "b"), ("a", "c"), ("b", "c")):
        row, pairs = of_support[one, other], Counter(zip(codes[one], codes[other], strict=True))
        count = len(items)
        observed = sum(pairs[place, place] for place in range(3)) / count
        shares = [[codes[name].count(place) / count for place in range(3)] for name in (one, other)]
        chance = sum(mine * theirs for mine, theirs in zip(*shares, strict=True))
        mean = [(mine + theirs) / 2 for mine, theirs in zip(*shares, strict=True)]
        gwet = sum(share * (1 - share) for share in mean) / 2
        assert (row["items"], row["unmatched"], row["weights"]) == (count, 0, "none")
        assert row["agreement"] == pytest.approx(observed, abs=1e-12)
        assert row["kappa"] == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)
        assert row["ac"] == pytest.approx((observed - gwet) / (1 - gwet), abs=1e-12)
        assert row["agreement_low"] <= observed <= row["agreement_high"]
    assert of_support["j", "j"]["ac"] == pytest.approx(raters.gwet(np.array(list(codes.values())).T, 3))
    weights = {row["step"]: row["weights"] for row in rows}
    assert weights == {
        "support": "none", "grade": "quadratic", "answer_kind": "none", "criterion:Tone": "quadratic",
    }  # fmt: skip


def test_every_judge_is_planned_and_paid(run: tuple[Path, dict[str, Any], int]) -> None:
    folder, plan, calls = run
    forecast = [sum(pool["calls"][end] for pool in plan["models"]) for end in (0, 1)]
    assert forecast[0] <= calls <= forecast[1]
    rows = Results(str(folder / "out"), "r1").table("judge_quality").to_pylist()
    by_judge = {(row["step"], row["judge"][0]): row for row in rows}
    assert {step for step, judge in by_judge if judge == "a"} - {step for step, judge in by_judge if judge == "b"} == {
        "claims"
    }
    assert len({by_judge["grade", name]["items"] for name in JUDGES}) == 1
    assert all(row["cost"] > 0 for row in rows)
    assert {row["judge"] for row in rows} == {f"{name} (judge-{name})" for name in JUDGES}


@pytest.mark.campaign
def test_a_judge_alone_pays_nothing_for_what_it_said_with_others(run: tuple[Path, Any, int], server: Standin) -> None:
    folder = run[0]
    before = server.stats().calls
    path = experiment(folder, server, {"service": "a", "repeat_share": 0, "criteria": CRITERIA})
    done = rankbeam("evaluate", path, "--run-id", "alone")
    assert done.status == 0, done.stderr
    assert server.stats().calls == before
    alone, together = values(folder, "alone"), values(folder)
    assert alone["Faithfulness"] == together["Faithfulness(judge=a)"]
    assert alone["AnswerRelevance"] == together["AnswerRelevance(judge=a)"]


def test_results_name_the_judges_wherever_they_are_shown(run: tuple[Path, Any, int]) -> None:
    out = str(run[0] / "out")
    shown = rankbeam("report", out, "--run-id", "r1")
    assert shown.status == 0, shown.stderr
    page = (run[0] / "out" / "report.html").read_text("utf-8")
    assert "Faithfulness(judge=b)" in page
    assert "<bdi>c (judge-c)</bdi>" in page
    worst = rankbeam("worst", out, "--run-id", "r1", "--metric", "Faithfulness(judge=c)")
    assert worst.status == 0, worst.stderr
    gate = rankbeam("gate", out, "--run-id", "r1")
    assert gate.status == 0, gate.stderr
    sampled = rankbeam("label", out, "--run-id", "r1", "--sample", "3", "--metric", "Faithfulness")
    assert sampled.status == 0, sampled.stderr


@pytest.mark.campaign
def test_a_list_of_services_is_enough_and_metrics_of_one_judge_are_alone(tmp_path: Path, server: Standin) -> None:
    path = experiment(tmp_path, server, JUDGES[:2], metrics=["Faithfulness(judge=b)", "AnswerRelevance(ragas)"])
    text = Path(path).read_text("utf-8").replace("judge:\n- a\n- b", "judge: {service: [a, b], embeddings: m}")
    done = rankbeam("evaluate", Path(path).write_text(text) and path, "--run-id", "r1")
    assert done.status == 0, done.stderr
    expected = ["Faithfulness(judge=b)", "AnswerRelevance(ragas,judge=a)"]
    assert Results(str(tmp_path / "out"), "r1").metrics == expected
    path = experiment(tmp_path, server, JUDGES[:2], metrics=["Refused"])
    done = rankbeam("evaluate", path, "--run-id", "r2")
    assert done.status == 0, done.stderr
    names = ["Refused", "Refused(judge=a)", "Refused(judge=b)"]
    assert Results(str(tmp_path / "out"), "r2").metrics == names
    known = values(tmp_path, "r2")
    assert known["Refused"] == {
        query_id: min(known[name][query_id] for name in names[1:]) for query_id in known["Refused"]
    }


@pytest.mark.parametrize(
    ("judge", "metrics", "message"),
    [
        (["a", "d"], ["Refused"], "services: has no 'd'"),
        (["a", "a"], ["Refused"], "names one model twice"),
        ([], ["Refused"], "must not be empty"),
        (["a", "b"], ["Refused(judge=bb)"], "no judge has that name; did you mean"),
        (["a", "b"], ["AnswerSimilarity"], "name the model that makes them"),
        ({"service": "a"}, ["Refused(judge=b)"], "no judge has that name"),
    ],
)
def test_wrong_judges_are_refused_with_their_line(
    tmp_path: Path, server: Standin, judge: Any, metrics: list[str], message: str
) -> None:
    path = experiment(tmp_path, server, judge, metrics=metrics)
    done = rankbeam("validate", path)
    assert done.status == 2
    assert message in done.stderr
    assert f"{path}:" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_judge_that_fails_fails_alone_and_the_majority_stands_where_the_others_decide(
    tmp_path: Path, server: Standin
) -> None:
    judge = {"service": JUDGES, "repeat_share": 0}
    path = experiment(tmp_path, server, judge, metrics=["Faithfulness"], max_failure_rate=1.0)
    stated = yaml.safe_load(Path(path).read_text("utf-8"))
    with serve("openai", faults=Faults(contents=0.4, content_kinds=("safety",))) as broken:
        stated["services"]["c"] = model(broken, "openai") | {"model": "judge-c"}
        Path(path).write_text(yaml.safe_dump(stated), encoding="utf-8")
        results = evaluated(path, "r1")
    known = values(tmp_path)
    of_item = votes(tmp_path, "support")
    without = {query_id for (query_id, *_), by_judge in of_item.items() if "c" not in by_judge}
    undecided = {query_id for (query_id, *_), by in of_item.items() if "c" not in by and by["a"] != by["b"]}
    assert 0 < len(undecided) < len(without) < len(known["Faithfulness"])
    assert {query_id for query_id, value in known["Faithfulness(judge=c)"].items() if value is None} == without
    assert {query_id for query_id, value in known["Faithfulness"].items() if value is None} == undecided
    assert None not in known["Faithfulness(judge=a)"].values()
    (config_id,) = (row["config_id"] for row in results.configurations)
    mean = results.means[config_id, ALL, "Faithfulness"]
    assert mean.failed == len(undecided)
    assert mean.lowest < mean.mean < mean.highest
    reasons = {row["message"] for row in results.table("failures").to_pylist() if row["metric"] == "Faithfulness"}
    assert reasons
    assert all(reason.startswith("no majority without c: ") for reason in reasons)
    rows = {(row["first"][0], row["second"][0]): row for row in results.table("agreement").to_pylist()}
    missing = sum("c" not in by_judge for by_judge in of_item.values())
    assert (rows["a", "c"]["items"], rows["a", "c"]["unmatched"]) == (len(of_item) - missing, missing)
    assert any("c (judge-c) failed in" in warning for warning in results.run["warnings"])


def test_the_example_of_the_guide_is_valid(tmp_path: Path, server: Standin) -> None:
    section = GUIDE.partition("## Several judges\n")[2].partition("\n## ")[0]
    example = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    path = experiment(tmp_path, server, **example)
    stated = yaml.safe_load(Path(path).read_text("utf-8"))
    stated["services"] |= {name: model(server, "openai") | {"model": name} for name in example["judge"]}
    Path(path).write_text(yaml.safe_dump(stated), encoding="utf-8")
    done = rankbeam("validate", path)
    assert done.status == 0, done.stderr
