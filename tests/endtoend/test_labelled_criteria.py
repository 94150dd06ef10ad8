"""People label criteria: tasks in the judge's words, decisions on its scale, and means and agreement by labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import rankbeam
from support.labelled import Task, decided, tasks
from support.runs import evaluated
from support.standin_answers import model, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, estimate
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.slices import ALL

SCALE = {"Yes": 1, "so so": 0.5, "no": 0}
CRITERIA: dict[str, Any] = {
    "Tone": {"question": "criteria/tone.txt", "scale": SCALE},
    "Current": {"question": "Is it current?", "about": ["query", "context"], "scale": "0..3"},
    "Complies": {"rubrics": {"attribute": "rubrics"}, "about": ["answer", "reference"]},
    "Better": {"question": "Which is better?", "pairs": "baseline"},
    "Brief": "Is it brief?",
}
NAMES = ["Tone", "Current", "Complies"]
QUERIES, DRAWN = 24, 20


def by_length(task: Task) -> str:
    """A decision that differs from text to text, and from the judge's."""
    choices = task["decisions"]
    return str(choices[sum(map(len, (task["text"], task["claim"]))) % len(choices)])


@pytest.fixture(scope="module")
def server() -> Any:
    with pytest.MonkeyPatch.context() as patch, serve("openai") as server:
        patch.setenv("RANKBEAM_TEST_KEY", "k")
        yield server


