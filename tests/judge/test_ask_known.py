"""Known items among the questions of a run."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.stats import binomtest
from support.known_answers import known_items, right_answer
from support.oracle import DEPTH, Script, install, judged

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.answers import known_of, work_of
from rankbeam.pipelines.run.evaluate import run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.judge.ask_known import LEAST_TEXTS, AskKnown, known_steps
from rankbeam.transforms.judge.definitions import JUDGED
from rankbeam.transforms.judge.judge import Judge, Model, ModelReply
from rankbeam.transforms.judge.measure import texts_in
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.rows import Rows
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.judging.items import Item, System, batch_of
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.run import Run

MONDAY = datetime(2026, 1, 5, 8, tzinfo=UTC)
QUERIES = 34  # of three contexts, each with its configuration: 34 · 4 texts
ALL = list(known_items().values())


def results(folder: Path, experiment: dict[str, Any], run_id: str, began: datetime = MONDAY) -> Results:
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump({"name": "test", "output": {"path": "out"}, **experiment}), encoding="utf-8")
    loaded = load_experiment(str(path))
    return run(loaded, Run(run_id, loaded.name, began, loaded.text), pipeline_options([]))


def row_of(results: Results) -> dict[str, Any]:
    row: dict[str, Any]
    (row,) = results.table("judge_quality").to_pylist()
    return row


@pytest.mark.parametrize("item", [item for items in ALL for item in items], ids=lambda item: item.id)
def test_a_known_item_is_the_question_that_a_run_would_ask(item: Any) -> None:
    assert step_named(item.step).values(item.question, item.values.get("query", "")) == dict(item.values)


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_the_steps_of_a_metric_are_those_that_known_items_are_asked_of(name: str) -> None:
    names = {"ac", "gc", "ag", "ga"}
    definition = parse_judged(name).definition
    inputs = {*definition.inputs, *definition.inputs_without_claims}
    expected = {
        "claims": bool(names & inputs),
        "support": bool((names | {"statements", "attributed"}) & inputs),
        "grade": "grades" in inputs,
        "answer_kind": bool({"kind", "relevance"} & inputs),
        "nugget_assign": "assigned" in inputs,
        "statements": "statements" in inputs,
        "questions": bool({"cosines", "noncommittal"} & inputs),
        "sentences": "extracted" in inputs,
    }
    assert set(known_steps([parse_judged(name)])) == {step for step, is_asked in expected.items() if is_asked}


@pytest.mark.parametrize("item", [items[-1] for items in ALL], ids=lambda item: item.step)
def test_what_is_said_to_a_known_item_is_one_verdict_beside_the_right_one(item: Any) -> None:
    ask = known_work(MONDAY)
    steps = ask.steps(item)
    next(steps)
    with pytest.raises(StopIteration) as ended:
        steps.send([ModelReply(step_named(item.step).read(item.values, right_answer(item)), "v7")])
    (row,) = Rows((), {}, {}, ask.judge.templates).verdicts(ended.value.value)
    verdict = row["verdict"] if row["grade"] is None or item.step == "answer_kind" else str(row["grade"])
    assert (row["item_id"], row["is_sentinel"]) == (item.id, True)
    assert (verdict, row["human_verdict"]) == (item.expected, item.expected)


def known_work(began: datetime) -> AskKnown:
    return AskKnown(Judge(Model("judge", "lexical", Lexical()), built_in_templates()), began, tuple(known_items()))


def keys(began: datetime) -> set[str | None]:
    ask = known_work(began)
    return {ask.call(item).key for item in ask.items()}


def test_the_key_of_a_known_item_holds_for_one_iso_week() -> None:
    assert len(keys(MONDAY)) == 24 * len(ALL)
    assert keys(MONDAY) == keys(MONDAY + timedelta(days=6, hours=15))
    assert not keys(MONDAY) & keys(MONDAY + timedelta(days=7))


@pytest.mark.long
def test_known_items_show_how_good_a_judge_is_and_that_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    install(tmp_path, monkeypatch, script)
    experiment = judged(tmp_path, QUERIES, repeat_share=0.0)
    first = results(tmp_path, experiment, "first")
    assert sorted(item.id for item in script.known()) == [f"grade-{number:02}" for number in range(1, 25)]
    row = row_of(first)
    assert (row["items"], row["sentinels"], row["sentinels_right"], row["drift_since"]) == (
        QUERIES * DEPTH,
        24,
        24,
        None,
    )
    verdicts = [record for record in first.table("verdicts").to_pylist() if record["is_sentinel"]]
    assert {record["item_id"]: (str(record["grade"]), record["query_id"]) for record in verdicts} == {
        item.id: (item.expected, None) for item in known_items()["grade"]
    }
    assert all(record["human_verdict"] == str(record["grade"]) for record in verdicts)

    script.prompts.clear()
    script.wrong = frozenset(f"grade-{number:02}" for number in range(1, 9))
    later = results(tmp_path, experiment, "third", MONDAY + timedelta(weeks=3))
    assert len(script.prompts) == len(script.known()) == 24
    row, interval = row_of(later), binomtest(16, 24).proportion_ci(0.95, "wilson")
    assert (row["sentinels"], row["sentinels_right"], row["sentinel_accuracy"]) == (24, 16, 16 / 24)
    assert (row["sentinel_low"], row["sentinel_high"]) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert (row["drift_since"], row["drift_p_value"]) == ("2026-W02", pytest.approx(binomtest(8, 8).pvalue))
    (warning,) = [text for text in later.run["warnings"] if "has changed" in text]
    assert warning.startswith(
        "the judge oracle has changed since 2026-W02: 16 of 24 known items of grade right (p = 0.0"
    )
    assert {record["name"]: record["correct"] for record in row["sentinel_groups"]}["3"] == 6


def test_a_run_that_judges_few_texts_asks_nothing_known() -> None:
    ask = known_work(MONDAY)
    assert not list(ask.tasks(LEAST_TEXTS - 1))
    tasks = list(ask.tasks(LEAST_TEXTS))
    assert sum(batch.num_rows for _, batch in tasks) == 24 * len(ALL)


def test_contexts_and_answers_to_judge_are_counted() -> None:
    items = [
        Item("q1", "?", {}, (Passage("a", "x"), Passage("b", "y")), (System(0, (0, 1)), System(1, (1,)))),
        Item("q2", "?", {}, (), ()),
    ]
    assert texts_in((0, batch_of(items))) == 4


def test_an_offline_judge_is_asked_nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, Script())
    for kind, is_asked in (("oracle", True), ("lexical", False)):
        path = tmp_path / "experiment.yaml"
        experiment = judged(tmp_path, QUERIES) | {"services": {"judge": {"type": kind}}}
        path.write_text(yaml.safe_dump({"name": "test", "output": {"path": "out"}, **experiment}), encoding="utf-8")
        loaded = load_experiment(str(path))
        ask = known_of(loaded, work_of(loaded), MONDAY)
        assert bool(ask) == is_asked
