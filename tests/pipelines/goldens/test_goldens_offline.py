"""A benchmark from documents without any language model, through the command line."""

import csv
import fcntl
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import IO

import pytest
import yaml
from beir.datasets.data_loader import GenericDataLoader
from support import processes
from support.cli import rankbeam
from support.goldens import HELPDESK, goldens_file, lines, stable
from support.inputs import write

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.folders import sole_writer
from rankbeam.transforms.records.errors import InputError


@pytest.fixture(scope="module")
def helpdesk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("helpdesk")
    path = goldens_file(folder, documents=str(HELPDESK), items=24, split={"dev": 1, "test": 2})
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    assert "24 of 24 questions" in outcome.stdout
    assert "(cloze)" in outcome.stderr
    return folder


@pytest.mark.long
def test_every_quote_stands_in_its_document_at_its_place(helpdesk: Path) -> None:
    out = helpdesk / "out"
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    assert texts == {row["_id"]: row["text"] for row in lines(HELPDESK)}
    pieces = lines(out / "evidence.jsonl")
    assert all(texts[piece["doc_id"]][piece["start"] : piece["end"]] == piece["quote"] for piece in pieces)
    queries = {row["_id"]: row for row in lines(out / "queries.jsonl")}
    answerable = {name for name, row in queries.items() if row["metadata"]["answerable"]}
    assert {piece["query_id"] for piece in pieces} == answerable
    assert len(queries) == 24
    assert all("cloze" in row["metadata"]["flags"].split() for row in queries.values())
    for chunk in lines(out / "chunks.jsonl"):
        assert texts[chunk["doc_id"]][chunk["start"] : chunk["end"]] == chunk["text"]


def test_beir_reads_the_folder_and_every_judgement_names_its_source(helpdesk: Path) -> None:
    out = helpdesk / "out"
    for split in ("dev", "test"):
        documents, queries, qrels = GenericDataLoader(str(out)).load(split=split)
        assert len(documents) == len(lines(HELPDESK))
        assert queries == {row["_id"]: row["text"] for row in lines(out / "queries.jsonl") if row["_id"] in qrels}
        with (out / "qrels" / f"{split}.tsv").open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        assert {row["source"] for row in rows} == {"evidence", "pooled"}
        best = {(row["query-id"], row["corpus-id"]) for row in rows if row["source"] == "evidence"}
        pieces = lines(out / "splits" / split / "evidence.jsonl")
        assert best == {(piece["query_id"], piece["doc_id"]) for piece in pieces}


def test_a_document_is_relevant_in_one_split_and_strata_and_types_have_their_quotas(helpdesk: Path) -> None:
    queries = [row["metadata"] for row in lines(helpdesk / "out" / "queries.jsonl")]
    relevant = []
    for split in ("dev", "test"):
        with (helpdesk / "out" / "qrels" / f"{split}.tsv").open() as file:
            relevant.append({row["corpus-id"] for row in csv.DictReader(file, delimiter="\t") if row["score"] != "0"})
    assert relevant[0].isdisjoint(relevant[1])
    types = Counter(row["type"] for row in queries)
    shares = {"lookup": 4, "how_to": 3, "why": 2, "unanswerable": 2}
    for kind, number in types.items():
        assert abs(number - 24 * shares.get(kind, 1) / 17) < 1
    assert json.loads((helpdesk / "out" / "coverage.json").read_text())["shortfalls"] == []


@pytest.mark.campaign
def test_a_second_run_makes_no_call_and_another_folder_the_same_bytes(helpdesk: Path, tmp_path: Path) -> None:
    before = stable(helpdesk / "out")
    again = rankbeam("goldens", str(helpdesk / "goldens.yaml"))
    assert "(0 calls, " in again.stdout
    assert stable(helpdesk / "out") == before
    fresh = rankbeam("goldens", str(helpdesk / "goldens.yaml"), "--output", str(tmp_path / "fresh"))
    assert fresh.status == 0
    assert stable(tmp_path / "fresh") == before


def test_evaluate_reads_a_split_and_slices_by_what_is_known_of_questions(helpdesk: Path) -> None:
    experiment = {
        "name": "on-goldens",
        "dataset": {"goldens": "out", "split": "test"},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 10}],
        "metrics": ["nDCG@10"],
        "slices": ["type", "reviewed"],
        "output": {"path": "evaluated"},
    }
    path = write(helpdesk / "experiment.yaml", yaml.safe_dump(experiment, sort_keys=False))
    outcome = rankbeam("evaluate", path, "--run-id", "r")
    assert outcome.status == 0, outcome.stderr
    assert "nDCG@10 by type" in outcome.stdout
    scored = Results(str(helpdesk / "evaluated"), "r").table("query_metrics")["query_id"].to_pylist()
    judged = {row["query_id"] for row in lines(helpdesk / "out" / "splits" / "test" / "evidence.jsonl")}
    assert set(scored) == judged
    wrong = write(
        helpdesk / "wrong.yaml", yaml.safe_dump({**experiment, "dataset": {"goldens": "out", "split": "tset"}})
    )
    refused = rankbeam("evaluate", wrong)
    assert refused.status == 2
    assert "dataset.split: the benchmark has no split 'tset'; did you mean 'test'?" in refused.stderr


def test_evidence_judges_chunks_of_any_size(helpdesk: Path) -> None:
    experiment = {
        "name": "on-spans",
        "dataset": {"goldens": "out", "split": "test", "unit": "span"},
        "corpora": {"small": {"type": "chunks", "by": "words", "chunk_size": 60, "chunk_overlap": 10}},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25", "corpus": "small"}, "top_k": 10}],
        "metrics": ["SpanRecall@5"],
        "output": {"path": "spans"},
    }
    path = write(helpdesk / "spans.yaml", yaml.safe_dump(experiment, sort_keys=False))
    outcome = rankbeam("evaluate", path)
    assert outcome.status == 0, outcome.stderr
    assert "SpanRecall@5" in outcome.stdout


def test_a_folder_that_another_process_writes_is_refused_and_not_changed(helpdesk: Path) -> None:
    out = helpdesk / "out"
    before = stable(out)
    with sole_writer(str(out), "goldens", "this benchmark", "output"):
        created = rankbeam("goldens", goldens_file(helpdesk, "other", documents=str(HELPDESK), seed=1))
        applied = rankbeam("goldens", "apply", str(out), write(helpdesk / "review.csv", "item_id,decision\n"))
    for refused, place in ((created, "output"), (applied, "folder")):
        assert refused.status == 2, refused.stdout
        assert f"another process is writing this benchmark; wait for it, or choose another {place}" in refused.stderr
    assert stable(out) == before


def test_a_lock_that_its_writer_deletes_meanwhile_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def late(file: IO[str], operation: int) -> None:
        (tmp_path / ".goldens.lock").unlink()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with (
        pytest.raises(InputError, match="another process is writing"),
        sole_writer(str(tmp_path), "goldens", "it", "x"),
    ):
        """Another process may have locked a new file."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_the_lock_of_another_user_is_refused_with_advice() -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / ".goldens.lock").touch(0o600)
        Path(name).chmod(0o777)
        assert "goldens.lock: another user's command writes here" in processes.as_nobody(lambda: refusal(name))


def refusal(folder: str) -> str:
    with pytest.raises(InputError) as caught, sole_writer(folder, "goldens", "it", "x"):
        """Refused."""
    return str(caught.value)
