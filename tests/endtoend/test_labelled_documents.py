"""People grade documents: their labels become judgements, whose values are held against plain Python."""

import csv
import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.labelled import Task, decided, tasks
from support.runs import evaluated

from rankbeam.pipelines.labels.draw import LabelSample, draw
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.labels import read_labels

EXAMPLE = Path("examples/helpdesk/experiment.yaml").absolute()
K = 3


def experiment(folder: Path, name: str, metrics: str, qrels: Path | None = None) -> str:
    """The bundled example with other metrics, and perhaps other judgements."""
    lines = EXAMPLE.read_text("utf-8").splitlines()
    text = "\n".join(f"metrics: [{metrics}]" if line.startswith("metrics:") else line for line in lines)
    for file in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        place = qrels if qrels is not None and file.startswith("qrels") else EXAMPLE.parent / file
        text = text.replace(f" {file}", f" {place}")
    return write(folder / name, text)


def grade(task: Task, person: int = 0) -> str:
    """A grade by the item's id, in which people differ now and then."""
    number = int(task["id"][1:], 16)
    return str((number + (person if number % 5 == 0 else 0)) % 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, the labels of its documents by two people, and a run that is judged by them."""
    folder = tmp_path_factory.mktemp("documents")
    out = folder / "out"
    evaluated(experiment(folder, "first.yaml", "nDCG@10"), "first", out)
    sampled = rankbeam("label", str(out), "-m", f"nDCG@{K}", "--sample", "12")
    assert sampled.status == 0, sampled.stderr
    for name, person in (("ann", 0), ("bob", 1)):
        path = decided(folder / f"{name}.jsonl", tasks(out), lambda task, at=person: grade(task, at), name)
        applied = rankbeam("label", str(out), "--apply", path)
        assert applied.status == 0, applied.stderr
        assert "12 of 12 drawn queries are completely labelled" in applied.stdout
    qrels = out / "label-tasks" / "qrels.tsv"
    assert f"dataset: {{qrels: {qrels}}}" in applied.stdout
    second = experiment(folder, "second.yaml", f"nDCG@{K}, P@{K}, Judged@{K}", qrels)
    evaluated(second, "second", folder / "judged")
    return folder


def judgements(path: Path) -> dict[str, dict[str, int]]:
    """The file of judgements, by query and document."""
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            assert row["source"] == "human"
            grades[row["query-id"]][row["corpus-id"]] = int(row["score"])
    return dict(grades)


def values(run: Results) -> dict[tuple[str, str], dict[str, float]]:
    """Values by configuration and query, then metric."""
    return {
        (row["config_id"], row["query_id"]): {cell["metric"]: cell["value"] for cell in row["metrics"]}
        for row in run.table("query_metrics").to_pylist()
    }


def rankings(run: Results) -> dict[tuple[str, str], list[str]]:
    """The first documents by configuration and query."""
    rows: list[dict[str, Any]] = run.table("rankings").to_pylist()
    return {(row["config_id"], row["query_id"]): [one["doc_id"] for one in row["documents"][:K]] for row in rows}


@pytest.mark.long
def test_the_judgements_are_all_documents_that_some_configuration_found(folder: Path) -> None:
    run = find_run(str(folder / "out"))
    written = judgements(folder / "out" / "label-tasks" / "qrels.tsv")
    pools: defaultdict[str, set[str]] = defaultdict(set)
    for (_, query_id), documents in rankings(run).items():
        pools[query_id] |= set(documents)
    assert len(written) == 12
    assert {query_id: set(grades) for query_id, grades in written.items()} == {name: pools[name] for name in written}
    labels = read_labels(str(folder / "out" / "labels"))
    of_items = {
        row.item_id: (row.query_id, int(grade({"id": row.item_id})), int(grade({"id": row.item_id}, 1)))
        for row in labels.rows
    }
    expected: defaultdict[str, list[int]] = defaultdict(list)
    for query_id, *both in of_items.values():
        expected[query_id].append(median_low(both))
    assert {name: sorted(grades.values()) for name, grades in written.items()} == {
        name: sorted(grades) for name, grades in expected.items()
    }
    assert {row.probability for row in labels.rows} == {12 / len(pools)}


def test_values_by_labels_are_those_of_plain_python(folder: Path) -> None:
    run = find_run(str(folder / "judged"))
    written, ranked = judgements(folder / "out" / "label-tasks" / "qrels.tsv"), rankings(run)
    known = {place: cells for place, cells in values(run).items() if place[1] in written}
    assert len(known) == 12 * len(run.configurations)
    for place, cells in known.items():
        grades = written[place[1]]
        gains = [grades[doc_id] for doc_id in ranked[place]]
        ideal = sorted(grades.values(), reverse=True)[:K]
        discounted = [sum(gain / math.log2(rank + 2) for rank, gain in enumerate(some)) for some in (gains, ideal)]
        assert cells[f"Judged@{K}"] == (1.0 if len(gains) == K else pytest.approx(len(gains) / K))
        assert cells[f"P@{K}"] == pytest.approx(sum(gain > 0 for gain in gains) / K)
        assert cells[f"nDCG@{K}"] == pytest.approx(discounted[0] / discounted[1] if discounted[1] else 0.0)


@pytest.mark.campaign
def test_of_documents_in_passages_the_first_documents_are_graded_with_all_their_passages(tmp_path: Path) -> None:
    passages = [("a", "Owners pay."), ("a", "By card."), ("b", "Guests read."), ("c", "?"), ("a", "Each month.")]
    contexts = [{"doc_id": name, "text": text} for name, text in passages]
    write(tmp_path / "answers.jsonl", json.dumps({"query_id": "q", "answer": "?", "contexts": contexts}) + "\n")
    write(tmp_path / "queries.jsonl", '{"_id": "q", "text": "Who pays?"}\n')
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nq\tb\t1\n")
    text = "name: x\ndataset: {queries: queries.jsonl, qrels: qrels.tsv}\nmetrics: [Success@2]\n"
    text += "configurations: [{name: prod, answers: {type: replay, path: answers.jsonl}}]\n"
    evaluated(write(tmp_path / "e.yaml", text), "first", tmp_path / "out")
    run = find_run(str(tmp_path / "out"))
    assert values(run)[run.configurations[0]["config_id"], "q"] == {"Success@2": 1.0}
    shown = {task.doc_id: task.right_text for task in draw(run, LabelSample("P@2", ("prod",)), 1)}
    assert shown == {"a": "Owners pay.\n\nBy card.\n\nEach month.", "b": "Guests read."}


def test_queries_that_are_labelled_in_part_are_no_judgements(tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluated(experiment(tmp_path, "e.yaml", "nDCG@10"), output=out)
    sampled = rankbeam("label", str(out), "-m", f"P@{K}", "--sample", "2", "--configurations", "bm25")
    assert sampled.status == 0, sampled.stderr
    rows = tasks(out)
    assert len(rows) == 2 * K
    first = rankbeam("label", str(out), "--apply", decided(tmp_path / "a.jsonl", rows[: K - 1], grade))
    assert first.status == 0, first.stderr
    assert "judgements" not in first.stdout
    assert not (out / "label-tasks" / "qrels.tsv").exists()
    second = rankbeam("label", str(out), "--apply", decided(tmp_path / "b.jsonl", rows[: K + 1], grade))
    assert "1 of 2 drawn queries are completely labelled" in second.stdout
    assert [len(grades) for grades in judgements(out / "label-tasks" / "qrels.tsv").values()] == [K]


def test_means_by_labels_and_judge_are_for_judged_metrics(tmp_path: Path) -> None:
    done = rankbeam("validate", experiment(tmp_path, "e.yaml", f"nDCG(labels=True)@{K}"))
    assert done.status == 2
    assert "labels=True is for judged metrics. Labels of documents are judgements: rankbeam label OUT" in done.stderr


def test_a_run_without_rankings_is_refused_with_the_setting_that_writes_them(tmp_path: Path) -> None:
    qrels, run = write(tmp_path / "qrels", "q1 0 d1 1\n"), write(tmp_path / "a.run", "q1 Q0 d1 1 1 a\n")
    scored = rankbeam("score", qrels, run, "--output", str(tmp_path / "out"))
    assert scored.status == 0, scored.stderr
    refused = rankbeam("label", str(tmp_path / "out"), "-m", "nDCG@3", "--sample", "12")
    assert (refused.status, refused.stdout) == (2, "")
    assert "has no rankings to draw from; evaluate with output: {rankings: true}" in refused.stderr