def experiment(folder: Path, server: Standin, judge: Any = "m", metrics: Any = (), **changes: Any) -> str:
    """The experiment, of some queries with statements of their own."""
    path = write_experiment(
        folder, model(server, "openai"), {}, **{  # noqa: PIE804  `judge` is an argument here
            "judge": {"service": judge, "criteria": CRITERIA | changes, "repeat_share": 0}
            | ({"labels": "out/labels"} if any("labels" in name for name in metrics) else {}),
            "configurations": [
                {"name": name, "retriever": {"type": "bm25"}, "generate": {"service": "m", "contexts": most}}
                for name, most in (("one", 1), ("two", 2), ("three", 3))
            ],
            "metrics": [*CRITERIA, *metrics],
        }
    )  # fmt: skip
    (folder / "criteria").mkdir(exist_ok=True)
    (folder / "criteria" / "tone.txt").write_text("Is it polite?\n", "utf-8")
    rows = [
        {
            "_id": f"q{number}",
            "text": f"what of glass {number}",
            "metadata": {"answer": f"First {number} is so. Then it follows."},
            "rubrics": [f"It names {place}." for place in range(1 + number % 3)],
        }
        for number in range(QUERIES)
    ]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "qrels.trec").write_text("".join(f"q{number} 0 d1 1\n" for number in range(QUERIES)), "utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, server: Standin) -> Path:
    """A run whose criteria were labelled, and run again with the labels."""
    folder = tmp_path_factory.mktemp("criteria")
    out = folder / "out"
    evaluated(experiment(folder, server), "r1")
    paid = server.stats().calls
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, name in enumerate(NAMES, 1):
            sampled = rankbeam("label", str(out), "-m", name, "--sample", str(DRAWN), "--configurations", "one,two")
            assert sampled.status == 0, sampled.stderr
            path = decided(folder / f"{name}.jsonl", tasks(out, number), by_length)
            applied = rankbeam("label", str(out), "--apply", path)
            assert applied.status == 0, applied.stderr
            assert f"{DRAWN} of {DRAWN} drawn queries are completely labelled" in applied.stdout
    labelled = ["Tone(labels=True)", "Current(labels=True)", "Complies(labels=True)"]
    evaluated(experiment(folder, server, metrics=labelled), "r2")
    assert server.stats().calls == paid
    return folder


def values(run: Results, metric: str, config_id: str) -> dict[str, float]:
    return {
        row["query_id"]: cell["value"]
        for row in run.table("query_metrics").to_pylist()
        if row["config_id"] == config_id
        for cell in row["metrics"]
        if cell["metric"] == metric and cell["value"] is not None
    }


def human(name: str, answer: dict[str, Any], texts: dict[str, str]) -> float:
    """The human value of an answer, in plain Python."""
    query_id = answer["query_id"]
    if name == "Tone":
        return float(SCALE[by_length({"decisions": list(SCALE), "text": answer["answer"], "claim": ""})])
    if name == "Current":
        contexts = [texts[context["text_hash"]] for context in answer["contexts"]]
        grades = [int(by_length({"decisions": "0123", "text": text, "claim": ""})) for text in contexts]
        return sum(grades) / len(grades) / 3
    statements = [f"It names {place}." for place in range(1 + int(query_id[1:]) % 3)]
    text = f"[answer]\n{answer['answer']}\n\n[reference]\n{answer['reference']}"
    decisions = [by_length({"decisions": ["yes", "no"], "text": text, "claim": claim}) for claim in statements]
    return decisions.count("yes") / len(decisions)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.campaign
def test_human_values_and_means_are_those_of_plain_python(folder: Path, name: str) -> None:
    run = Results(str(folder / "out"), "r2")
    texts = {row["text_hash"]: row["text"] for row in run.table("texts").to_pylist()}
    ids = {row["name"]: row["config_id"] for row in run.configurations}
    labelled = f"Criterion({name},labels=True)"
    for config in ("one", "two"):
        by_people, judged = (values(run, metric, ids[config]) for metric in (labelled, f"Criterion({name})"))
        answers = {row["query_id"]: row for row in run.table("answers").to_pylist() if row["config_id"] == ids[config]}
        assert by_people == pytest.approx({query: human(name, answers[query], texts) for query in by_people})
        assert len(by_people) == DRAWN
        sample = LabelledSample.of(
            np.array(list(by_people.values())),
            np.array([judged[query] for query in by_people]),
            np.array([value for query, value in judged.items() if query not in by_people]),
        )
        expected, row = estimate(sample), run.means[ids[config], ALL, labelled]
        assert (row.mean, row.std_error) == pytest.approx((expected.mean, expected.standard_error), abs=1e-12)
        assert (row.ci_low, row.ci_high) == pytest.approx(expected.interval(), abs=1e-12)


def test_tasks_are_in_the_words_of_the_criterion(folder: Path) -> None:
    tone, current, complies = (tasks(folder / "out", number) for number in (1, 2, 3))
    assert {(task["question"], tuple(task["decisions"]), task["claim"]) for task in tone} == {
        ("Is it polite?", tuple(SCALE), "")
    }
    assert {tuple(task["decisions"]) for task in current} == {tuple("0123")}
    assert all(task["query"] == "" and task["claim"].startswith("It names") for task in complies)
    assert all(task["text"].startswith("[answer]\n") and "\n\n[reference]\nFirst" in task["text"] for task in complies)


def test_agreement_is_on_the_scale_of_the_criterion(folder: Path) -> None:
    rows = {row["step"]: row for row in Results(str(folder / "out"), "r2").table("agreement").to_pylist()}
    weights = {"criterion:Tone": "quadratic", "criterion:Current": "quadratic", "criterion:Complies": "none"}
    assert {step: row["weights"] for step, row in rows.items()} == weights
    for number, name in enumerate(NAMES, 1):
        row = rows[f"criterion:{name}"]
        assert (row["items"], row["unmatched"], row["undecided"]) == (len(tasks(folder / "out", number)), 0, 0)
        equal = sum(cell["items"] for cell in row["confusion"] if cell["first"] == cell["second"])
        assert row["agreement"] == pytest.approx(equal / row["items"])


@pytest.mark.parametrize(
    ("change", "has_values"),
    [
        ({"question": "Is it rude?", "scale": SCALE}, False),
        ({"question": "Is it polite?", "scale": {"Yes": 1, "no": 0}}, False),
        ({"question": "Is it polite?", "scale": {"Yes": 0, "so so": 0.5, "no": 1}}, True),
        ({"question": "Is it polite?", "scale": SCALE, "about": ["query", "answer", "reference"]}, False),
    ],
)
@pytest.mark.campaign
def test_labels_belong_to_question_verdicts_and_texts(
    folder: Path, server: Standin, change: dict[str, Any], has_values: bool
) -> None:
    before = Results(str(folder / "out"), "r2")
    path = experiment(folder, server, metrics=["Tone(labels=True)"], Tone=change)
    run_id = text_hash(str(change))[:8]
    done = rankbeam("evaluate", path, "--run-id", run_id)
    assert done.status == 0, done.stderr
    run = Results(str(folder / "out"), run_id)
    metric, config_id = "Criterion(Tone,labels=True)", run.configurations[0]["config_id"]
    expected = {query: 1 - value for query, value in values(before, metric, config_id).items()} if has_values else {}
    assert values(run, metric, config_id) == expected
    (row,) = (row for row in run.table("agreement").to_pylist() if row["step"] == "criterion:Tone")
    assert (row["unmatched"] > 0) != has_values
    assert (row["items"] > 0) == has_values


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["-m", "Better"], "Is it polite?", "Criterion(Better) cannot be labelled: it compares two answers"),
        (["-m", "Ton"], "Is it polite?", "did you mean"),
        (["-m", "Tone"], "Is it rude?", "was judged by another question"),
        (["-m", "Tone"], None, "run the command in the experiment's folder"),
    ],
)
def test_what_cannot_be_labelled_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], text: str | None, message: str
) -> None:
    monkeypatch.chdir(folder)
    question = folder / "criteria" / "tone.txt"
    question.write_text(text or "", "utf-8")
    if text is None:
        question.unlink()
    done = rankbeam("label", str(folder / "out"), "--run-id", "r1", "--sample", "5", *options)
    question.write_text("Is it polite?\n", "utf-8")
    assert done.status == 2
    assert message in done.stderr


def test_decisions_are_read_in_any_spelling_and_others_are_refused(folder: Path, tmp_path: Path) -> None:
    first, second, *_ = tasks(folder / "out")
    rows = [{"id": first["id"], "decision": "SO_SO"}, {"id": second["id"], "decision": "so"}]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f"{json.dumps(row | {'annotator': 'bob'})}\n" for row in rows), "utf-8")
    done = rankbeam("label", str(folder / "out"), "--apply", str(path))
    assert done.status == 2
    assert "d.jsonl:2: unknown decision 'so'; valid are: Yes, no, so so" in done.stderr
    assert "d.jsonl:1" not in done.stderr


def test_a_question_alone_can_be_labelled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = rankbeam("label", "out", "--run-id", "r1", "-m", "Brief", "--sample", "2")
    assert "Criterion(Brief) of " in done.stdout, done.stderr


def test_pairs_with_labels_are_refused_before_any_work(tmp_path: Path, server: Standin) -> None:
    (tmp_path / "out" / "labels").mkdir(parents=True)
    done = rankbeam("validate", experiment(tmp_path, server, metrics=["Better(labels=True)"]))
    assert done.status == 2
    assert "Criterion(Better,labels=True) cannot be labelled: it compares two answers" in done.stderr
