"""Evidence spans as judgements, through the command line: runs of chunks, whole documents, services that send texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.inputs import trec_run, write
from support.remote import http, rag, write_experiment
from support.runs import query_values, run_experiment
from support.standins import serve

from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.evidence import refuse_misquoted
from rankbeam.transforms.clients.local_folders import FOLDER

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk"
TEXTS = {
    "fees": "Fees are due in May. Late payers owe two percent more. Ask the desk for a receipt.",
    "desk": "The desk  is open\nfrom nine to five. It is closed on Sundays.",
    "menu": "Soup, bread and cheese. Tea is free of charge.",
}
LATE, OPEN = "Late payers owe two percent more.", "open\nfrom nine to five"


def corpus(folder: Path) -> str:
    documents = [{"_id": name, "title": "A title", "text": text} for name, text in TEXTS.items()]
    return write(folder / "corpus.jsonl", "".join(json.dumps(document) + "\n" for document in documents))


def evidence_of(query_id: str, doc_id: str, quote: str, **also: Any) -> dict[str, Any]:
    start = TEXTS[doc_id].index(quote)
    span = {"start": start, "end": start + len(quote), "quote": quote}
    return {"query_id": query_id, "doc_id": doc_id, **span, **also}


def evidence(folder: Path, *further: dict[str, Any]) -> str:
    rows = [evidence_of("q1", "fees", LATE, group="rule", grade=2), evidence_of("q1", "desk", OPEN, group="hours")]
    rows += [evidence_of("q2", "menu", "Tea is free"), *further]
    return write(folder / "evidence.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def chunk(doc_id: str, text: str) -> str:
    start = TEXTS[doc_id].index(text)
    return f"{doc_id}#{start}-{start + len(text)}"


def queries(folder: Path) -> str:
    rows = [{"_id": "q1", "text": "question 0"}, {"_id": "q2", "text": "question 1"}]
    return write(folder / "queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


METRICS = ["nDCG@2", "R@2", "P@2", "RR", "SpanRecall@2", "SpanPrecision@2", "SpanRecall@10t", "AllGroups@2"]


def score(folder: Path, *arguments: str, run: list[tuple[str, str, float]]) -> Results:
    path = write(folder / "chunks.run", trec_run(run))
    metrics = [word for metric in METRICS for word in ("-m", metric)]
    outcome = rankbeam("score", evidence(folder), path, *metrics, *arguments, "--output", str(folder / "out"))
    assert outcome.status == 0, outcome.stderr
    return find_run(str(folder / "out"))


@pytest.mark.long
def test_score_takes_evidence_and_runs_of_chunks(tmp_path: Path) -> None:
    late = chunk("fees", LATE)
    half = chunk("desk", TEXTS["desk"][:18])  # less than half of the evidence, and less than half of itself
    run = [("q1", late, 3.0), ("q1", half, 2.0), ("q1", chunk("desk", OPEN), 1.0), ("q2", chunk("menu", "Soup"), 1.0)]
    values = query_values(score(tmp_path, "--corpus", corpus(tmp_path), run=run))["chunks"]
    size = len(LATE) + len(OPEN)
    first = values["q1"]
    assert first["nDCG@2"] == pytest.approx(2 / (2 + 1 / 1.584962500721156))
    assert (first["R@2"], first["P@2"], first["RR"], first["AllGroups@2"]) == (0.5, 0.5, 1.0, 0.0)
    shared = len(LATE) + len(set(range(18)) & set(range(TEXTS["desk"].index(OPEN), 100)))
    assert first["SpanRecall@2"] == pytest.approx(shared / size)
    assert first["SpanPrecision@2"] == pytest.approx(shared / (len(LATE) + 18))
    assert first["SpanRecall@10t"] == pytest.approx((len(LATE) + 0) / size)  # 9 of 10 tokens; 4 characters are left
    assert set(values["q2"].values()) == {0.0}


def test_a_run_of_documents_is_a_run_of_long_chunks(tmp_path: Path) -> None:
    run = [("q1", "fees", 2.0), ("q1", "desk", 1.0), ("q2", "menu", 1.0)]
    values = query_values(score(tmp_path, "--corpus", corpus(tmp_path), run=run))["chunks"]
    assert values["q1"]["SpanRecall@2"] == values["q1"]["AllGroups@2"] == values["q1"]["nDCG@2"] == 1.0
    assert values["q1"]["SpanPrecision@2"] == pytest.approx(
        (len(LATE) + len(OPEN)) / (len(TEXTS["fees"]) + len(TEXTS["desk"]))
    )


def test_without_a_corpus_documents_have_no_place_and_users_are_told(tmp_path: Path) -> None:
    results = score(tmp_path, run=[("q1", "fees", 2.0), ("q1", chunk("desk", OPEN), 1.0), ("q2", "menu", 1.0)])
    assert query_values(results)["chunks"]["q1"]["RR"] == 0.5
    warnings = "\n".join(results.run["warnings"])
    assert "chunks: 2 of 3 results have no known place in their document" in warnings
    assert "quotes of the evidence are not checked" in warnings


@pytest.mark.long
def test_texts_of_services_are_located_in_their_documents(tmp_path: Path) -> None:
    def result(name: str, text: str, score: float) -> dict[str, Any]:
        return {"id": name, "text": text, "score": score}

    texts = {
        "question 0": [
            result("fees", LATE, 0.1),
            result("desk", "The desk is open from nine to five.", 0.2),
            result("menu", "This text stands in no document at all.", 0.3),
        ],
        "question 1": [result("menu", "… bread and cheese. Tea is free of charge.", 0.1)],
    }
    with serve("http", answers=texts) as one, serve("rag_engine", answers=texts) as other:
        retrievers = {"http": http(one), "rag_engine": rag(other)}
        results = run_experiment(
            tmp_path,
            {
                "dataset": {
                    "queries": queries(tmp_path),
                    "corpus": corpus(tmp_path),
                    "evidence": evidence(tmp_path),
                    "unit": "span",
                },
                "configurations": [
                    {"name": name, "retriever": retriever, "top_k": 3} for name, retriever in retrievers.items()
                ],
                "metrics": METRICS,
            },
        )
    for row in results.configurations:
        values = query_values(results)[row["name"]]
        assert values["q1"]["SpanRecall@2"] == values["q1"]["AllGroups@2"] == values["q2"]["R@2"] == 1.0
        assert any(f"{row['name']}: 1 of 4 results have no known place" in text for text in results.run["warnings"])
    rankings = [row["documents"] for row in results.table("rankings").to_pylist() if row["query_id"] == "q1"]
    expected = [(chunk("fees", LATE), 2.0), (chunk("desk", TEXTS["desk"][:36]), 1.0), ("menu", None)]
    assert [[(hit["doc_id"], hit["grade"]) for hit in documents] for documents in rankings] == [expected, expected]


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"start": 0, "end": 4, "quote": "fees"}, "text[0:4] of document 'fees' is 'Fees', not the quote 'fees'"),
        ({"start": 0, "end": 3, "quote": "May"}, "the quote begins at 16"),
        ({"start": 52, "end": 54, "quote": "re"}, "the quote begins at 51"),
        ({"start": 50, "end": 52, "quote": "re"}, "the quote begins at 51"),
        ({"start": 0, "end": 4, "quote": "Fee"}, "the quote has 3 characters, the span 4"),
        ({"start": 4, "end": 4, "quote": ""}, "the span [4, 4) is empty"),
        ({"start": 0, "end": 4, "quote": "Fees", "doc_id": "gone"}, "document 'gone' is not in the corpus"),
        ({"start": 0, "end": 4, "quote": "Fees", "grade": 0}, "grade: must be greater than 0"),
        ({"start": 0, "end": 4, "quote": "Fees", "group": "a#1"}, "group: must have the form"),
        ({"start": -1, "end": 4, "quote": "Fees"}, "start: must be at least 0"),
    ],
)
def test_wrong_evidence_is_refused_with_its_line(row: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = evidence(tmp_path, {"query_id": "q2", "doc_id": "fees", **row})
    run = write(tmp_path / "a.run", trec_run([("q1", chunk("fees", LATE), 1.0)]))
    outcome = rankbeam("score", path, run, "--corpus", corpus(tmp_path))
    assert outcome.status == 2
    assert f"{path}:4: " in outcome.stderr
    assert problem in outcome.stderr


def test_evidence_about_an_unknown_document_names_the_folder_of_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    for name, text in TEXTS.items():
        write(tmp_path / "docs" / f"{name}.md", text)
    row = {"query_id": "q1", "doc_id": "gone.md", "start": 0, "end": 4, "quote": "Fees"}
    write(tmp_path / "evidence.jsonl", json.dumps(row) + "\n")
    write(tmp_path / "a.run", trec_run([("q1", "fees.md", 1.0)]))
    content = {
        "dataset": {"evidence": "evidence.jsonl", "corpus": "docs", "queries": queries(tmp_path), "unit": "span"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}, "top_k": 3}],
        "metrics": ["R@2"],
    }
    outcome = rankbeam("evaluate", write_experiment(tmp_path, content))
    assert outcome.status == 2
    problem = f"evidence.jsonl:1: document 'gone.md' is not in the corpus {tmp_path / 'docs'}"
    assert problem in outcome.stderr.replace("\n", " ")


def test_two_grades_of_one_evidence_are_refused_with_both_lines(tmp_path: Path) -> None:
    path = evidence(tmp_path, evidence_of("q2", "menu", "Tea is free", grade=3))
    run = write(tmp_path / "a.run", trec_run([("q1", chunk("fees", LATE), 1.0)]))
    outcome = rankbeam("score", path, run)
    assert outcome.status == 2
    assert f"{path}:4: " in outcome.stderr
    assert "has two grades for query 'q2'; keep one (also at line 3)" in outcome.stderr


def test_what_contradicts_spans_is_refused_with_its_line(tmp_path: Path) -> None:
    dataset = {"qrels": write(tmp_path / "qrels", "q1 0 fees 1\n"), "unit": "span"}
    run = {"type": "run_file", "path": write(tmp_path / "a.run", trec_run([("q1", "fees", 1.0)]))}
    experiment = {"dataset": dataset, "configurations": [{"name": "a", "retriever": run}], "ties": True}
    metrics = ["Bpref", "SetP(relative=True)", "P@5", "AP(judged_only=True)"]
    path = write_experiment(tmp_path, {**experiment, "metrics": metrics})
    stderr = rankbeam("validate", path).stderr
    for problem in (
        "Bpref is not defined with unit: span; defined are R, SetR, nDCG",
        "SetP(relative=True) is not defined with unit: span",
        "AP(judged_only=True) has judged_only, but evidence judges every chunk",
        "dataset.evidence: is missing; unit: span judges by evidence spans",
        "dataset.qrels: would not be used",
        "ties: bounds under ties are not defined with unit: span",
    ):
        assert problem in stderr
    plain = write_experiment(
        tmp_path / "plain", {**experiment, "dataset": {"qrels": dataset["qrels"]}, "metrics": ["SpanIoU@5"]}
    )
    assert "SpanIoU@5 compares spans of characters; give evidence spans" in rankbeam("validate", plain).stderr


def test_the_demo_has_true_evidence_for_every_query() -> None:
    refuse_misquoted(str(HELPDESK / "evidence.jsonl"), str(HELPDESK / "corpus.jsonl"))
    lines = [json.loads(line) for line in (HELPDESK / "evidence.jsonl").read_text("utf-8").splitlines()]
    query_ids = {json.loads(line)["_id"] for line in (HELPDESK / "queries.jsonl").read_text("utf-8").splitlines()}
    judged = [row.split("\t") for row in (HELPDESK / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]]
    grades = {(query_id, doc_id): float(grade) for query_id, doc_id, grade in judged}
    assert {line["query_id"] for line in lines} == query_ids
    assert all(line["grade"] == grades[line["query_id"], line["doc_id"]] >= 1 for line in lines)
    best = {pair for pair, grade in grades.items() if grade == 3}
    assert best <= {(line["query_id"], line["doc_id"]) for line in lines}
